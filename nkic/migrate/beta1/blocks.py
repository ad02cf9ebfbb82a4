"""Block dimensions, before that of the partitions, become lists of tiles or free dimensions.

`t = nl.zeros((n, nl.par_dim(128), 512))` with `t[i, 0:128, 0:512]` is `nl.zeros((128, n, 512))`
with `t[0:128, i, 0:512]`: the same bytes of each partition, in one tensor. Where the blocks need
not all be there at once (in PSUM), have addresses, or are passed to functions, it is a list of
tiles with `t[i][0:128, 0:512]`. Source: NKI's guide to removing block dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from nkic.machine.memory import Buffer
from nkic.migrate.arguments import find, is_plain, word
from nkic.migrate.beta1 import allocators
from nkic.migrate.beta1.indices import Indices, code
from nkic.migrate.beta1.slices import NotSlices, SeveralAxes, is_indexed, sliced, subscript
from nkic.migrate.scopes import bound, scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import walk

PARTITIONS = "nki.language.par_dim"
MAKERS = tuple(f"nki.language.{name}" for name in ("ndarray", "zeros", "ones", "full", "empty"))
_HBM = ("hbm", "shared_hbm", "private_hbm")

Key = tuple[int, str]
"""A function (by `id`) and a name of its own."""


@dataclass(frozen=True)
class Kind:
    """How many block dimensions a tensor has, and whether it becomes a list."""

    count: int
    is_list: bool


@dataclass(frozen=True)
class Maker:
    """A call that makes a tensor with block dimensions."""

    call: cst.Call
    shape: list[str]
    count: int
    is_list: bool


class Blocks:
    """The tensors of a file with block dimensions."""

    def __init__(self, indices: Indices) -> None:
        self.indices = indices
        self.sheet = sheet = indices.sheet
        self._kinds: dict[Key, Kind] = {}
        self._calls: dict[int, Maker] = {}
        self._names = {id(node): node for node in walk(sheet.tree) if isinstance(node, cst.Name)}
        self._functions = {
            one.name.value: one for one in walk(sheet.tree) if isinstance(one, cst.FunctionDef)
        }
        self._bound: dict[int, set[str]] = {}
        self._resolved: dict[int, Key] = {}
        self._by_key: dict[Key, list[cst.Name]] = {}
        for name in self._names.values():
            self._by_key.setdefault(self._key(name), []).append(name)
        for node in walk(sheet.tree):
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
                self._look_at(node, node.value)

    def _look_at(self, node: cst.Assign, call: cst.Call) -> None:
        shape = self._shape(call)
        target = node.targets[0].target
        if shape is None or len(node.targets) != 1 or not isinstance(target, cst.Name):
            return
        count = _marked(self.sheet, shape)
        if not count or scope_of(self.sheet, node) is None:
            return
        keys = self._reached(self._key(target), count)
        if keys is None:
            return
        is_list = len(keys) > 1 or self._is_list(call) or any(map(self._is_viewed, keys))
        for key in keys:
            self._kinds[key] = Kind(count, is_list)
        self._calls[id(call)] = Maker(call, [code(one) for one in shape], count, is_list)

    def _is_list(self, call: cst.Call) -> bool:
        """It is in PSUM, or has addresses: a tile for each block."""
        made = self.sheet.facts.tensors.get(self.sheet.spot(call), ())
        in_psum = any(one.buffer is Buffer.PSUM or one.fixed is not None for one in made)
        return in_psum or allocators.is_allocated(self.sheet, call)

    def _is_viewed(self, key: Key) -> bool:
        """An index of it is none that slices say."""
        for use in self._by_key.get(key, ()):
            parent = next(self.sheet.parents(use))
            if isinstance(parent, cst.Subscript) and is_indexed(self.indices, parent):
                try:
                    sliced(self.indices, parent, {})
                except SeveralAxes:
                    return True
                except NotSlices:
                    continue
        return False

    def _shape(self, call: cst.Call) -> list[cst.BaseExpression] | None:
        if self.sheet.name_of(call.func) not in MAKERS or self._in_hbm(call):
            return None
        found = find(call, ("shape",), "shape")
        return _elements(found.value) if found is not None else None

    def _in_hbm(self, call: cst.Call) -> bool:
        said = next((one.value for one in call.args if word(one) == "buffer"), None)
        return said is not None and self.sheet.name_of(said).rpartition(".")[2] in _HBM

    # ---- where they go ---------------------------------------------------------------------

    def _reached(self, start: Key, count: int) -> list[Key] | None:
        """The names that the tensor has, arguments of functions included; None where something
        else is made of it as a whole.
        """
        keys = [start]
        for key in keys:
            for use in self._by_key.get(key, ()):
                if self._is_set(use) or self._is_one(use, count):
                    continue
                argument = self._argument(use)
                if argument is None:
                    text = f"`{use.value}` has block dimensions, and is used as a whole"
                    help = "make a list of tiles, one for each block"
                    self.sheet.leave(use, text, help)
                    return None
                if argument not in keys:
                    keys.append(argument)
        return keys

    def _is_set(self, use: cst.Name) -> bool:
        parent = next(self.sheet.parents(use))
        return isinstance(parent, cst.AssignTarget | cst.Param)

    def _argument(self, use: cst.Name) -> Key | None:
        """The parameter of a function of the file that the name is passed for."""
        argument, call, *_ = self.sheet.parents(use)
        if not isinstance(argument, cst.Arg) or not isinstance(call, cst.Call):
            return None
        function = self._functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
        if function is None or not is_plain(call) or argument.value is not use:
            return None
        params = [one.name.value for one in walk(function.params) if isinstance(one, cst.Param)]
        place = next(n for n, one in enumerate(call.args) if one is argument)
        name = word(argument) or (params[place] if place < len(params) else "")
        return (id(function), name) if name in params else None

    def _key(self, name: cst.Name) -> Key:
        """The function whose name it is: the one inside which it is set."""
        scope = scope_of(self.sheet, name)
        if isinstance(parent := next(self.sheet.parents(name)), cst.Param) and scope is None:
            scope = next(p for p in self.sheet.parents(parent) if isinstance(p, cst.FunctionDef))
        while scope is not None:
            if id(scope) not in self._bound:
                self._bound[id(scope)] = bound(scope)
            if name.value in self._bound[id(scope)]:
                return (id(scope), name.value)
            scope = scope_of(self.sheet, scope)
        return (0, name.value)

    def _is_one(self, use: cst.Name, count: int) -> bool:
        """The use takes one block: a number stands in each block dimension."""
        parent = next(self.sheet.parents(use))
        if isinstance(parent, cst.Arg) and parent.keyword is use:
            return True
        if isinstance(parent, cst.Attribute) and parent.value is use:
            return parent.attr.value == "dtype" and count == 0
        if not isinstance(parent, cst.Subscript) or parent.value is not use:
            return isinstance(parent, cst.Attribute) and parent.attr is use
        first = [one.slice for one in parent.slice[:count]]
        numbers = [one for one in first if isinstance(one, cst.Index) and _is_number(one.value)]
        return len(numbers) == count

    # ---- what becomes of them --------------------------------------------------------------

    def count(self, node: cst.Subscript) -> int:
        """How many block dimensions the tensor that is indexed has."""
        kind = self._kind(node)
        return kind.count if kind is not None else 0

    def _kind(self, node: cst.Subscript) -> Kind | None:
        name = node.value
        return self._kinds.get(self._key(name)) if isinstance(name, cst.Name) else None

    def indexed(
        self, old: cst.Subscript, value: cst.BaseExpression, texts: Sequence[str]
    ) -> cst.Subscript:
        """`value[texts]`, the blocks where they are now."""
        kind = self._kind(old)
        if kind is None:
            return subscript(value, texts)
        if not kind.is_list:
            return subscript(value, front(texts, kind.count))
        made: cst.BaseExpression = value
        for one in texts[: kind.count]:
            made = subscript(made, [one])
        rest = list(texts[kind.count :])
        if not rest and isinstance(next(self.sheet.parents(old)), _WRITTEN):
            rest = ["..."]
        if rest:
            made = subscript(made, rest)
        assert isinstance(made, cst.Subscript)
        return made

    def element(self, old: cst.Subscript) -> tuple[str, int]:
        """The tile of a list that is indexed, as text, and how many dimensions say which."""
        kind = self._kind(old)
        if kind is None:
            return code(old.value), 0
        if not kind.is_list:
            raise NotSlices("it has block dimensions")
        texts = [code(one.slice) for one in old.slice[: kind.count]]
        return f"{code(old.value)}{''.join(f'[{one}]' for one in texts)}", kind.count

    def made(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        """The expression that makes such a tensor."""
        maker = self._calls.get(id(old))
        if maker is None:
            return new
        if not maker.is_list:
            return _shaped(new, front(maker.shape, maker.count))
        counters = [self.sheet.fresh(name) for name in "ijkl"[: maker.count]]
        one = _shaped(new, maker.shape[maker.count :])
        one = allocators.of_block(self.sheet, old, one, counters)
        text = code(one)
        for counter, size in reversed([*zip(counters, maker.shape, strict=False)]):
            text = f"[{text} for {counter} in range({size})]"
        return cst.parse_expression(text)


_WRITTEN = cst.AssignTarget | cst.AugAssign


def _shaped(call: cst.Call, texts: Sequence[str]) -> cst.Call:
    tail = "," if len(texts) == 1 else ""
    shape = cst.parse_expression(f"({', '.join(texts)}{tail})")
    found = find(call, ("shape",), "shape")
    assert found is not None
    changed = call.with_changes(
        args=[one.with_changes(value=shape) if one is found else one for one in call.args]
    )
    assert isinstance(changed, cst.Call)
    return changed


def _elements(value: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The dimensions of a shape that is written out: `(2, n)`, `[2] + [n, m]`."""
    if isinstance(value, cst.Tuple | cst.List):
        return [one.value for one in value.elements]
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        left, right = _elements(value.left), _elements(value.right)
        return [*left, *right] if left is not None and right is not None else None
    return None


