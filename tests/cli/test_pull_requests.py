"""What pull requests use: the action's script, the problem matcher, the hooks of pre-commit."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from nkic.base.render import FORMATS
from nkic.cli.nkic import command
from tests.cli.nkic_fixtures import folder as folder
from tests.cli.nkic_fixtures import nkic as nkic
from tests.harness.commands import KERNEL, ROOT, Run

SCRIPT = ROOT / ".github/check-kernels"
ONE = "    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)\n"


def git(*words: str) -> str:
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *author, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def checked(*words: str) -> tuple[int, str]:
    """Run the action's script, and return its exit code and comment."""
    scripts = Path(sys.executable).parent
    environ = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    ran = subprocess.run([SCRIPT, "out", *words], env=environ, check=False, timeout=120)
    return ran.returncode, Path("out/comment.md").read_text("utf-8")


@pytest.mark.slow  # starts nkic three times, as the action does
def test_the_action_compares_with_the_base(folder: Path) -> None:
    Path("kernels").mkdir()
    for name in ("same", "slower", "broken"):
        Path(f"kernels/{name}.py").write_text(KERNEL, "utf-8")
    Path("kernels/broken.py").write_text(KERNEL.replace("nl.multiply", "nl.multipy"), "utf-8")
    git("init", "-q")
    git("add", "kernels")
    git("commit", "-qm", "base")
    base = git("rev-parse", "HEAD")
    Path("kernels/slower.py").write_text(KERNEL.replace(ONE, 2 * ONE), "utf-8")
    Path("kernels/broken.py").write_text(KERNEL, "utf-8")
    code, comment = checked("kernels", base, "cycles>+2%")
    assert code == 1
    assert re.search(r"(?m)^kernels/same.py +ok .* 3,747 \(\+0.0%\)$", comment)
    assert re.search(r"(?m)^kernels/slower.py +rejected .* 3,962 \(\+5.7%\)$", comment)
    assert "NKI1008" in comment and comment.count("```") == 4
    assert "the baseline is 3,747" in comment
    assert re.search(r"(?m)^kernels/broken.py +ok .* 3,747$", comment)
    assert "\nFiles that did not compile at the base: 1. Their times are not compared.\n" in comment
    Path("kernels/broken.py").unlink()
    (log,) = json.loads(Path("out/nkic.sarif").read_text("utf-8"))["runs"]
    assert [result["ruleId"] for result in log["results"]] == ["NKI1008"]
    assert ElementTree.parse("out/nkic.xml").getroot().get("failures") == "1"
    assert git("worktree", "list").count("\n") == 0
    code, comment = checked("kernels", "", "cycles>+2%")  # a push has no base
    assert code == 0 and "2 files: 2 ok" in comment and "%)" not in comment
    listed = "kernels/same.py\nkernels/slower.py\n"  # as YAML's `|` gives them
    code, comment = checked(listed, "0" * 40, "cycles>+2%")
    assert code == 0 and "2 files: 2 ok" in comment and "cannot be read, so times" in comment


def test_no_name_or_text_leaves_its_place_in_a_comment(folder: Path) -> None:
    """A folder of a stranger: names that are options, text that ends a block of code."""
    for name, text in {
        "--check": "",
        "--message-file=out": "",
        "k.py": KERNEL.replace("nl.multiply", 'nl.multipy("````\\n@all ##[add-mask]a")'),
        "::error::`````.py": KERNEL,
    }.items():
        Path(name).write_text(text, "utf-8")
    _, comment = checked("--check --message-file=out k.py ::error::`````.py")
    fences = re.findall(r"(?m)^`{3,}", comment)
    assert len(fences) == 4 and len(set(fences)) == 1
    inside = comment.split(fences[0])
    assert not any("`" in part for part in inside[::2]) and "##[add-mask]" in inside[3]
    assert all(fences[0].rstrip("`") == "" and fences[0] not in part for part in inside)
    assert "--message-file=out" in inside[1] and Path("--check").read_text("utf-8") == ""


def test_no_text_is_a_command_of_the_workflow(folder: Path) -> None:
    (step,) = (s for s in loaded("action.yml")["runs"]["steps"] if s.get("id") == "check")
    Path(".github").mkdir()
    Path(".github/check-kernels").write_text(
        '#!/bin/sh\nmkdir "$1"; >"$1/comment.md"; echo "##[add-mask]a"; echo ::error::b; exit 3\n'
    )
    Path(".github/check-kernels").chmod(0o755)
    environ = {**os.environ, "GITHUB_ACTION_PATH": ".", "RUNNER_TEMP": ".", "FILES": "."}
    environ |= {"GITHUB_OUTPUT": "o", "GITHUB_STEP_SUMMARY": "s", "BASE": "", "RULES": ""}
    said = []
    for _ in range(2):
        words = ["bash", "-eo", "pipefail", "-c", step["run"]]
        ran = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
        _, stop, *commands, go = ran.stdout.splitlines()
        assert commands == ["##[add-mask]a", "::error::b"] and ran.returncode == 3
        token = stop.removeprefix("::stop-commands::")
        assert len(token) == 32 and go == f"::{token}::"
        said.append(token)
        Path("nkic/comment.md").unlink()
        Path("nkic").rmdir()
    assert len(set(said)) == 2


