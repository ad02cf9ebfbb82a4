"""Block dimensions, which precede that of the partitions, become lists of tiles or free dimensions.

`t = nl.zeros((n, nl.par_dim(128), 512))` with `t[i, 0:128, 0:512]` becomes `nl.zeros((128, n,
512))` with `t[0:128, i, 0:512]`: the same bytes of each partition, in one tensor. If the blocks
need not all be live at once (in PSUM), have addresses, or are passed to functions, they become a
list of tiles with `t[i][0:128, 0:512]`. Source: NKI's guide to removing block dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import mul
from typing import NamedTuple

import libcst as cst

from nkic.machine.targets import KIB, PSUM_BANK_BYTES, Buffer
from nkic.migrate.beta1.indices import Indices, Number, Sum, code, factor, number, tuple_of
from nkic.migrate.beta1.slices import NotSlices, SeveralAxes, is_indexed, sliced, subscript
from nkic.migrate.calls import (
    COMMA,
    find,
    is_plain,
    keyword,
    keyword_of,
    keyword_value,
    named,
    parameter_of,
    with_value,
)
from nkic.migrate.sheet import Sheet, bound, names_in, names_set, scope_of, walk

# ---- Allocators of Beta 1: `buffer=ncc.sbuf.mod_alloc(base_addr=0)` → `address=(0, 0)` ----------
# An allocator's rule for blocks that share addresses becomes arithmetic on the block's number.
# Source: NKI's documentation up to SDK 2.26, direct allocation.

_MODULES = {"nki.compiler.sbuf": Buffer.SBUF, "nki.compiler.psum": Buffer.PSUM}
_MODULO, _BY_FUNCTION, _ANY = "mod_alloc", "alloc", "auto_alloc"
_COUNTS = ("num_bank_tiles", "num_par_tiles", "num_free_tiles")
_BASES = ("base_addr", "base_bank", "base_partition")
_BUFFER = "buffer"


def of_block(sheet: Sheet, old: cst.Call, new: cst.Call, block: Sequence[str] = ()) -> cst.Call:
    """Return a call that makes a tile of a block, with its address. Raises `NotSlices`."""
    allocator = _allocator(sheet, old)
    if allocator is None:
        return new
    buffer = keyword(new, _BUFFER)
    assert buffer is not None
    callee = called(sheet, allocator)
    memory, function = callee or (sheet.tensors(old)[0].buffer, "")
    address = ""
    match allocator:
        case _ if callee is None:  # an expression of the kernel's own, which now yields an address
            if block:
                own = "the addresses of its blocks come from an expression of the kernel's own"
                raise NotSlices(own)
            address = code(buffer.value)
        case cst.Call() if function == _MODULO:
            address = _modulo(memory, allocator, block, lambda: _tile(sheet, old, new))
        case cst.Call() if function == _BY_FUNCTION:
            address = _numbers(sheet, old, block)
            address = address or _by_call(sheet, old, new, memory, allocator, block)
    placed = [buffer.with_changes(value=sheet.nl(memory.value))]
    if address:
        place = named("address", cst.parse_expression(address)).with_changes(comma=buffer.comma)
        placed = [placed[0].with_changes(comma=COMMA), place]
    at = new.args.index(buffer)
    return new.with_changes(args=[*new.args[:at], *placed, *new.args[at + 1 :]])


def _allocator(sheet: Sheet, call: cst.Call) -> cst.BaseExpression | None:
    """Return the value of `buffer=` if it is an allocator."""
    value = keyword_value(call, _BUFFER)
    if value is None:
        return None
    if called(sheet, value) is not None:
        return value
    is_placed = any(tensor.fixed is not None for tensor in sheet.tensors(call))
    return value if is_placed and not sheet.name_of(value).startswith("nki.") else None


def called(sheet: Sheet, value: cst.BaseExpression) -> tuple[Buffer, str] | None:
    """Return the memory and the function that an expression calls; None for other expressions.

    `ncc.sbuf.alloc(…)` gives "alloc", a bare `ncc.sbuf` gives "".
    """
    function = value.func if isinstance(value, cst.Call) else value
    name = sheet.name_of(function) or aliases(sheet).get(code(function), "")
    if name in _MODULES:
        return _MODULES[name], ""
    module, _, last = name.rpartition(".")
    return (_MODULES[module], last) if module in _MODULES else None


def aliases(sheet: Sheet) -> Mapping[str, str]:
    """Return the module-level aliases of allocator functions."""
    lines = (line.body for line in sheet.tree.body if isinstance(line, cst.SimpleStatementLine))
    return {
        code(part.targets[0].target): sheet.name_of(part.value)
        for parts in lines
        for part in parts
        if isinstance(part, cst.Assign) and is_alias(sheet, part)
    }


def is_alias(sheet: Sheet, assignment: cst.Assign) -> bool:
    name = sheet.name_of(assignment.value)
    at_top = not any(isinstance(p, cst.FunctionDef) for p in sheet.parents(assignment))
    return at_top and name.rpartition(".")[0] in _MODULES and len(assignment.targets) == 1


def address_of(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.BaseExpression | None:
    """Rewrite `return sb_mod(base_addr=a, …)` in an allocator of the kernel to `return (0, a)`."""
    allocator = called(sheet, old)
    if allocator is None or allocator[1] != _MODULO or not is_plain(old):
        return None
    return cst.parse_expression(_modulo(allocator[0], new, (), lambda: 0))


def _modulo(
    memory: Buffer, call: cst.Call, block: Sequence[str], tile: Callable[[], Number]
) -> str:
    """Return the address that mod_alloc gives a block; `tile` returns its bytes per partition."""
    args = {keyword_of(arg) or _BASES[n]: arg.value for n, arg in enumerate(call.args)}
    byte, bank, first = (number(args[n]) if n in args else 0 for n in _BASES)
    banks, partitions, free = (_number(args.get(name), block) for name in _COUNTS)
    if partitions != 0:
        raise NotSlices("its blocks share partitions")
    if free != 0:
        byte = byte + free * tile()
    if memory is Buffer.PSUM:
        byte = (bank + banks) * PSUM_BANK_BYTES + byte
    return f"({first}, {byte})"


def _number(counts: cst.BaseExpression | None, block: Sequence[str]) -> Number:
    """Return the place of a block among `counts`, modulo each count."""
    if counts is None or not block:
        return 0
    if not isinstance(counts, cst.Tuple | cst.List):
        raise NotSlices(f"`{code(counts)}` is not a literal")
    sizes = [number(element.value) for element in counts.elements]
    total: Number = 0
    for position, (counter, size) in enumerate(zip(block, sizes, strict=False)):
        if size != 1:
            step: Number = reduce(mul, sizes[position + 1 :], 1)
            total = total + Sum(((1, f"{counter} % {factor(size)}"),)) * step
    return total


def _tile(sheet: Sheet, old: cst.Call, new: cst.Call) -> Number:
    """Return the bytes per partition of one block.

    It is a number if all evaluations found the same one, else an expression from its shape.
    """
    at = sheet.spot(old)
    evaluations = sheet.facts.of_all_shapes
    tensors = [tensor for facts in evaluations for tensor in facts.tensors.get(at, ())]
    sizes = {prod(tensor.shape[1:]) * tensor.dtype.size for tensor in tensors}
    if len(sizes) == 1:
        return sizes.pop()
    types = {tensor.dtype.size for tensor in tensors}
    shape = find(new, ("shape",), "shape")
    if len(types) != 1 or shape is None or not isinstance(shape.value, cst.Tuple):
        raise NotSlices("its size is unknown, or changes from iteration to iteration")
    counts: list[Number] = [number(element.value) for element in shape.value.elements[1:]]
    return reduce(mul, [*counts, types.pop()])


def _numbers(sheet: Sheet, call: cst.Call, block: Sequence[str]) -> str:
    """Return the evaluated address, if there is a single one, or one for each block; else ""."""
    tensors = sheet.tensors(call)
    fixed = [tensor.fixed for tensor in tensors if tensor.fixed is not None]
    places = [(address.partition, address.byte) for address in fixed]
    distinct = list(dict.fromkeys(places))
    if len(distinct) == 1:
        return str(distinct[0])
    if len(block) != 1 or not distinct or distinct * (len(tensors) // len(distinct)) != places:
        return ""
    return f"({', '.join(map(str, distinct))})[{block[0]}]"


def _by_call(
    sheet: Sheet, old: cst.Call, new: cst.Call, memory: Buffer, call: cst.Call, block: Sequence[str]
) -> str:
    """Return the address that the kernel's own function gives a block. Raises `NotSlices`."""
    shape = find(new, ("shape",), "shape")
    if len(call.args) != 1 or shape is None or not isinstance(shape.value, cst.Tuple):
        raise NotSlices("its address is computed by a function")
    first = shape.value.elements[0].value
    marked = isinstance(first, cst.Call) and code(first.func).rpartition(".")[2] == "par_dim"
    rows = code(first.args[0].value) if isinstance(first, cst.Call) and marked else code(first)
    index = tuple_of(block)
    args = f"idx={index}, pdim_size={rows}, fdim_size={_tile(sheet, old, new)}"
    text = f"{factor(code(call.args[0].value))}({args})"
    if memory is Buffer.SBUF:
        return text
    address = f"(partition, bank * {PSUM_BANK_BYTES} + byte)"
    return f"(lambda bank, partition, byte: {address})(*{text})"