def _marked(sheet: Sheet, shape: Sequence[cst.BaseExpression]) -> int:
    """Dimensions before the one that is marked as that of the partitions."""
    marks = [_is_mark(sheet, one) for one in shape]
    return marks.index(True) if marks.count(True) == 1 else 0


def unmarked(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """A tensor in HBM, where there are no partitions, without marks in its shape."""
    said = next((one.value for one in old.args if word(one) == "buffer"), None)
    found = find(old, ("shape",), "shape")
    shape = _elements(found.value) if found is not None else None
    in_hbm = said is not None and sheet.name_of(said).rpartition(".")[2] in _HBM
    if not in_hbm or shape is None or not any(_is_mark(sheet, one) for one in shape):
        return new
    marked = (one.args[0].value if _is_mark(sheet, one) else one for one in shape)  # type: ignore
    return _shaped(new, [code(one) for one in marked])


def _is_mark(sheet: Sheet, one: cst.BaseExpression) -> bool:
    return isinstance(one, cst.Call) and sheet.name_of(one.func) == PARTITIONS


def front(texts: Sequence[str], count: int) -> list[str]:
    """The partition dimension before the `count` block dimensions; all of it, where not named."""
    blocks, rest = texts[:count], texts[count:]
    if not rest or rest[0] == "...":  # which may stand for no dimension, too
        return [":", *blocks, *rest]
    return [rest[0], *blocks, *rest[1:]]


def _is_number(value: cst.BaseExpression) -> bool:
    is_name = isinstance(value, cst.Name) and value.value == "None"
    return not isinstance(value, cst.Ellipsis) and not is_name
