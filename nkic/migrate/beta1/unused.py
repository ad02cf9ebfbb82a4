"""Remove index expressions and masks that are no longer used."""

from __future__ import annotations

import re

import libcst as cst

from nkic.base.source import SourceFile
from nkic.migrate.beta1.indices import ARANGE, Indices
from nkic.migrate.facts import Facts
from nkic.migrate.scopes import read_in, scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import target_names, walk

PURE = (ARANGE, "nki.language.program_id", "nki.language.num_programs")


def without_unused(source: SourceFile, like: Sheet) -> str:
    """Return the text without them, and without those that only they used."""
    sheet = Sheet(source, Facts(), like.start, like.target)
    indices = Indices(sheet)
    candidates = [
        candidate
        for candidate in walk(sheet.tree)
        if isinstance(candidate, cst.Assign) and _is_index(indices, candidate)
    ]
    removed = {id(assign) for assign in candidates}
    while read := {id(c) for c in candidates if id(c) in removed and _is_read(sheet, c, removed)}:
        removed -= read
    module = sheet.tree.visit(_Remover(removed))
    assert isinstance(module, cst.Module)
    return module.code


class _Remover(cst.CSTTransformer):
    def __init__(self, removed: set[int]) -> None:
        super().__init__()
        self.gone = removed
        self.before: dict[int, list[cst.EmptyLine]] = {}
        self.comments: list[cst.EmptyLine] = []  # above removed statements, for the next

    def leave_Assign(  # noqa: N802
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.Assign | cst.RemovalSentinel:
        """Remove an assignment that nothing reads."""
        return cst.RemoveFromParent() if id(original_node) in self.gone else updated_node

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        """Keep comments, except those about indices."""
        if not updated_node.body:
            lines = original_node.leading_lines
            text = " ".join(empty_line.comment.value for empty_line in lines if empty_line.comment)
            if text and not _OF_INDICES.search(text):
                self.comments += lines
            return cst.RemoveFromParent()
        return self._with_comments(updated_node)

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:  # noqa: N802
        """Restore the loop's own comments, and those before it."""
        before = self.before.pop(id(original_node), [])
        return updated_node.with_changes(leading_lines=[*before, *updated_node.leading_lines])

    def visit_For(self, node: cst.For) -> None:  # noqa: N802
        """Keep pending comments before the loop, not in it."""
        self.before[id(node)], self.comments = self.comments, []

    def leave_IndentedBlock(  # noqa: N802
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """Put comments after the last statement of a block at its end."""
        footer = [*self.comments, *updated_node.footer]
        self.comments = []
        return updated_node.with_changes(footer=footer)

    def _with_comments(self, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        lines = [*self.comments, *line.leading_lines]
        self.comments = []
        return line.with_changes(leading_lines=lines)


_OF_INDICES = re.compile(r"(?i)\bind(?:ex|exing|ices)\b|\barange\b|\bmgrid\b|\bmask")


def _is_read(sheet: Sheet, node: cst.Assign, removed: set[int]) -> bool:
    """Whether a name that the assignment sets is read in its function, other than by removed
    statements.
    """
    scope = scope_of(sheet, node)
    names = {name.value for target in node.targets for name in target_names(target.target)}
    return scope is None or not names or bool(names & read_in(scope, removed))


def _is_index(indices: Indices, node: cst.Assign) -> bool:
    """Whether the value is made of indices without side effects."""
    calls = [inner for inner in walk(node.value) if isinstance(inner, cst.Call)]
    pure = all(_is_pure(indices.sheet, call.func) for call in calls)
    return pure and indices.has_index(node.value)


def _is_pure(sheet: Sheet, function: cst.BaseExpression) -> bool:
    builtin = any(sheet.is_builtin(function, name) for name in ("min", "max", "len"))
    return builtin or sheet.name_of(function) in PURE