# ------------------------------------------------------------------------------------------------
# The place where a tensor with block dimensions can be made as a tile: inside the loops that count
# them.
#
# `t = nl.zeros((n, nl.par_dim(128), m))` before `for i in range(n):`, with all uses `t[i, …]` in
# that loop, becomes a tile of (128, m) that each iteration makes for itself.


class Place(NamedTuple):
    """The statement before which the tile is made, and the block dimensions that vanish."""

    before: cst.CSTNode
    gone: frozenset[int]


def place_of(
    sheet: Sheet, maker: cst.CSTNode, uses: Sequence[cst.Subscript], count: int
) -> Place | None:
    """Return the innermost place that all uses allow; None if the tensor stays where it is made."""
    chains = [_loops(sheet, use, maker) for use in uses]
    inner: cst.For | None = None
    counted_dims: set[int] = set()
    for loops in zip(*chains, strict=False):
        loop = loops[0]
        dim = _dimension(loop, uses, count)
        is_shared = all(loop_of_use is loop for loop_of_use in loops)
        if not is_shared or dim is None or dim in counted_dims:
            break
        counted_dims.add(dim)
        inner = loop
    if inner is None or not isinstance(inner.body, cst.IndentedBlock):
        return None
    around = {id(p) for use in uses for p in (use, *sheet.parents(use))}
    first = next(statement for statement in inner.body.body if id(statement) in around)
    return Place(first, frozenset(counted_dims))


