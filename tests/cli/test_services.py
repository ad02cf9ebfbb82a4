"""--message-format and --message-file for services, tested through the commands."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import KERNEL, Run, process

__all__ = ["folder", "nkic"]
WRONG = KERNEL.replace("src=tile)", "src=tlie)")
LINE = WRONG.split("src=tlie")[0].count("\n") + 1


@pytest.fixture
def wrong(folder: Path) -> Path:
    """Return a folder whose kernel has one error."""
    (folder / "k.py").write_text(WRONG, encoding="utf-8")
    return folder


def only_run(text: str) -> dict[str, Any]:
    document = json.loads(text)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    found: dict[str, Any] = run
    return found


def test_sarif_is_all_of_standard_error(nkic: Run, wrong: Path) -> None:
    done = nkic("k.py", "--message-format", "sarif", "-v")
    assert (done.code, done.out) == (1, "")
    run = only_run(done.err)
    assert run["tool"]["driver"]["name"] == "nkic"
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "k.py"
    assert place["region"]["startLine"] == LINE


def test_a_good_kernel_makes_an_empty_log(nkic: Run, folder: Path) -> None:
    done = nkic("k.py", "--message-format=sarif")
    assert (done.code, only_run(done.err)["results"]) == (0, [])


def test_people_and_services_in_one_run(nkic: Run, wrong: Path) -> None:
    done = nkic("k.py", "--message-file", "found.sarif")
    assert done.err.startswith(f"k.py:{LINE}:")
    (result,) = only_run((wrong / "found.sarif").read_text())["results"]
    assert result["level"] == "error"
    assert result["partialFingerprints"]


def test_a_line_above_changes_no_fingerprint(nkic: Run, wrong: Path) -> None:
    def fingerprint() -> str:
        (result,) = only_run(nkic("k.py", "--message-format=sarif").err)["results"]
        return str(result["partialFingerprints"])

    before = fingerprint()
    (wrong / "k.py").write_text(WRONG.replace("@nki", "\n# more\n@nki"), encoding="utf-8")
    assert fingerprint() == before
    (wrong / "k.py").write_text(WRONG.replace("dst=out, src", "dst=tile, src"), encoding="utf-8")
    assert fingerprint() != before


def test_usage_errors_and_unwritable_files_come_in_the_log_too(nkic: Run, folder: Path) -> None:
    for words, number in ((("--ouput", "x"), "NKI0001"), (("--message-file", "no/x"), "NKI0006")):
        done = nkic("k.py", "--message-format=sarif", *words)
        run = only_run(done.err)
        assert (done.code, run["results"]) == (2, [])
        (said,) = run["invocations"][0]["toolExecutionNotifications"]
        assert said["descriptor"]["id"] == number


def test_github_commands_are_all_that_is_said(wrong: Path) -> None:
    done = process("k.py", "--message-format", "github", cwd=wrong)
    assert (done.returncode, done.stdout) == (1, b"")
    command = re.compile(rf"::error file=k\.py,line={LINE},endLine={LINE},col=\d+,.*::.*tlie.*\n")
    assert command.fullmatch(done.stderr.decode())


def test_a_kernel_cannot_give_orders_to_the_service(nkic: Run, folder: Path) -> None:
    text = KERNEL.replace("    return", '    print("::add-mask::x")\n    return')
    (folder / "k.py").write_text(text, encoding="utf-8")
    assert nkic("k.py", "--message-format=github").err == "| ::add-mask::x\n"