def test_the_matcher_finds_short_messages(folder: Path, nkic: Run) -> None:
    Path("bad.py").write_text(KERNEL.replace("nl.multiply", "nl.multipy"), "utf-8")
    matchers = json.loads((ROOT / ".github/problem-matcher.json").read_text("utf-8"))
    found = {}
    for matcher in matchers["problemMatcher"]:
        (pattern,) = matcher["pattern"]
        for line in nkic("bad.py", "--message-format", "short").err.splitlines():
            match = re.match(pattern["regexp"], line)
            if match:
                names = ("file", "line", "column", "code", "message")
                found[matcher["severity"]] = [match[pattern[name]] for name in names]
    message = "`nki.language` has no `multipy`"
    assert found == {"error": ["bad.py", "14", "49", "NKI0204", message]}
    error, warning = (found["pattern"][0]["regexp"] for found in matchers["problemMatcher"])
    assert re.match(warning, "k.py:3:4: warning[NKI0440]: small rows")
    match = re.match(error, "k.py: error[NKI1008]: cycles is 2, more than 1")
    assert match and match.groups()[:3] == ("k.py", None, None)
    assert not re.match(error, "error[NKI0003]: no candidate is given")


def test_the_action_edits_its_own_comment_alone(folder: Path) -> None:
    """The step of the comment, with a `gh` that knows no comment of ours, and then one."""
    (step,) = (s for s in loaded("action.yml")["runs"]["steps"] if "GH_TOKEN" in s.get("env", {}))
    Path("gh").write_text(
        '#!/bin/sh\necho "$@" >>calls\ncase "$*" in *--paginate*) cat ids;; esac\n', "utf-8"
    )
    Path("gh").chmod(0o755)
    environ = {"PATH": f"{folder}:{os.environ['PATH']}", "RUNNER_TEMP": "t", "PULL": "7"}
    for ids, last in (("", "issues/7/comments"), ("31\n", "issues/comments/31")):
        Path("ids").write_text(ids, "utf-8")
        words = ["bash", "-eo", "pipefail", "-c", step["run"]]
        subprocess.run(words, env={**environ, "GITHUB_REPOSITORY": "o/r"}, check=True, timeout=20)
        call = Path("calls").read_text("utf-8").splitlines()[-1]
        assert f"repos/o/r/{last}" in call and "body=@t/nkic/comment.md" in call
        assert ("PATCH" in call) == bool(ids)
    assert "<!-- nkic -->" in step["run"] and "<!-- nkic -->" in SCRIPT.read_text("utf-8")


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


@pytest.mark.parametrize("hook", loaded(".pre-commit-hooks.yaml"), ids=lambda hook: hook["id"])
def test_hooks_run_as_pre_commit_runs_them(hook: dict[str, Any], folder: Path, nkic: Run) -> None:
    Path("bad.py").write_text(KERNEL.replace("nl.multiply", "nl.multipy"), "utf-8")
    Path("setup.py").write_text("import os\n", "utf-8")
    tool, *words = shlex.split(hook["entry"])
    assert (tool, hook["language"], hook["types"]) == ("nkic", "python", ["python"])
    fixes = hook["id"] == "nkic-fix"
    ran = nkic(*words, *hook["args"], "k.py", "bad.py", "setup.py")
    assert ran.code == (0 if fixes else 1)
    assert ("fixed bad.py:14:52" if fixes else "bad.py:14:49: error[NKI0204]") in ran.err
    assert nkic(*words, "--target", "trn2", "--", "k.py", "setup.py").code == 0
    assert not list(Path().glob("*.neff"))


def test_the_action_uses_what_there_is() -> None:
    action = loaded("action.yml")
    inputs = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text("utf-8")))
    assert inputs == set(action["inputs"])
    assert all("shell" in step or "uses" in step for step in action["runs"]["steps"])
    options = {name for param in command.table for name in param.opts}
    assert set(re.findall(r"(?<= )--[a-z-]+", _nkic_lines(SCRIPT.read_text("utf-8")))) <= options
    assert "short" in FORMATS and os.access(SCRIPT, os.X_OK)
    for name in ("wrong", "missing"):
        form = loaded(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert form["name"] and all(part["type"] and part["attributes"] for part in form["body"])


def _nkic_lines(script: str) -> str:
    """Return the calls of nkic in a script."""
    joined = script.replace("\\\n", " ")
    return "\n".join(line for line in joined.splitlines() if "nkic " in line and "git" not in line)
