"""Block dimensions, before that of the partitions, become lists of tiles or free dimensions.

`t = nl.zeros((n, nl.par_dim(128), 512))` with `t[i, 0:128, 0:512]` is `nl.zeros((128, n, 512))`
with `t[0:128, i, 0:512]`: the same bytes of each partition, in one tensor. Where the blocks need
not all be there at once (in PSUM), have addresses, or are passed to functions, it is a list of
tiles with `t[i][0:128, 0:512]`. Source: NKI's guide to removing block dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import libcst as cst

from nkic.machine.memory import Buffer
from nkic.machine.targets import KIB
from nkic.migrate.arguments import find, is_plain, word
from nkic.migrate.beta1 import allocators
from nkic.migrate.beta1.indices import Indices, code
from nkic.migrate.beta1.placing import Place, place_of
from nkic.migrate.beta1.slices import NotSlices, SeveralAxes, is_indexed, sliced, subscript
from nkic.migrate.scopes import bound, scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import walk

BLOCKS = "a block dimension"
PARTITIONS = "nki.language.par_dim"
MAKERS = tuple(f"nki.language.{name}" for name in ("ndarray", "zeros", "ones", "full", "empty"))
MOST_BYTES = 96 * KIB  # of all in a partition, from which on blocks are lists: half of trn1's
DTYPE, SHAPE, VIEW = "dtype", "shape", "view"
_HBM = ("hbm", "shared_hbm", "private_hbm")

Key = tuple[int, str]
"""A function (by `id`) and a name of its own."""


@dataclass(frozen=True)
class Kind:
    """How many block dimensions a tensor has, whether those that stay become a list, and which
    go, because the tile is made inside of the loops that count them.
    """

    count: int
    is_list: bool
    gone: frozenset[int] = frozenset()

    def kept(self, blocks: Sequence[str]) -> list[str]:
        """What is said of the block dimensions that stay."""
        return [one for place, one in enumerate(blocks) if place not in self.gone]


@dataclass(frozen=True)
class Maker:
    """A call that makes a tensor with block dimensions."""

    call: cst.Call
    shape: list[str]
    kind: Kind


class Blocks:
    """The tensors of a file with block dimensions."""

    def __init__(self, indices: Indices) -> None:
        self.indices = indices
        self.sheet = sheet = indices.sheet
        self._kinds: dict[Key, Kind] = {}
        self._calls: dict[int, Maker] = {}
        self.places: dict[int, cst.CSTNode] = {}  # of statements that move: what they stand before
        self._names = {id(node): node for node in walk(sheet.tree) if isinstance(node, cst.Name)}
        self._functions = {
            one.name.value: one for one in walk(sheet.tree) if isinstance(one, cst.FunctionDef)
        }
        self._bound: dict[int, set[str]] = {}
        self._resolved: dict[int, Key] = {}
        self._by_key: dict[Key, list[cst.Name]] = {}
        for name in self._names.values():
            self._by_key.setdefault(self._key(name), []).append(name)
        found = [
            self._look_at(node, node.value)
            for node in walk(sheet.tree)
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call)
        ]
        self._shorten([one for one in found if one is not None])

    def _look_at(self, node: cst.Assign, call: cst.Call) -> tuple[Maker, Sequence[Key]] | None:
        """A tensor that a call makes, and the names that it has; None for all others."""
        shape = self._shape(call)
        target = node.targets[0].target
        if shape is None or len(node.targets) != 1 or not isinstance(target, cst.Name):
            return None
        count = _marked(self.sheet, shape)
        if not count or scope_of(self.sheet, node) is None:
            return None
        keys = self._reached(self._key(target), count)
        if keys is None:
            return None
        is_list = len(keys) > 1 or self._is_list(call)
        is_list = is_list or any(self._is_viewed(key) or self._is_measured(key) for key in keys)
        place = self._place(node, call, keys, count)
        kind = Kind(count, is_list, place.gone if place is not None else frozenset())
        if place is not None:
            self.places[id(next(self.sheet.parents(node)))] = place.before
        for key in keys:
            self._kinds[key] = kind
        maker = self._calls[id(call)] = Maker(call, [code(one) for one in shape], kind)
        return maker, keys

    def _place(
        self, node: cst.Assign, call: cst.Call, keys: Sequence[Key], count: int
    ) -> Place | None:
        """Where the tile is made instead, if all that uses it is in loops that count its blocks."""
        uses = [use for use in self._by_key.get(keys[0], ()) if not self._is_set(use)]
        around = [next(self.sheet.parents(use)) for use in uses]
        indexed = [one for one in around if isinstance(one, cst.Subscript)]
        if len(keys) > 1 or len(indexed) < len(uses) or allocators.is_allocated(self.sheet, call):
            return None
        found = place_of(self.sheet, node, indexed, count)
        names = {one.value for one in walk(call) if isinstance(one, cst.Name)}
        is_same = self.indices.flow.is_same
        if found is None or not all(is_same(name, node, found.before) for name in names):
            return None
        return found

    def _shorten(self, makers: Sequence[tuple[Maker, Sequence[Key]]]) -> None:
        """Makes lists of those in SBUF where all of them do not fit as tiles: a list's tiles need
        not all be there at once.
        """
        sizes = [self._bytes(maker) for maker, _ in makers]
        if sum(sizes) <= MOST_BYTES:
            return
        for (maker, keys), size in zip(makers, sizes, strict=True):
            if size:
                kind = replace(maker.kind, is_list=True)
                self._calls[id(maker.call)] = replace(maker, kind=kind)
                self._kinds.update(dict.fromkeys(keys, kind))

    def _bytes(self, maker: Maker) -> int:
        """The bytes in each partition of a tensor that stays one, as the evaluation found them."""
        made = self.sheet.facts.tensors.get(self.sheet.spot(maker.call), ())
        kind = maker.kind
        if kind.is_list or len(kind.gone) == kind.count:
            return 0
        total = sum(prod(one.shape[1:]) * one.dtype.size for one in made)
        turns = [maker.shape[place] for place in kind.gone]
        return total // self.sheet.facts.runs // prod(int(n) for n in turns if n.isdecimal())

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

    def _is_measured(self, key: Key) -> bool:
        """Its shape is asked for, blocks first."""
        return any(attribute_of(self.sheet, use) == SHAPE for use in self._by_key.get(key, ()))

    def _shape(self, call: cst.Call) -> list[cst.BaseExpression] | None:
        if self.sheet.name_of(call.func) not in MAKERS or self._in_hbm(call):
            return None
        found = find(call, (SHAPE,), SHAPE)
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

    def _is_one(self, use: cst.CSTNode, count: int) -> bool:
        """The use takes one block: a number stands in each block dimension."""
        parent = next(self.sheet.parents(use))
        if isinstance(parent, cst.Arg) and parent.keyword is use:
            return True
        if isinstance(parent, cst.Attribute) and parent.value is use:
            return parent.attr.value in (DTYPE, SHAPE) or self._is_view_of_one(use, count)
        if not isinstance(parent, cst.Subscript) or parent.value is not use:
            return isinstance(parent, cst.Attribute) and parent.attr is use
        first = [one.slice for one in parent.slice[:count]]
        numbers = [one for one in first if isinstance(one, cst.Index) and _is_number(one.value)]
        return len(numbers) == count

    def _is_view_of_one(self, use: cst.CSTNode, count: int) -> bool:
        """`t.view(dtype)[k, 0:128, 0:n]`: the last dimension stays, which a type changes."""
        _, call, index, *_ = self.sheet.parents(use)
        if not isinstance(index, cst.Subscript) or _viewed(call) is not use:
            return False
        return len(index.slice) > count + 1 and self._is_one(call, count)

    # ---- what becomes of them --------------------------------------------------------------

    def count(self, node: cst.Subscript) -> int:
        """How many block dimensions the tensor that is indexed has."""
        kind = self._kind(node)
        return kind.count if kind is not None else 0

    def _kind(self, node: cst.Subscript) -> Kind | None:
        name = _viewed(node.value)
        return self._kinds.get(self._key(name)) if name is not None else None

    def is_tensor(self, name: cst.Name) -> bool:
        """The name is one tensor, and no list of tiles."""
        kind = self._kinds.get(self._key(name))
        return kind is None or not kind.is_list or len(kind.gone) == kind.count

    def indexed(
        self, old: cst.Subscript, value: cst.BaseExpression, texts: Sequence[str]
    ) -> cst.BaseExpression:
        """`value[texts]`, the blocks where they are now."""
        kind = self._kind(old)
        if kind is None:
            return subscript(value, texts)
        blocks, rest = kind.kept(texts[: kind.count]), list(texts[kind.count :])
        if blocks and not kind.is_list:
            return subscript(value, front([*blocks, *rest], len(blocks)))
        made = _of_list(value, blocks)
        if not rest and isinstance(next(self.sheet.parents(old)), _WRITTEN):
            rest = ["..."]
        return subscript(made, rest) if rest else made

    def attribute(self, old: cst.Attribute) -> str:
        """`t.dtype` and `t.shape` of a list: those of its first tile, and how many there are; ""
        for everything else.
        """
        kind = self._kinds.get(self._key(old.value)) if isinstance(old.value, cst.Name) else None
        name = old.attr.value
        if kind is None or not kind.is_list or name not in (DTYPE, SHAPE):
            return ""
        assert isinstance(old.value, cst.Name)
        tiles = [f"{old.value.value}{'[0]' * depth}" for depth in range(kind.count + 1)]
        if name == DTYPE:
            return f"{tiles[-1]}.{DTYPE}"
        lengths = ", ".join(f"len({one})" for one in tiles[:-1])
        return f"({lengths}, *{tiles[-1]}.{SHAPE})"

    def element(self, old: cst.Subscript) -> tuple[str, int]:
        """The tile of a list that is indexed, as text, and how many dimensions say which."""
        kind = self._kind(old)
        if kind is None:
            return code(old.value), 0
        if not isinstance(old.value, cst.Name):
            raise NotSlices("it has block dimensions, and is viewed with another element type")
        texts = kind.kept([code(one.slice) for one in old.slice[: kind.count]])
        if texts and not kind.is_list:
            raise NotSlices("it has block dimensions")
        return f"{code(old.value)}{''.join(f'[{one}]' for one in texts)}", kind.count

    def target(self, call: cst.Call) -> str:
        """The part of a tensor that a call is assigned to, if slices say it, which stay."""
        statement = next(self.sheet.parents(call))
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Subscript) or self._kind(target) is not None:
            return ""
        plain = all(isinstance(one.slice, cst.Slice) for one in target.slice)
        return code(target) if plain and not is_indexed(self.indices, target) else ""

    def tile(self, old: cst.BaseExpression) -> str:
        """A tile of a list that is taken as a whole, as text; "" for everything else."""
        kind = self._kind(old) if isinstance(old, cst.Subscript) else None
        if kind is None or not isinstance(old, cst.Subscript):
            return ""
        is_whole = kind.is_list and len(old.slice) == kind.count > len(kind.gone)
        return self.element(old)[0] if is_whole else ""

    def made(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        """The expression that makes such a tensor."""
        maker = self._calls.get(id(old))
        if maker is None:
            return new
        count = maker.kind.count
        blocks = maker.kind.kept(maker.shape[:count])
        if not maker.kind.is_list:
            return _shaped(new, front([*blocks, *maker.shape[count:]], len(blocks)))
        counters = [self.sheet.fresh(name) for name in "ijklmnop"[: len(blocks)]]
        one = _shaped(new, maker.shape[count:])
        one = allocators.of_block(self.sheet, old, one, counters)
        text = code(one)
        for counter, size in reversed([*zip(counters, blocks, strict=True)]):
            text = f"[{text} for {counter} in range({size})]"
        return cst.parse_expression(text)


_WRITTEN = cst.AssignTarget | cst.AugAssign


def _viewed(value: cst.CSTNode) -> cst.Name | None:
    """The name of the tensor in `t` and `t.view(dtype)`."""
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        value = value.func.value if value.func.attr.value == VIEW else value
    return value if isinstance(value, cst.Name) else None


def _of_list(value: cst.BaseExpression, blocks: Sequence[str]) -> cst.BaseExpression:
    """`t[block]`, `t[block].view(dtype)`."""
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        inner = _of_list(value.func.value, blocks)
        return value.with_changes(func=value.func.with_changes(value=inner))
    for one in blocks:
        value = subscript(value, [one])
    return value


def attribute_of(sheet: Sheet, name: cst.Name) -> str:
    """What is asked of a name: "shape" of `t.shape`; "" where nothing is."""
    parent = next(sheet.parents(name))
    is_owner = isinstance(parent, cst.Attribute) and parent.value is name
    return parent.attr.value if is_owner and isinstance(parent, cst.Attribute) else ""


def _shaped(call: cst.Call, texts: Sequence[str]) -> cst.Call:
    tail = "," if len(texts) == 1 else ""
    shape = cst.parse_expression(f"({', '.join(texts)}{tail})")
    found = find(call, (SHAPE,), SHAPE)
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
    found = find(old, (SHAPE,), SHAPE)
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
