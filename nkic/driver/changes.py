"""The changes that each stage made to the program's text, for `--report changes`."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from itertools import pairwise
from typing import NamedTuple

from nkic.driver.compiled import Compiled
from nkic.ir.text import program_text, schedule_text


class StageText(NamedTuple):
    """The text of a program after a stage."""

    stage: str
    text: str


def changes(compiled: Compiled) -> Iterator[str]:
    """Yield a unified diff for each stage that changed the program, in order."""
    texts = [*_texts(compiled)]
    for before, after in pairwise(texts):
        lines = unified_diff(
            before.text.splitlines(),
            after.text.splitlines(),
            f"after {before.stage}",
            f"after {after.stage}",
            lineterm="",
        )
        diff = "".join(f"{line}\n" for line in lines)
        if diff:
            yield diff


def _texts(compiled: Compiled) -> Iterator[StageText]:
    """Yield the program after each stage that ran."""
    results = compiled.results
    for stage in ("specialise", "lower"):
        if stage in results:
            yield StageText(stage, program_text(results[stage]))
    first = compiled.first_plan
    if first is not None:
        yield StageText("allocate", program_text(first.program))
        yield StageText("schedule", schedule_text(first))
        yield StageText("search", schedule_text(results["schedule"]))