def _loops(sheet: Sheet, use: cst.CSTNode, node: cst.CSTNode) -> list[cst.For]:
    outside = {id(parent) for parent in sheet.parents(node)}
    inside = [parent for parent in sheet.parents(use) if id(parent) not in outside]
    if any(isinstance(parent, cst.FunctionDef | cst.While | cst.Lambda) for parent in inside):
        return []
    return [parent for parent in reversed(inside) if isinstance(parent, cst.For)]


def _dimension(loop: cst.For, uses: Sequence[cst.Subscript], count: int) -> int | None:
    """Return the block dimension in which every use has the loop's counter."""
    name = loop.target.value if isinstance(loop.target, cst.Name) else ""
    if any(name in names_set(node) for node in walk(loop.body)):
        return None
    dims = [
        {dim for dim, element in enumerate(use.slice[:count]) if code(element.slice) == name}
        for use in uses
    ]
    return min(set.intersection(*dims), default=None)


# --------------------------------------------------------------------------------------------------

BLOCKS = "a block dimension"
PARTITIONS = "nki.language.par_dim"
MAKERS = tuple(f"nki.language.{name}" for name in ("ndarray", "zeros", "ones", "full", "empty"))
MAX_BYTES = 96 * KIB  # per partition; above it blocks become lists: half of trn1's SBUF
DTYPE, SHAPE, VIEW = "dtype", "shape", "view"
_HBM = ("hbm", "shared_hbm", "private_hbm")

