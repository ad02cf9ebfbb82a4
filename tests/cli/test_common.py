"""Behaviour common to both tools, tested with a small tool in a separate process."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from nkic import __version__
from nkic.base.diagnostics import codes
from nkic.cli.common import streams
from nkic.cli.common.tool import EXIT_CODES
from tests.harness import warm
from tests.harness.commands import hear_signals

ROOT = Path(__file__).resolve().parents[2]

# A tool whose argument selects what it does.
DEMO = """
import os, sys, time
from dataclasses import dataclass
from nkic.base import diagnostics as d, files
from nkic.base.source import SourceFile, Span
from nkic.cli.common import Session, Tool, run
from nkic.cli.common.options import option

SOURCE = SourceFile("k.py", "a = 1\\nb = f(x)\\n")
CALL = Span("k.py", 2, 5, 2, 9)

def failing(name):
    def act(session):
        raise getattr(d, name)([d.make("bad-value", "seven", CALL, label="here", help="six")])
    return act

def warn(session):
    session.report([d.make("bad-value", "hm", CALL, level=d.Level.WARNING)])

def write(session):
    files.write("out.bin", b"x")
    session.artifact("neff", "out.bin", bytes=1)
    session.status("wrote out.bin")

def crash(session):
    session.attachments["kernel.py"] = SOURCE.text
    return 1 // 0

def slow(session):
    with files.replacing("out.bin") as stream:
        stream.write(b"half")
        stream.flush()
        print("ready", flush=True)
        time.sleep(60)

def raising(error):
    def act(session):
        raise error
    return act

def hoard(session):
    hoarded = []
    while True:
        hoarded.append(bytearray(5000))

def deep(session):
    return deep(session) + 1

ACTIONS = {
    "ok": lambda session: None, "no": lambda session: 1, "warn": warn, "write": write,
    "crash": crash, "slow": slow, "deep": deep,
    "hoard": hoard,
    "memory": raising(MemoryError()), "interrupt": raising(KeyboardInterrupt()),
    "print": lambda session: print("line\\n" * 100000), "accents": lambda session: print("é ✓ 漢"),
    "binary": lambda session: files.write("-", b"\\x00"),
    **{name: failing(name) for name in (
        "CompileFailed", "UsageFailed", "ArtifactFailed", "InputFailed", "ProgramFault", "LimitHit"
    )},
}

@dataclass
class Line:
    action: str = option("ACTION", "What.")
    output: "str | None" = option("--output PATH", "Where.", group="Output", common=True)
    kind: "str | None" = option(
        "--kind KIND", "Form.", values={"round": "a circle", "square": "four sides"}
    )

def act(line, session):
    session.sources = {"k.py": SOURCE}.get
    return ACTIONS[line.action](session)

demo = Tool(Line, act, "Does as it is told.", examples=[("demo ok", "do nothing")])

if __name__ == "__main__":
    sys.exit(run(demo, "demo"))
