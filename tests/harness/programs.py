"""Case files of printed programs: the named stages run on them; the same file has the result.

# stages: lower depend allocate
program p on trn2
…
----
the last stage's result, or the diagnostics
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nkic import prove
from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.base.render import PLAIN, render
from nkic.compiler import allocate, schedule
from nkic.compiler.check import check
from nkic.compiler.depend import depend
from nkic.compiler.lower import lower
from nkic.program.text import graph_text, program_text, read_program, schedule_text
from tests.harness.directives import BadCase

SEPARATOR = "\n----\n"


def _check(state: dict[str, Any], report: Reporter) -> str:
    check(state["program"], report)
    return "no complaint\n"


def _lower(state: dict[str, Any], report: Reporter) -> str:
    state["program"] = lower(state["program"], report)
    return program_text(state["program"])


def _depend(state: dict[str, Any], report: Reporter) -> str:
    state["graphs"] = depend(state["program"])
    return "".join(f"core\n{graph_text(graph)}" for graph in state["graphs"])


def _allocate(state: dict[str, Any], report: Reporter) -> str:
    state["lowered"] = state["program"]
    placed = allocate.allocate(state["program"], state["graphs"], report)
    state["program"], state["graphs"] = placed
    state["readings"] = prove.read(state["lowered"])
    assert prove.prove_addresses(state["program"], state["readings"]) == []
    return program_text(state["program"])


def _schedule(state: dict[str, Any], report: Reporter) -> str:
    ordered = schedule.schedule(state["program"], state["graphs"])
    assert prove.prove_order(state["lowered"], ordered, state["readings"]) == []
    return schedule_text(ordered)


STAGES: dict[str, Callable[[dict[str, Any], Reporter], str]] = {
    "check": _check,
    "lower": _lower,
    "depend": _depend,
    "allocate": _allocate,
    "schedule": _schedule,
}


def run_case(path: Path) -> str:
    """Return the expected whole file: its head and program, then the actual results."""
    text = path.read_text(encoding="utf-8")
    given = text.partition(SEPARATOR)[0].rstrip("\n")
    head, _, program = given.partition("\n")
    if not head.startswith("# stages: "):
        raise BadCase(f"{path.name}: the first line is `# stages: …`")
    return given + SEPARATOR + _result(head.removeprefix("# stages: ").split(), program)


def _result(stages: list[str], program: str) -> str:
    report, state, made = Reporter(), {"program": read_program(program)}, ""
    try:
        for stage in stages:
            made = STAGES[stage](state, report)
    except CompileFailed as failure:
        return render(failure.diagnostics, "short", lambda path: None, PLAIN)
    return made
