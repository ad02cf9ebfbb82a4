"""Reaching definitions: the assignment from which a name has its value at a use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import libcst as cst

from nkic.migrate.scopes import scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import target_names, walk

Place = tuple[int, int]
_LOOPS = cst.For | cst.While


class Flow:
    """The assignments of a file, function by function."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._setters: dict[int, dict[str, list[cst.CSTNode]]] = {}

    def reaching(
        self, name: str, candidates: Sequence[cst.CSTNode], use: cst.CSTNode
    ) -> cst.CSTNode | None:
        """Return the candidate assignment whose value `use` reads; None if it may be another."""
        if len(candidates) == 1 and self._is_left_behind(candidates[0], use):
            return candidates[0] if self.is_same(name, candidates[0], use) else None
        before = [candidate for candidate in candidates if self.dominates(candidate, use)]
        node = max(before, key=self._start, default=None)
        return node if node is not None and self.is_same(name, node, use) else None

    def is_same(self, name: str, set_at: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the name has the same value at `use` as right after `set_at`, or at it."""
        inside = set(map(id, self._loops(use))) - set(map(id, self._loops(set_at)))
        for setter in self._all_setters(set_at).get(name, ()):
            if setter is set_at or self._is_around(setter, set_at, use):
                continue
            if isinstance(setter, _LOOPS) and id(setter) in inside:
                return False
            if inside & set(map(id, self._loops(setter))):
                return False
            is_after = self._start(set_at) < self._start(setter)
            is_between = is_after and self._end(setter) <= self._start(use)
            if is_between and not self._exclude(setter, use):
                return False
        return True

    def _is_around(self, setter: cst.CSTNode, set_at: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether both nodes are in the loop that sets the name."""
        are_inside = all(
            any(setter is p for p in self.sheet.parents(node)) for node in (set_at, use)
        )
        return are_inside and isinstance(setter, _LOOPS)

    def dominates(self, node: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the node always runs before `use`."""
        if self._end(node) > self._start(use):
            return False
        block = next(p for p in self.sheet.parents(node) if isinstance(p, _BLOCKS))
        return any(parent is block for parent in self.sheet.parents(use))

    def _is_left_behind(self, node: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the node is directly in loops that have ended before `use`."""
        while True:
            block = next(p for p in self.sheet.parents(node) if isinstance(p, _BLOCKS))
            around = self.sheet.parents(use)
            if isinstance(block, cst.Module) or any(parent is block for parent in around):
                return self._end(node) <= self._start(use)
            node = next(self.sheet.parents(block))
            if not isinstance(node, cst.For):
                return False

    def _exclude(self, a: cst.CSTNode, b: cst.CSTNode) -> bool:
        """Whether the nodes are in different branches of one `if`."""
        around = [branching for branching in self.sheet.parents(a) if isinstance(branching, cst.If)]
        return any(
            branching is parent and self._branch(branching, a) is not self._branch(branching, b)
            for branching in around
            for parent in self.sheet.parents(b)
        )

    def _branch(self, node: cst.If, inside: cst.CSTNode) -> cst.CSTNode | None:
        chain = [inside, *self.sheet.parents(inside)]
        return next((part for part in chain if part is node.body or part is node.orelse), None)

    def _loops(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the loops around a node, up to its function; a loop is not around its own
        header.
        """
        for parent in self.sheet.parents(node):
            if isinstance(parent, cst.FunctionDef):
                return
            if isinstance(parent, _LOOPS):
                yield parent

    def _all_setters(self, node: cst.CSTNode) -> dict[str, list[cst.CSTNode]]:
        scope = scope_of(self.sheet, node)
        if id(scope) not in self._setters:
            setters: defaultdict[str, list[cst.CSTNode]] = defaultdict(list)
            for inner in walk(scope.body if scope is not None else self.sheet.tree):
                if inner is not self.sheet.tree and scope_of(self.sheet, inner) is scope:
                    for name in set_by(inner):
                        setters[name].append(inner)
            self._setters[id(scope)] = setters
        return self._setters[id(scope)]

    def _start(self, node: cst.CSTNode) -> Place:
        span = self.sheet.span(node)
        return (span.line, span.column)

    def _end(self, node: cst.CSTNode) -> Place:
        span = self.sheet.span(node)
        return (span.end_line, span.end_column)


_BLOCKS = cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module


def set_by(node: cst.CSTNode) -> Sequence[str]:
    """Return the names that the node itself sets."""
    targets: list[cst.BaseExpression] = []
    if isinstance(node, cst.Assign):
        targets = [assign_target.target for assign_target in node.targets]
    elif isinstance(node, cst.For | cst.AugAssign | cst.AnnAssign | cst.NamedExpr):
        targets = [node.target]
    return [name.value for target in targets for name in target_names(target)]
