"""Block dimensions, before that of the partitions, become free dimensions behind it.

`t = nl.zeros((n, nl.par_dim(128), 512))` with `t[i, 0:128, 0:512]` is `nl.zeros((128, n, 512))`
with `t[0:128, i, 0:512]`: the same bytes of each partition, in one tensor. Source: NKI's guide to
removing block dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from nkic.migrate.arguments import find
from nkic.migrate.beta1.indices import code
from nkic.migrate.scopes import scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import walk

PARTITIONS = "nki.language.par_dim"
MAKERS = tuple(f"nki.language.{name}" for name in ("ndarray", "zeros", "ones", "full", "empty"))


class Blocks:
    """The tensors of a file with block dimensions: how many each has."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._counts: dict[tuple[int, str], int] = {}
        self._calls: dict[int, int] = {}
        for node in walk(sheet.tree):
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
                self._look_at(node, node.value)

    def _look_at(self, node: cst.Assign, call: cst.Call) -> None:
        count = self._blocks(call)
        target = node.targets[0].target
        scope = scope_of(self.sheet, node)
        if not count or len(node.targets) != 1 or scope is None or not isinstance(target, cst.Name):
            return
        uses = [n for n in walk(scope.body) if isinstance(n, cst.Name) and n.value == target.value]
        others = [use for use in uses if use is not target and not self._is_one(use, count)]
        if others:
            text = f"`{target.value}` has block dimensions, and is used as a whole"
            self.sheet.leave(others[0], text, "make a list of tiles, one for each block")
            return
        self._counts[id(scope), target.value] = count
        self._calls[id(call)] = count

    def _blocks(self, call: cst.Call) -> int:
        """Dimensions before the one that the call marks as that of the partitions."""
        shape = self._shape(call)
        if shape is None:
            return 0
        marks = [self._is_mark(element.value) for element in shape.elements]
        return marks.index(True) if marks.count(True) == 1 else 0

    def _shape(self, call: cst.Call) -> cst.Tuple | None:
        if self.sheet.name_of(call.func) not in MAKERS:
            return None
        found = find(call, ("shape",), "shape")
        return found.value if found is not None and isinstance(found.value, cst.Tuple) else None

    def _is_mark(self, value: cst.BaseExpression) -> bool:
        return isinstance(value, cst.Call) and self.sheet.name_of(value.func) == PARTITIONS

    def _is_one(self, use: cst.Name, count: int) -> bool:
        """The use takes one block: a number stands in each block dimension."""
        parent = next(self.sheet.parents(use))
        if isinstance(parent, cst.Attribute) and parent.value is use:
            return parent.attr.value == "dtype"
        if not isinstance(parent, cst.Subscript) or parent.value is not use:
            return False
        first = [one.slice for one in parent.slice[:count]]
        numbers = [one for one in first if isinstance(one, cst.Index) and _is_number(one.value)]
        return len(numbers) == count

    # ---- what becomes of them --------------------------------------------------------------

    def count(self, node: cst.Subscript) -> int:
        """How many block dimensions the tensor that is indexed has."""
        name = node.value
        if not isinstance(name, cst.Name):
            return 0
        return self._counts.get((id(scope_of(self.sheet, name)), name.value), 0)

    def made(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """The call that makes such a tensor, the partition dimension in front."""
        count = self._calls.get(id(old), 0)
        shape = self._shape(old)
        if not count or shape is None:
            return new
        texts = [code(element.value) for element in shape.elements]
        text = f"({', '.join(front(texts, count))})"
        changed = new.deep_replace(_new_shape(new), cst.parse_expression(text))
        assert isinstance(changed, cst.Call)
        return changed


def front(texts: Sequence[str], count: int) -> list[str]:
    """The partition dimension before the `count` block dimensions; all of it, where not named."""
    blocks, rest = texts[:count], texts[count:]
    if not rest or rest[0] == "...":  # which may stand for no dimension, too
        return [":", *blocks, *rest]
    return [rest[0], *blocks, *rest[1:]]


def _new_shape(call: cst.Call) -> cst.BaseExpression:
    found = find(call, ("shape",), "shape")
    assert found is not None
    return found.value


def _is_number(value: cst.BaseExpression) -> bool:
    is_name = isinstance(value, cst.Name) and value.value == "None"
    return not isinstance(value, cst.Ellipsis) and not is_name
