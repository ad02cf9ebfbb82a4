"""The table of options: one meaning for each, documented values, and earlier spellings."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import click
import pytest

from nkic.api.options import Calling, Running
from nkic.base import limits
from nkic.base.diagnostics import UsageFailed
from nkic.cli.common import Session
from nkic.cli.common.options import Option, Row, Shared, filled, rows
from nkic.cli.common.tool import REFUSED, Tool, diagnostic, translated
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nki_run import options as of_runner
from nkic.cli.nki_run.reporting import TRACES
from nkic.cli.nkic import command as nkic
from nkic.cli.nkic import options as of_compiler
from nkic.cli.nkic import prints
from nkic.cli.nkic.outputs import KINDS
from nkic.compiler.forms import FORMS
from nkic.machine.operators import ORDERS
from nkic.machine.targets import TARGETS
from nkic.report.figures import OPTIONS, run_options
from nkic.simulate import RunOptions
from tests.harness.bless import blessing

PAGE = Path(__file__).resolve().parents[3] / "docs/commands.md"
LINES = (of_runner.CommandLine, of_runner.CompareLine, of_runner.InspectLine)
RUNNERS = (*LINES, of_runner.CalibrateLine)
TOOLS = {"nkic": nkic, "nki-run": nki_run}
# The entries of --help before there were subcommands and one table.
BEFORE = {"nkic": 48, "nki-run": 73}


def spellings(*kinds: type) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for kind in kinds:
        for row in rows(kind).values():
            for name in row.names:
                if name.startswith("-"):
                    found.setdefault(name, []).append(row)
    return found


def meaning(row: Row) -> str:
    """Return what the option does, without details of the command."""
    return re.split(r"[.;:(,]", row.help)[0]


def test_an_option_means_the_same_wherever_it_is_taken() -> None:
    ours = spellings(of_compiler.CommandLine)
    theirs = spellings(*RUNNERS)
    shared = ours.keys() & theirs.keys()
    assert {"-o", "--json", "--report", "--fail-if", "--machine", "--time"} <= shared
    for name in theirs.keys() & {*shared, *theirs}:
        found = {meaning(row) for row in [*ours.get(name, []), *theirs[name]]}
        assert len(found) == 1 or name in SAME, (name, found)
    assert not (ours.keys() | theirs.keys()) & spellings(Shared).keys()
    assert "--watch" not in theirs  # kept for checking again when a file changes


# Said in other words, because the one writes files, and the other arrays of a run.
SAME = {"-o", "--baseline", "--check", "--target"}


@pytest.mark.parametrize("tool", TOOLS)
def test_there_are_fewer_entries_than_before(tool: str) -> None:
    kinds = (of_compiler.CommandLine,) if tool == "nkic" else RUNNERS
    table = [row for kind in (*kinds, Shared) for row in rows(kind).values()]
    names = {row.names for row in table if row.group != "Many files"}
    names -= {("--sign",), ("--prove-source",)}  # which came later, as those of many files did
    options = [name for name in names if name[0].startswith("-")]
    assert len(options) + len(("--explain", "--version", "-h", "--help")) < BEFORE[tool]


def test_values_are_those_that_the_code_knows() -> None:
    assert {*of_compiler.EMITS} == {*KINDS}
    for kind, form in FORMS.items():
        assert of_compiler.EMITS[kind] == form.meaning
    tables = {*prints.TABLES}
    assert tables | {"schema", "config", "kernels", "completion"} == {*of_compiler.PRINTS}
    assert {*of_runner.ACCUMULATE} == {*ORDERS}
    assert {*of_runner.TARGETS} == {*of_compiler.TARGETS} == {*TARGETS}
    assert all(f"FILE{suffix}" in of_runner.REPORTS["trace"] for suffix in TRACES)


def text_of(tool: str, *words: str) -> str:
    command = TOOLS[tool]
    for word in words:
        command = command.commands[word]
    with click.Context(command, info_name=" ".join((tool, *words))) as context:
        return command.brief_help(context) if command.plain else command.get_help(context)


def test_help_documents_every_value_and_limit() -> None:
    text = text_of("nkic")
    for values in (of_compiler.EMITS, of_compiler.PRINTS, of_compiler.REPORTS, limits.of("nkic")):
        for value in values:
            assert re.search(rf"(?m)^ +{value} +\S", text), value
    text = text_of("nki-run", "profile")
    for value in (*of_runner.REPORTS, *limits.of("nki-run")):
        assert re.search(rf"(?m)^ +{value} +\S", text), value


def test_the_help_of_the_suite_is_one_screen() -> None:
    text = text_of("nki-run")
    assert len(text.splitlines()) <= 60
    for name in ("run", "compare", "profile", "debug", "inspect", "calibrate"):
        assert re.search(rf"(?m)^  {name} +[A-Z]", text)
    assert "--break" not in text and "--inputs" in text


def page() -> str:
    """Return docs/commands.md as the tables say it."""
    parts = [PAGE.read_text("utf-8").partition("\n## ")[0].rstrip() + "\n"]
    commands = [
        (tool, *more)
        for tool, suite in TOOLS.items()
        for more in ((), *((name,) for name in suite.commands))
    ]
    for words in commands:
        parts.append(f"## {' '.join(words)}\n\n```text\n{text_of(*words).rstrip()}\n```\n")
    return "\n".join(parts)


def test_the_page_of_commands_is_current() -> None:
    if blessing():
        PAGE.write_text(page(), "utf-8")
    assert PAGE.read_text("utf-8") == page()


# ---- earlier spellings ---------------------------------------------------------------------


def context(tool: str, *words: str) -> tuple[click.Context, Session]:
    session = Session(tool)
    made = TOOLS[tool].make_context(tool, [*words], obj=session)
    return made, session


@pytest.mark.parametrize(
    ("tool", "words", "command", "field", "value"),
    [
        ("nki-run", "k --max-cycles 10", "", "limit", ("cycles=10",)),
        ("nki-run", "k --max-iterations=7", "", "limit", ("iterations=7",)),
        ("nki-run", "k --timeout 1.5 --max-memory 1G", "", "limit", ("time=1.5", "memory=1G")),
        ("nki-run", "k -O x=@a.npy -Oy=-", "", "outputs", ("x=@a.npy", "y=-")),
        ("nki-run", "k --input a=zeros", "", "inputs", ("a=zeros",)),
        ("nki-run", "k --max-ulp x=4 --equal-nan", "", "compare", ("x=max-ulp:4", "equal-nan")),
        ("nki-run", "k --min-cosine 0.9", "", "compare", ("min-cosine:0.9",)),
        ("nki-run", "k --min-pass-rate 0.9", "", "compare", ("pass-rate:0.9",)),
        ("nki-run", "k --fail-on nan,inf", "", "fail_if", "nan,inf"),
        ("nki-run", "k --annotate --timeline", "", "report", ("annotate", "timeline")),
        ("nki-run", "k --trace t.json", "", "report", ("trace=t.json",)),
        ("nki-run", "k --counters c.parquet", "", "report", ("counters=c.parquet",)),
        ("nki-run", "k --summary-json -", "", "report", ("neuron=-",)),
        ("nki-run", "k --save-baseline b", "", "report", ("json=b",)),
        ("nki-run", "k --dump-tensor a@1=a.npz --dump-all d", "", "dump", ("a@1=a.npz", "all=d")),
        ("nki-run", "--diff a b", "compare", "after", "b"),
        ("nki-run", "k --info --json", "inspect", "json", True),
        ("nki-run", "k --disasm --engine pe", "inspect", "disasm", True),
        ("nki-run", "k --verify", "inspect", "check", True),
        ("nki-run", "--print machine", "calibrate", "print", "machine"),
        ("nki-run", "--calibrate d --target trn1", "calibrate", "folder", "d"),
        ("nkic", "k.py --remarks", "", "report", ("remarks",)),
        ("nkic", "k.py --remarks=r.json", "", "report", ("remarks=r.json",)),
        ("nkic", "k.py --print-changed", "", "report", ("changes",)),
        ("nkic", "k.py --time-passes", "", "time", True),
        ("nkic", "k.py --list-kernels", "", "print", "kernels"),
        ("nkic", "k.py --max-errors 3 --time-limit 9", "", "limit", ("errors=3", "time=9")),
    ],
)
def test_an_earlier_spelling_is_taken_with_a_warning(
    tool: str, words: str, command: str, field: str, value: object
) -> None:
    made, session = context(tool, *words.split())
    assert made.params[field] == value
    assert made.info_name == f"{tool} {command}".rstrip()
    assert session.renamed and {d.code.slug for d in session.renamed} == {"old-spelling"}


def test_every_earlier_spelling_is_translated_or_refused_by_its_name() -> None:
    for tool, command in TOOLS.items():
        known = {name for param in command.table for name in param.opts} - {"--print"}
        for name, now in command.old.items():
            assert name not in known, name
            words = [name, *["1"] * (now.count("{}") + now.count("{rest}"))]
            if now.startswith(REFUSED):
                with pytest.raises(UsageFailed) as caught:
                    translated(tool, words, command.old)
                assert now.removeprefix(REFUSED) in str(caught.value.diagnostics[0].help)
            else:
                found = translated(tool, words, command.old)
                target = command.commands.get(found.command, command)
                names = {opt for param in target.table for opt in param.opts}
                assert {w for w in found.words if w.startswith("--")} <= names


def test_words_after_two_dashes_and_of_subcommands_are_left_alone() -> None:
    found = translated("nki-run", ["--", "--info"], nki_run.old)
    assert found == (["--", "--info"], "", [])
    made, session = context("nki-run", "inspect", "k", "--disasm")
    assert made.params["disasm"] is True and session.renamed == []


def test_unknown_options_lead_to_the_right_place() -> None:
    for tool, words, said in (
        ("nki-run", "k --html", "did you mean `--report html=FILE`?"),
        ("nki-run", "run k --break 3", "it is an option of `nki-run debug`"),
        ("nki-run", "profile k --max-cycles 3", "it is now spelt `--limit cycles=…`"),
        ("nki-run", "inspect k --info", "it is now spelt `nki-run inspect`"),
        ("nki-run", "k --memory 3", "did you mean `--limit memory=VALUE`?"),
        ("nkic", "k.py --targets", "did you mean `--print targets`?"),
        ("nkic", "k.py --ast", "did you mean `--emit ast=PATH`?"),
        ("nkic", "k.py --ouput k", "did you mean `--output`?"),
    ):
        with pytest.raises(click.NoSuchOption) as caught:
            context(tool, *words.split())
        assert diagnostic(caught.value, tool).help == said


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_has_a_row_with_a_sentence(tool: str) -> None:
    tools = [TOOLS[tool], *TOOLS[tool].commands.values()]
    for command in tools:
        assert isinstance(command, Tool)
        for param in command.table:
            row = param.row if isinstance(param, Option) else None
            assert row is None or (row.help[:1].isupper() or row.help[0] in "0f"), param.name


# Options whose values are text or files in a command, and Python's own in a call.
OTHER_TYPES = {"grid", "include", "machine", "optimise", "dump", "expect_at", "rtol", "atol"}


def test_options_of_calls_are_those_of_the_commands() -> None:
    """An option that both a command and Python take is of one type."""
    calls = get_type_hints(Calling)
    lines = fields(of_compiler.CommandLine) + fields(of_runner.CommandLine)
    shared = {field.name: eval(str(field.type)) for field in lines if field.name in calls}
    assert {"target", "lnc", "spill", "init_check", "precise_fp", "accumulate"} <= shared.keys()
    differing = {name for name, kind in shared.items() if kind != calls[name]}
    assert differing == OTHER_TYPES


def test_options_of_a_run_have_one_name_and_one_default() -> None:
    plain, table = RunOptions(), rows(of_runner.CommandLine)
    assert OPTIONS.keys() <= Running.__annotations__.keys()
    assert {"init_check", "race_check", "accumulate"} <= OPTIONS.keys() & table.keys()
    line = filled(of_runner.CommandLine, {})
    assert run_options(vars(line), {}) == plain
    for name, field in OPTIONS.items():
        assert vars(run_options({name: "other"}, {})) == {**vars(plain), field: "other"}
