"""Statements that read elements that a mask may have skipped.

If every write of a tile is under a condition, values computed from it elsewhere are as undefined as
the tile, and Beta 1 writes nothing. The new source must not read an unwritten tile, so such a
statement gets the same condition. Source: NKI's documentation up to SDK 2.26, masking.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from nkic.ir.tensors import Tensor, View
from nkic.language.versions.rewritten import OUTPUTS
from nkic.migrate.arguments import keyword_of
from nkic.migrate.beta1.blocks import Blocks
from nkic.migrate.facts import Facts
from nkic.migrate.scopes import scope_of
from nkic.migrate.tree import names_in, only_target, walk

_UNWRITTEN = ("nki.language.ndarray", "nki.language.empty")


class Hidden:
    """Records the conditions of the statements written so far."""

    def __init__(self, blocks: Blocks) -> None:
        self.indices = blocks.indices
        self.sheet = blocks.sheet
        self._places = blocks.places
        self._conditions: dict[int, str] = {}  # of statements, by their parts

    def note(self, part: cst.BaseSmallStatement, condition: str) -> None:
        """Record the condition of a statement."""
        self._conditions[id(part)] = condition

    def condition(self, part: cst.BaseSmallStatement) -> str:
        """Return the condition on which a statement's inputs exist, if it was skipped in some
        iteration; else "".
        """
        names = {name.value: name for name in _read(part)}
        conditions = {self._of_tile(name, part) for name in names.values()} - {""}
        return conditions.pop() if len(conditions) == 1 else ""

    def _of_tile(self, name: cst.Name, part: cst.BaseSmallStatement) -> str:
        """Return the condition of all writes of a tile that the statement reads."""
        values = self.indices.definitions(name)
        maker = self._place(values[0][1]) if len(values) == 1 else None
        if maker is None or not self._is_left_out(values[0][1], part):
            return ""
        if self.sheet.name_of(getattr(values[0][1], "func", maker)) not in _UNWRITTEN:
            return ""
        writers = [*self._writers(name)]
        conditions = {
            self._conditions.get(id(node), "") if node is not None else "" for node in writers
        }
        text = conditions.pop() if len(conditions) == 1 else ""
        if not text:
            return ""
        read = [*names_in(cst.parse_expression(text))]
        same = self.indices.flow.is_same
        uses = (part, *(writer for writer in writers if writer is not None))
        return text if all(same(n.value, maker, use) for n in read for use in uses) else ""

    def _place(self, expression: cst.BaseExpression) -> cst.CSTNode | None:
        """Return the statement that makes a tile, or before which it is made in the new source."""
        around = [*self.sheet.parents(expression)]
        moved = (self._places[id(node)] for node in around if id(node) in self._places)
        assigned = (node for node in around if isinstance(node, cst.Assign))
        return next(moved, None) or next(assigned, None)

    def _writers(self, name: cst.Name) -> Iterator[cst.CSTNode | None]:
        """Yield the statements that write the tile of a name; None for a possible write."""
        scope = scope_of(self.sheet, name)
        if scope is None:
            yield None
            return
        for node in walk(scope.body):
            if isinstance(node, cst.Assign | cst.AugAssign):
                target = only_target(node)
                if target is None or (
                    isinstance(target, cst.Subscript) and _base(target) == name.value
                ):
                    yield node
            elif isinstance(node, cst.Call) and self._may_write(node, name.value):
                yield None

    def _may_write(self, call: cst.Call, name: str) -> bool:
        """Whether the tile is passed for an output, or to a function of the kernel's own."""
        is_local = not self.sheet.name_of(call.func).startswith("nki.")
        passed = [arg for arg in call.args if _base(arg.value) == name]
        return any(is_local or keyword_of(arg) in OUTPUTS for arg in passed)

    # ---- facts of the evaluations ----------------------------------------------------------

    def _is_left_out(self, maker: cst.BaseExpression, part: cst.BaseSmallStatement) -> bool:
        """Whether, in some iteration, the statement did not read the tile that was made there."""
        at = self.sheet.spot(maker)
        for facts in (self.sheet.facts, *self.sheet.facts.of_other_shapes):
            tiles = set(map(id, facts.tensors.get(at, ())))
            if tiles - set(map(id, self._tensors(facts, part))):
                return True
        return False

    def _tensors(self, facts: Facts, part: cst.BaseSmallStatement) -> Iterator[Tensor]:
        """Yield all tensors that the instructions of a statement access."""
        nodes = (node for node in walk(part) if isinstance(node, cst.BaseExpression))
        for at in {self.sheet.spot(node) for node in (part, *nodes)}:
            for instruction in facts.instructions.get(at, ()):
                yield from (v.tensor for v in instruction.operands if isinstance(v, View))


def _read(part: cst.BaseSmallStatement) -> Iterator[cst.Name]:
    """Return the names in what is assigned to a part of a tile, or passed to a call."""
    value = part.value if isinstance(part, cst.Expr) else None
    if isinstance(part, cst.Assign) and isinstance(part.targets[0].target, cst.Subscript):
        value = part.value
    return names_in(value) if value else iter(())


def _base(node: cst.BaseExpression) -> str:
    """Return the name of what is indexed, or the name itself."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""