Key = tuple[int, str]  # a function (by `id`) and a local name of it


@dataclass(frozen=True)
class Kind:
    """The number of a tensor's block dimensions, and their new form.

    `is_list`: the remaining ones become a list. `gone` are those that vanish because the tile is
    made inside the loops that count them.
    """

    count: int
    is_list: bool
    gone: frozenset[int] = frozenset()

    def kept(self, blocks: Sequence[str]) -> list[str]:
        return [block for place, block in enumerate(blocks) if place not in self.gone]


@dataclass(frozen=True)
class Maker:
    """A call that makes a tensor with block dimensions."""

    call: cst.Call
    shape: list[str]
    kind: Kind


Shapes = Mapping[str, frozenset[tuple[int, ...]]]


def by_name(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> Shapes:
    names: dict[str, set[tuple[int, ...]]] = {}
    for name, shape in shapes:
        names.setdefault(name, set()).add(shape)
    return {name: frozenset(shapes) for name, shapes in names.items()}


class Blocks:
    """The tensors of a file that have block dimensions, and the evaluated shapes of all."""

    def __init__(self, indices: Indices) -> None:
        self.indices = indices
        self.sheet = sheet = indices.sheet
        every = (tensor for tensors in sheet.facts.tensors.values() for tensor in tensors)
        self.shapes = by_name((tensor.name, tensor.shape) for tensor in every)
        self._kinds: dict[Key, Kind] = {}
        self._calls: dict[int, Maker] = {}
        self.places: dict[int, cst.CSTNode] = {}  # the destinations of moved statements
        functions = (node for node in walk(sheet.tree) if isinstance(node, cst.FunctionDef))
        self._functions = {function.name.value: function for function in functions}
        self._bound: dict[int, set[str]] = {}
        self._by_key: dict[Key, list[cst.Name]] = {}
        for name in names_in(sheet.tree):
            self._by_key.setdefault(self._key(name), []).append(name)
        makers = [
            self._look_at(node, node.value)
            for node in walk(sheet.tree)
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call)
        ]
        self._shorten([maker for maker in makers if maker is not None])

    def _look_at(self, node: cst.Assign, call: cst.Call) -> tuple[Maker, Sequence[Key]] | None:
        """Register the tensor that a call makes with its names; return None for other calls."""
        known = self.sheet.name_of(call.func) in MAKERS and not _in_hbm(self.sheet, call)
        shape = _shape(call) if known else None
        target = node.targets[0].target
        if shape is None or len(node.targets) != 1 or not isinstance(target, cst.Name):
            return None
        marks = [_marked_size(self.sheet, size) is not None for size in shape]
        count = marks.index(True) if marks.count(True) == 1 else 0  # those before the partitions
        if not count or scope_of(self.sheet, node) is None:
            return None
        keys = self._reached(self._key(target), count)
        if keys is None:
            return None
        # In PSUM or with addresses, it becomes a tile for each block.
        is_list = len(keys) > 1 or _allocator(self.sheet, call) is not None
        is_list = is_list or any(
            t.buffer is Buffer.PSUM or t.fixed is not None for t in self.sheet.tensors(call)
        )
        is_list = is_list or any(self._is_viewed(key) for key in keys)
        place = self._place(node, call, keys, count)
        kind = Kind(count, is_list, place.gone if place is not None else frozenset())
        if place is not None:
            self.places[id(next(self.sheet.parents(node)))] = place.before
        for key in keys:
            self._kinds[key] = kind
        maker = self._calls[id(call)] = Maker(call, [*map(code, shape)], kind)
        return maker, keys

    def _place(
        self, node: cst.Assign, call: cst.Call, keys: Sequence[Key], count: int
    ) -> Place | None:
        """Return the place inside the loops that count its blocks, if all of its uses are there."""
        uses = [use for use in self._by_key.get(keys[0], ()) if not self._is_set(use)]
        around = [next(self.sheet.parents(use)) for use in uses]
        indexed = [parent for parent in around if isinstance(parent, cst.Subscript)]
        if len(keys) > 1 or len(indexed) < len(uses) or _allocator(self.sheet, call):
            return None
        place = place_of(self.sheet, node, indexed, count)
        names = {name.value for name in names_in(call)}
        is_same = self.indices.flow.is_same
        if place is None or not all(is_same(name, node, place.before) for name in names):
            return None
        return place

    def _shorten(self, makers: Sequence[tuple[Maker, Sequence[Key]]]) -> None:
        """Turn the tensors in SBUF into lists if they do not all fit as tensors.

        The tiles of a list need not all be live at once.
        """
        sizes = [self._bytes(maker) for maker, _ in makers]
        if sum(sizes) <= MAX_BYTES:
            return
        for (maker, keys), size in zip(makers, sizes, strict=True):
            if size:
                kind = replace(maker.kind, is_list=True)
                self._calls[id(maker.call)] = replace(maker, kind=kind)
                self._kinds.update(dict.fromkeys(keys, kind))

    def _bytes(self, maker: Maker) -> int:
        """Return the evaluated bytes per partition of a tensor that stays one; 0 for others."""
        tensors = self.sheet.tensors(maker.call)
        kind = maker.kind
        if kind.is_list or len(kind.gone) == kind.count:
            return 0
        total = sum(prod(tensor.shape[1:]) * tensor.dtype.size for tensor in tensors)
        turns = [maker.shape[place] for place in kind.gone]
        return total // self.sheet.facts.runs // prod(int(n) for n in turns if n.isdecimal())

    def _is_viewed(self, key: Key) -> bool:
        """Whether an index of it cannot be expressed by slices, or its shape is used."""
        for use in self._by_key.get(key, ()):
            parent = next(self.sheet.parents(use))
            if isinstance(parent, cst.Attribute) and parent.value is use:
                if parent.attr.value == SHAPE:
                    return True
            elif isinstance(parent, cst.Subscript) and is_indexed(self.indices, parent):
                try:
                    sliced(self.indices, parent, {})
                except SeveralAxes:
                    return True
                except NotSlices:
                    continue
        return False

    # ---- uses ------------------------------------------------------------------------------

    def _reached(self, start: Key, count: int) -> list[Key] | None:
        """Return the names of the tensor, including parameters of called functions.

        Returns None if the tensor is used as a whole in any other way.
        """
        keys = [start]
        for key in keys:
            for use in self._by_key.get(key, ()):
                if self._is_set(use) or self._is_one(use, count):
                    continue
                argument = self._argument(use)
                if argument is None:
                    text = f"`{use.value}` has block dimensions, and is used as a whole"
                    self.sheet.leave(use, text, "make a list of tiles, one for each block")
                    return None
                if argument not in keys:
                    keys.append(argument)
        return keys

    def _is_set(self, use: cst.Name) -> bool:
        return isinstance(next(self.sheet.parents(use)), cst.AssignTarget | cst.Param)

    def _argument(self, use: cst.Name) -> Key | None:
        """Return the parameter of a function of the file for which the name is passed."""
        argument, call, *_ = self.sheet.parents(use)
        if not isinstance(argument, cst.Arg) or not isinstance(call, cst.Call):
            return None
        function = self._functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
        if function is None or not is_plain(call) or argument.value is not use:
            return None
        params = [p.name.value for p in walk(function.params) if isinstance(p, cst.Param)]
        place = next(n for n, arg in enumerate(call.args) if arg is argument)
        name = parameter_of(argument, place, params)
        return (id(function), name) if name in params else None

    def _key(self, name: cst.Name) -> Key:
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
        """Whether the use takes one block: a number in each block dimension."""
        match next(self.sheet.parents(use)):
            case cst.Arg(keyword=word):
                return word is use
            case cst.Attribute(value, attr):
                return value is not use or attr.value in (DTYPE, SHAPE) or self._is_view(use, count)
            case cst.Subscript(value, slice) if value is use:
                first = [element.slice for element in slice[:count]]
                return len(first) == count and all(map(_is_number, first))
        return False

    def _is_view(self, use: cst.CSTNode, count: int) -> bool:
        """Whether the use is `t.view(dtype)[k, 0:128, 0:n]` with all of the last dimension."""
        _, call, index, *_ = self.sheet.parents(use)
        if not isinstance(index, cst.Subscript) or _viewed(call) is not use:
            return False
        return len(index.slice) > count + 1 and self._is_one(call, count)

    # ---- new forms -------------------------------------------------------------------------

    def count(self, node: cst.Subscript) -> int:
        kind = self.kind(node)
        return kind.count if kind is not None else 0

    def kind(self, node: cst.Subscript) -> Kind | None:
        """Return what became of the block dimensions of the indexed tensor."""
        name = _viewed(node.value)
        return self._kinds.get(self._key(name)) if name is not None else None

    def is_tensor(self, name: cst.Name) -> bool:
        """Whether the name is one tensor rather than a list of tiles."""
        kind = self._kinds.get(self._key(name))
        return kind is None or not kind.is_list or len(kind.gone) == kind.count

    def indexed(
        self, old: cst.Subscript, value: cst.BaseExpression, texts: Sequence[str]
    ) -> cst.BaseExpression:
        """Return `value[texts]`, with the blocks in their new positions."""
        kind = self.kind(old)
        if kind is None:
            return subscript(value, texts)
        blocks, rest = kind.kept(texts[: kind.count]), list(texts[kind.count :])
        if blocks and not kind.is_list:
            return subscript(value, front([*blocks, *rest], len(blocks)))
        expression = _of_list(value, blocks)
        if not rest and isinstance(next(self.sheet.parents(old)), _WRITTEN):
            rest = ["..."]
        return subscript(expression, rest) if rest else expression

    def attribute(self, old: cst.Attribute) -> str:
        """Rewrite `t.dtype` and `t.shape` of a list of tiles; "" for everything else."""
        kind = self._kinds.get(self._key(old.value)) if isinstance(old.value, cst.Name) else None
        name = old.attr.value
        if kind is None or not kind.is_list or name not in (DTYPE, SHAPE):
            return ""
        tiles = [f"{code(old.value)}{'[0]' * depth}" for depth in range(kind.count + 1)]
        if name == DTYPE:
            return f"{tiles[-1]}.{DTYPE}"
        lengths = ", ".join(f"len({tile})" for tile in tiles[:-1])
        return f"({lengths}, *{tiles[-1]}.{SHAPE})"

    def element(self, old: cst.Subscript) -> tuple[str, int]:
        kind = self.kind(old)
        if kind is None:
            return code(old.value), 0
        if not isinstance(old.value, cst.Name):
            raise NotSlices("it has block dimensions, and is viewed with another element type")
        texts = kind.kept([code(element.slice) for element in old.slice[: kind.count]])
        if texts and not kind.is_list:
            raise NotSlices("it has block dimensions")
        return f"{code(old.value)}{''.join(f'[{text}]' for text in texts)}", kind.count

    def tile(self, old: cst.BaseExpression) -> str:
        """Return a list's tile that is used as a whole, as text; "" for everything else."""
        kind = self.kind(old) if isinstance(old, cst.Subscript) else None
        if kind is None or not isinstance(old, cst.Subscript):
            return ""
        is_whole = kind.is_list and len(old.slice) == kind.count > len(kind.gone)
        return self.element(old)[0] if is_whole else ""

    def made(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        maker = self._calls.get(id(old))
        if maker is None:
            return new
        count = maker.kind.count
        blocks = maker.kind.kept(maker.shape[:count])
        if not maker.kind.is_list:
            return _shaped(new, front([*blocks, *maker.shape[count:]], len(blocks)))
        counters = [self.sheet.fresh(name) for name in "ijklmnop"[: len(blocks)]]
        call = _shaped(new, maker.shape[count:])
        call = of_block(self.sheet, old, call, counters)
        text = code(call)
        for counter, size in reversed([*zip(counters, blocks, strict=True)]):
            text = f"[{text} for {counter} in range({size})]"
        return cst.parse_expression(text)


_WRITTEN = cst.AssignTarget | cst.AugAssign


def _viewed(value: cst.CSTNode) -> cst.Name | None:
    """Return the name of the tensor in `t` and `t.view(dtype)`."""
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        value = value.func.value if value.func.attr.value == VIEW else value
    return value if isinstance(value, cst.Name) else None


def _of_list(value: cst.BaseExpression, blocks: Sequence[str]) -> cst.BaseExpression:
    """Return `t[block]` or `t[block].view(dtype)`."""
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        inner = _of_list(value.func.value, blocks)
        return value.with_changes(func=value.func.with_changes(value=inner))
    for block in blocks:
        value = subscript(value, [block])
    return value


def _shaped(call: cst.Call, texts: Sequence[str]) -> cst.Call:
    arg = find(call, (SHAPE,), SHAPE)
    assert arg is not None
    return with_value(call, arg, cst.parse_expression(tuple_of(texts)))


def _in_hbm(sheet: Sheet, call: cst.Call) -> bool:
    buffer = keyword_value(call, "buffer")
    return buffer is not None and sheet.name_of(buffer).rpartition(".")[2] in _HBM


def _shape(call: cst.Call) -> list[cst.BaseExpression] | None:
    """Return the dimensions of a call's shape, if that is a literal: `(2, n)`, `[2] + [n, m]`."""
    arg = find(call, (SHAPE,), SHAPE)
    return _elements(arg.value) if arg is not None else None


def _elements(value: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    match value:
        case cst.Tuple(elements) | cst.List(elements):
            return [element.value for element in elements]
        case cst.BinaryOperation(left, cst.Add(), right):
            first, second = _elements(left), _elements(right)
            return [*first, *second] if first is not None and second is not None else None
    return None


def unmarked(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Remove the partition marks from the shape of a tensor in HBM, which has no partitions."""
    shape = _shape(old) if _in_hbm(sheet, old) else None
    sizes = [_marked_size(sheet, size) or size for size in shape or ()]
    return new if shape is None or sizes == shape else _shaped(new, [*map(code, sizes)])


def _marked_size(sheet: Sheet, size: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return n of `nl.par_dim(n)`; None for other sizes."""
    match size:
        case cst.Call(function, (mark, *_)) if sheet.name_of(function) == PARTITIONS:
            return mark.value
    return None


def front(texts: Sequence[str], count: int) -> list[str]:
    """Move the partition dimension before the `count` block dimensions; all of it if not named."""
    blocks, rest = texts[:count], texts[count:]
    if not rest or rest[0] == "...":  # an ellipsis may also stand for no dimension
        return [":", *blocks, *rest]
    return [rest[0], *blocks, *rest[1:]]


def _is_number(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and code(part) not in ("None", "...")
