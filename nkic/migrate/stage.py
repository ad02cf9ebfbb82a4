"""Migrate one file: parse it, and apply the rules of the table with the facts of its evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst

from nkic.base.diagnostics import Diagnostic, Level, make
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE, SourceFile, Span
from nkic.migrate.beta1.unused import without_unused
from nkic.migrate.beta1.writer import Writer as Beta1Writer
from nkic.migrate.facts import Facts
from nkic.migrate.places import moved_back
from nkic.migrate.sheet import Sheet
from nkic.migrate.table import RULES
from nkic.specialise.inline import with_version

_BY_NODE = {kind: [r for r in RULES if r.node is kind] for kind in {r.node for r in RULES}}


class Migrated(NamedTuple):
    """The new text, how often each rule was applied, and what was left unchanged."""

    text: str
    done: Mapping[str, int]
    left: tuple[Diagnostic, ...]


def migrate(source: SourceFile, facts: Facts, start: Profile | None, target: Profile) -> Migrated:
    """Rewrite `source`, which must parse, for `target`.

    `start` is its version, None if unknown: then every rule applies whose old form is valid in no
    later version.
    """
    former: tuple[Diagnostic, ...] = ()
    skipped: tuple[Span, ...] = ()
    done: Counter[str] = Counter()
    text = source.text
    if start is Profile.BETA1:
        sheet = Sheet(source, facts, start, target)
        writer = Beta1Writer(sheet)
        module = writer.pending.restored(sheet.tree.visit(writer), sheet)
        skipped = tuple(writer.skipped.values())
        text = without_unused(SourceFile(source.path, _with_imports(module, sheet).code), sheet)
        spilled = [_spilled(Span(source.path, *at)) for at in sorted(facts.spills)]
        former, done, facts = (*sheet.left, *spilled), sheet.done, Facts()
    sheet = Sheet(SourceFile(source.path, text), facts, start, target)
    module = sheet.tree.visit(_Writer(sheet))
    later = moved_back(sheet.left, source.text, text)
    left = (*former, *(d for d in later if not _is_in(_place(d), skipped)))
    new = with_version(_with_imports(module, sheet).code, target)
    return Migrated(new, done + sheet.done, tuple(sorted(left, key=_place)))


def _spilled(kernel: Span) -> Diagnostic:
    """Return a warning about tiles that Beta 1's compiler spills by itself."""
    text = "SBUF has no room for all tiles of this kernel: Beta 1 spills some to HBM by itself"
    help = "compile the new source with --spill, or use smaller blocks"
    return make("not-migrated", text, kernel, help=help, level=Level.WARNING)


def _is_in(place: Span, functions: Sequence[Span]) -> bool:
    """Whether the place is in a function that has already been reported as a whole."""
    return any(span.line <= place.line <= span.end_line for span in functions)


def _place(diagnostic: Diagnostic) -> Span:
    return diagnostic.primary.span if diagnostic.primary is not None else NOWHERE


class _Writer(cst.CSTTransformer):
    """Applies the rules to every node on leaving it."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self.sheet = sheet

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Return the node that replaces an old one."""
        node = super().on_leave(original_node, updated_node)
        for rule in _BY_NODE.get(type(original_node), ()):
            if type(node) is not type(original_node) or not self.sheet.due(rule.since):
                continue
            replacement = rule.write(self.sheet, original_node, node)
            if replacement is not None:
                self.sheet.done[rule.title] += 1
                node = replacement
        return node


def _with_imports(tree: cst.Module, sheet: Sheet) -> cst.Module:
    """Return the file with the imports that rules requested, after its own."""
    wanted = sheet.wanted
    if not wanted:
        return tree
    modules = (alias if name == alias else f"{name} as {alias}" for alias, name in wanted.items())
    lines = [cst.parse_statement(f"import {text}") for text in modules]
    last = max((n for n, statement in enumerate(tree.body) if _imports(statement)), default=-1)
    return tree.with_changes(body=[*tree.body[: last + 1], *lines, *tree.body[last + 1 :]])


def _imports(statement: cst.CSTNode) -> bool:
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return any(isinstance(part, cst.Import | cst.ImportFrom) for part in parts)
