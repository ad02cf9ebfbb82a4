"""The output kinds of `--emit`: a readable form of each stage's result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import unified_diff
from itertools import pairwise
from typing import NamedTuple

from nkic.artifact import disassemble
from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled
from nkic.program.text import graph_text, program_text, schedule_text
from nkic.source.bindings import Resolved, tree_text
from nkic.source.lexer import lex
from nkic.source.parser import load


class EmitForm(NamedTuple):
    """A kind of output: the stage after which it can be made, its file suffix, and its maker."""

    stage: str
    suffix: str
    meaning: str
    make: Callable[[Compiled], str | bytes]


def _tokens(compiled: Compiled) -> str:
    source: SourceFile = compiled.source
    names = load().terminals
    rows = (
        f"{t.line}:{t.column}-{t.end_line}:{t.end_column} {names[t.kind]} {t.text!r}"
        for t in lex(source).tokens
    )
    return "\n".join(rows) + "\n"


def _resolved(compiled: Compiled) -> str:
    """Return the definitions that the kernel reaches, and the files that were read for it."""
    resolved: Resolved = compiled.results["resolve"]
    lines = [f"kernel {resolved.kernel.signature}"]
    lines += [f"module {m.name} {path}" for path, m in resolved.library.modules.items()]
    lines += [f"reaches {d.name} at {d.name_span}" for d in resolved.reached]
    return "\n".join(lines) + "\n"


def _graphs(compiled: Compiled) -> str:
    """Return the graph of each core, including the edges that reuse of memory adds."""
    graphs = compiled.results["search"].graphs
    return "".join(f"core {n}\n{graph_text(graph)}" for n, graph in enumerate(graphs))


FORMS = {
    "tokens": EmitForm("parse", ".tokens", "the tokens of the source", _tokens),
    "ast": EmitForm("parse", ".ast", "the syntax tree", lambda c: tree_text(c.results["parse"])),
    "resolved": EmitForm("resolve", ".resolved", "what the kernel reaches", _resolved),
    "ir": EmitForm(
        "specialise", ".ir", "the program", lambda c: program_text(c.results["specialise"])
    ),
    "lowered": EmitForm(
        "lower", ".lowered.ir", "with access patterns", lambda c: program_text(c.results["lower"])
    ),
    "graph": EmitForm("search", ".graph", "the dependences between instructions", _graphs),
    "allocated": EmitForm(
        "search", ".allocated.ir", "with addresses", lambda c: program_text(c.results["allocate"])
    ),
    "sched": EmitForm(
        "search", ".sched", "with streams", lambda c: schedule_text(c.results["schedule"])
    ),
    "asm": EmitForm(
        "emit", ".asm", "the records as text", lambda c: disassemble.dump(c.executable)
    ),
    "neff": EmitForm("file-audit", ".neff", "the file that nki-run runs", lambda c: c.data),
}


# ---- The changes that each stage made to the program's text, for `--report changes` -------------


class StageText(NamedTuple):
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
    results = compiled.results
    for stage in ("specialise", "lower"):
        if stage in results:
            yield StageText(stage, program_text(results[stage]))
    first = compiled.first_plan
    if first is not None:
        yield StageText("allocate", program_text(first.program))
        yield StageText("schedule", schedule_text(first))
        yield StageText("search", schedule_text(results["schedule"]))