"""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tool") / "demo.py"
    path.write_text(DEMO)
    return path


class Demo:
    """Run the demo tool in the test's folder."""

    def __init__(self, script: Path, folder: Path) -> None:
        self.script, self.folder = script, folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NKI", "NO_COLOR"))}
        kept["NKIC_CACHE"] = "0"
        self.environ = {**kept, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}

    def __call__(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {**self.environ, **environ}
        return warm.run_text(warm.script(self.script), *arguments, cwd=self.folder, env=env)

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a shell line in which DEMO is the tool."""
        tool = f"{sys.executable} {self.script}"
        return subprocess.run(
            ["bash", "-c", line.replace("DEMO", tool)],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.script), *arguments],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            preexec_fn=hear_signals,
        )


@pytest.fixture
def tool(demo: Path, tmp_path: Path) -> Demo:
    return Demo(demo, tmp_path)


def test_success_in_a_pipe_says_nothing(tool: Demo) -> None:
    done = tool("write")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tool("write", "-v").stderr == "wrote out.bin\n"


@pytest.mark.parametrize(
    ("action", "exit_code"),
    [
        ("ok", 0),
        ("no", 1),
        ("warn", 0),
        ("CompileFailed", 1),
        ("UsageFailed", 2),
        ("ArtifactFailed", 3),
        ("InputFailed", 4),
        ("ProgramFault", 5),
        ("LimitHit", 6),
        ("memory", 6),
        ("deep", 6),
        ("crash", 70),
        ("interrupt", 130),
    ],
)
def test_exit_codes(tool: Demo, action: str, exit_code: int) -> None:
    done = tool(action)
    assert done.returncode == exit_code
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_no_memory_left(tool: Demo) -> None:
    done = tool.shell("ulimit -v 200000; DEMO hoard")
    assert done.returncode == 6
    text = "error[NKI9002]: the kernel needs more memory than this process may use: 195.3 MiB"
    assert done.stderr.startswith(text)
    assert "--limit memory=SIZE" in done.stderr


def test_closed_pipe_is_141_and_silent(tool: Demo) -> None:
    done = tool.shell("set -o pipefail; DEMO print | head -1")
    assert (done.returncode, done.stdout, done.stderr) == (141, "line\n", "")
    done = tool.shell("DEMO --explain all | true; echo ${PIPESTATUS[0]}")
    assert done.stderr == ""
    assert done.stdout in ("141\n", "0\n")  # 0 if all of the output fitted into the pipe in time


def test_closed_streams_do_no_harm(tool: Demo) -> None:
    assert tool.shell("DEMO ok >&-").returncode == 0
    assert tool.shell("DEMO CompileFailed 2>&-").returncode == 1


@pytest.mark.parametrize("action", ["print", "binary", "--help", "--version"])
def test_what_was_asked_for_and_cannot_be_written_is_an_error(tool: Demo, action: str) -> None:
    done = tool.shell(f"DEMO {action} >&-")
    assert done.returncode == 2
    assert done.stderr == "error[NKI0006]: cannot write standard output: it is closed\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("action", ["accents", "print", "binary", "--help"])
def test_full_disk_behind_standard_output(tool: Demo, action: str) -> None:
    done = tool.shell(f"DEMO {action} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error[NKI0006]: cannot write standard output: no space left on device"
    ]


@pytest.mark.parametrize(
    ("sent", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_leave_no_half_output(tool: Demo, sent: signal.Signals, exit_code: int) -> None:
    process = tool.start("slow")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len([*tool.folder.iterdir()]) == 1
    started = time.monotonic()
    process.send_signal(sent)
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (exit_code, "")
    assert time.monotonic() - started < 20
    assert [*tool.folder.iterdir()] == []


def test_human_messages_end_with_a_summary(tool: Demo) -> None:
    assert tool("CompileFailed").stderr == (
        "k.py:2:5: error[NKI0003]: seven\n"
        "  |\n"
        "2 | b = f(x)\n"
        "  |     ^^^^ here\n"
        "  |\n"
        "  = help: six\n"
        "\n"
        "1 error\n"
    )
    assert "1 error" not in tool("CompileFailed", "-q").stderr


def test_short_messages(tool: Demo) -> None:
    done = tool("CompileFailed", "--message-format", "short")
    assert done.stderr == "k.py:2:5: error[NKI0003]: seven\n"


def validated(lines: str) -> list[dict[str, object]]:
    path = resources.files("nkic.base.render").joinpath("diagnostic.schema.json")
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    records = [json.loads(line) for line in lines.splitlines()]
    for record in records:
        validator.validate(record)
    return records


@pytest.mark.parametrize("action", ["CompileFailed", "warn", "crash", "memory", "write"])
def test_json_messages_are_all_that_is_said(tool: Demo, action: str) -> None:
    done = tool(action, "--message-format=json", "-v", NKIC_BACKTRACE="1")
    (record,) = validated(done.stderr)
    assert record["type"] == ("artifact" if action == "write" else "diagnostic")


def test_usage_errors_too_come_in_the_format_asked_for(tool: Demo) -> None:
    done = tool("ok", "--ouput", "x", "--message-format=json")
    (record,) = validated(done.stderr)
    assert (record["code"], record["help"]) == ("NKI0001", "did you mean `--output`?")


def test_message_file_gets_the_machine_form(tool: Demo) -> None:
    done = tool("CompileFailed", "--message-file", "m.jsonl")
    assert done.stderr.startswith("k.py:2:5: error[NKI0003]: seven\n")
    (record,) = validated((tool.folder / "m.jsonl").read_text())
    assert record["rendered"] == done.stderr.removesuffix("\n1 error\n")
    tool("write", "--message-file", "m.jsonl")
    (record,) = validated((tool.folder / "m.jsonl").read_text())
    assert record == {
        "schema": 1, "type": "artifact", "kind": "neff", "path": "out.bin", "bytes": 1
    }  # fmt: skip


def test_message_file_that_cannot_be_written(tool: Demo) -> None:
    done = tool("ok", "--message-file", "no/m.jsonl")
    assert done.returncode == 2
    assert "error[NKI0006]: cannot write `no/m.jsonl`" in done.stderr
    done = tool("ArtifactFailed", "--message-file", "no/m.jsonl")
    assert done.returncode == 2  # nothing was done
    assert "error[NKI0006]: cannot write `no/m.jsonl`" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "first_line"),
    [
        (["ok", "--ouput", "x"], "error[NKI0001]: no such option: `--ouput`"),
        ([], "error[NKI0002]: missing `ACTION`"),
        (["ok", "--color=red"], "error[NKI0003]: `--color`: "),
        (["ok", "-Z"], "error[NKI0001]: no such option: `-Z`"),
        (["ok", "more"], "error[NKI0004]: unexpected extra argument (more)"),
        (["ok", "--output"], "error[NKI0004]: option '--output' requires an argument"),
        (["--explain", "internal-eror"], "error[NKI0008]: there is no diagnostic code"),
        (["ok", "\x1b[31m"], r"error[NKI0004]: unexpected extra argument (\x1b[31m)"),
    ],
)
def test_usage_errors(tool: Demo, arguments: list[str], first_line: str) -> None:
    done = tool(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith(first_line)
    assert lines[1].startswith("  = help: ")


def test_crash_is_one_line_and_a_report(tool: Demo) -> None:
    done = tool("crash", NKIC_DEMO="1", NKIC_CRASH_DIR="reports", NKIC_TOKEN="confidential")
    (line,) = done.stderr.splitlines()
    (report,) = (tool.folder / "reports").iterdir()
    assert line.startswith(
        "error[NKI9001]: internal error in demo: ZeroDivisionError: integer division"
    )
    assert line.endswith(f"please report it with reports/{report.name}")
    with zipfile.ZipFile(report) as archive:
        run = json.loads(archive.read("run.json"))
        assert archive.read("attached/0-kernel.py") == b"a = 1\nb = f(x)\n"
        assert b"ZeroDivisionError" in archive.read("traceback.txt")
        assert b"confidential" not in b"".join(map(archive.read, archive.namelist()))
    assert run["arguments"] == ["crash"]
    assert run["version"] == __version__
    assert run["environment"] == {
        "NKIC_CACHE": "0", "NKIC_CRASH_DIR": "reports", "NKIC_DEMO": "1", "NKIC_TOKEN": "(set)"
    }  # fmt: skip


def test_same_crash_gives_the_same_report(tool: Demo) -> None:
    tool("crash", NKIC_CRASH_DIR="a")
    tool("crash", NKIC_CRASH_DIR="a")
    one, other = (tool.folder / "a").iterdir()
    assert one.read_bytes() == other.read_bytes()
    assert one.name[:24] == other.name[:24] and one.name.startswith("nkic-crash-")


def test_a_report_has_a_name_that_cannot_be_foreseen_and_is_private(tool: Demo) -> None:
    tool("crash", NKIC_CRASH_DIR="a")
    (first,) = (tool.folder / "a").iterdir()
    victim = tool.folder / "victim"
    victim.write_text("untouched")
    first.unlink()
    first.symlink_to(victim)
    tool("crash", NKIC_CRASH_DIR="a")
    assert victim.read_text() == "untouched"
    (second,) = {*(tool.folder / "a").iterdir()} - {first}
    assert second.stat().st_mode & 0o777 == 0o600


def test_crash_without_a_place_for_the_report(tool: Demo) -> None:
    (tool.folder / "file").touch()
    done = tool("crash", NKIC_CRASH_DIR="file/x")
    assert done.returncode == 70
    assert "no report could be written ([Errno 20] Not a directory: 'file/x')" in done.stderr


def test_backtrace_only_when_asked_for(tool: Demo) -> None:
    done = tool("crash", NKIC_BACKTRACE="1")
    assert done.returncode == 70
    assert "= note: Traceback (most recent call last):" in done.stderr
    assert "Traceback" not in tool("crash", NKIC_BACKTRACE="0").stderr


def test_version_is_one_line(tool: Demo) -> None:
    assert tool("--version").stdout == f"demo {__version__}\n"


def test_help_in_two_sizes(tool: Demo) -> None:
    brief, long = tool("-h").stdout, tool("--help").stdout
    assert len(brief.splitlines()) <= 24
    assert brief.endswith("More: demo --help\n")
    assert "--output PATH" in brief
    assert "--verbose" not in brief and "a circle" not in brief
    for words in ("Does as it is told.", "Output:", "--verbose", "Exit codes:", "demo ok"):
        assert words in long
    assert re.search("--kind KIND +Form.\n +round +a circle\n +square +four sides\n", long)
    for number, _ in EXIT_CODES:
        assert f"  {number} " in long


def test_errors_lists_the_exit_codes_of_help() -> None:
    page = (ROOT / "docs/errors.md").read_text("utf-8")
    table = page.partition("code | meaning |\n|---:|---|\n")[2]
    rows = [line.split("|")[1:3] for line in table.partition("\n\n")[0].splitlines()]
    assert [number.strip() for number, _ in rows] == [number for number, _ in EXIT_CODES]
    for (_, found), (_, meaning) in zip(rows, EXIT_CODES, strict=True):
        assert found.strip().startswith(meaning)


def test_explain(tool: Demo) -> None:
    assert tool("--explain", "9001").stdout.startswith("# NKI9001 internal-error: Internal error\n")
    pages = tool("--explain", "all").stdout
    assert all(f"# {code.number} {code.slug}: " in pages for code in codes().values())


def test_completion(tool: Demo) -> None:
    done = tool(_DEMO_COMPLETE="bash_complete", COMP_WORDS="demo --mess", COMP_CWORD="1")
    assert [line.split(",")[1] for line in done.stdout.splitlines()] == [
        "--message-format",
        "--message-file",
    ]
    done = tool(_DEMO_COMPLETE="bash_complete", COMP_WORDS="demo --kind s", COMP_CWORD="2")
    assert done.stdout == "plain,square\n"
    done = tool(_DEMO_COMPLETE="bash_complete", COMP_WORDS="demo --explain NKI05", COMP_CWORD="2")
    assert "plain,NKI0501\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "environ", "coloured"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"CLICOLOR_FORCE": "1"}, True),
        ([], {"FORCE_COLOR": "0"}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        (["--color=always"], {"NO_COLOR": "1", "TERM": "dumb"}, True),
        (["--color=never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_in_a_pipe(
    tool: Demo, arguments: list[str], environ: dict[str, str], coloured: bool
) -> None:
    done = tool("CompileFailed", *arguments, **environ)
    assert ("\x1b[" in done.stderr) is coloured
    assert "\x1b" not in tool("--help", *arguments, **environ).stdout


class Terminal(io.StringIO):
    """A stream that reports that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [({}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colour_on_a_terminal(environ: dict[str, str], coloured: bool) -> None:
    assert streams.wants_colour(Terminal(), "auto", environ) is coloured


@pytest.mark.parametrize(
    "environ",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_no_encoding_can_fail(tool: Demo, environ: dict[str, str]) -> None:
    done = tool("accents", **environ)
    assert done.returncode == 0
    assert " + \\u6f22" in done.stdout
    assert tool("ok", "--é", **environ).returncode == 2


def test_binary_goes_into_a_pipe(tool: Demo) -> None:
    assert tool("binary").stdout == "\x00"


def test_start_up_imports_nothing_heavy() -> None:
    script = (
        "import sys; import nkic.cli.common, nkic.base.files;"
        "heavy = {'numpy', 'lark', 'rich', 'msgpack', 'zipfile', 'asyncio', 'importlib.resources'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.stdout == "[]\n"
