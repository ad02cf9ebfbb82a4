"""Block dimensions, which precede that of the partitions, become lists of tiles or free dimensions.

`t = nl.zeros((n, nl.par_dim(128), 512))` with `t[i, 0:128, 0:512]` becomes `nl.zeros((128, n,
512))` with `t[0:128, i, 0:512]`: the same bytes of each partition, in one tensor. If the blocks
need not all be live at once (in PSUM), have addresses, or are passed to functions, they become a
list of tiles with `t[i][0:128, 0:512]`. Source: NKI's guide to removing block dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import libcst as cst

from nkic.machine.targets import KIB, PSUM_BANK_BYTES, Buffer
from nkic.migrate.beta1.indices import Indices, added, code, factor, times, tuple_of
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


def is_allocated(sheet: Sheet, call: cst.Call) -> bool:
    """Whether the call chooses the addresses of its tensors."""
    return _allocator(sheet, call) is not None


def plain(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Return a call that makes one tile, with its address. Raises `NotSlices`."""
    return of_block(sheet, old, new, ())


def of_block(sheet: Sheet, old: cst.Call, new: cst.Call, block: Sequence[str]) -> cst.Call:
    """Return a call that makes the tile of a block, whose indices are the names `block`. Raises
    `NotSlices`.
    """
    allocator = _allocator(sheet, old)
    if allocator is None:
        return new
    buffer = keyword(new, _BUFFER)
    assert buffer is not None
    callee = called(sheet, allocator)
    if callee is None:
        return _elsewhere(sheet, old, new, buffer, block)
    memory, function = callee
    assert isinstance(allocator, cst.Call) or function in ("", _ANY)
    address = ""
    if function == _MODULO:
        assert isinstance(allocator, cst.Call)
        address = _modulo(memory, _words(allocator), block, lambda: _tile(sheet, old, new))
    elif function == _BY_FUNCTION:
        assert isinstance(allocator, cst.Call)
        address = _numbers(sheet, old, block) or _by_call(sheet, old, new, memory, allocator, block)
    return _placed(sheet, new, buffer, memory, address)


def _placed(
    sheet: Sheet, call: cst.Call, buffer: cst.Arg, memory: Buffer, address: str
) -> cst.Call:
    args = []
    for arg in call.args:
        if arg is not buffer:
            args.append(arg)
            continue
        value = sheet.nl(memory.value)
        if not address:
            args.append(arg.with_changes(value=value))
            continue
        args.append(arg.with_changes(value=value, comma=COMMA))
        args.append(named("address", cst.parse_expression(address)).with_changes(comma=arg.comma))
    return call.with_changes(args=args)


def _elsewhere(
    sheet: Sheet, old: cst.Call, new: cst.Call, buffer: cst.Arg, block: Sequence[str]
) -> cst.Call:
    """Return the call for a `buffer=` expression of the kernel's own, which now yields an
    address.
    """
    if block:
        raise NotSlices("the addresses of its blocks come from an expression of the kernel's own")
    memory = sheet.tensors(old)[0].buffer
    return _placed(sheet, new, buffer, memory, code(buffer.value))


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
    names = {}
    for statement in sheet.tree.body:
        for assignment in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(assignment, cst.Assign) and is_alias(sheet, assignment):
                names[code(assignment.targets[0].target)] = sheet.name_of(assignment.value)
    return names


def is_alias(sheet: Sheet, assignment: cst.Assign) -> bool:
    """Whether an assignment is such an alias: `sb_mod = nki.compiler.sbuf.mod_alloc`."""
    name = sheet.name_of(assignment.value)
    at_top = not any(isinstance(p, cst.FunctionDef) for p in sheet.parents(assignment))
    return at_top and name.rpartition(".")[0] in _MODULES and len(assignment.targets) == 1


def address_of(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.BaseExpression | None:
    """Rewrite `return sb_mod(base_addr=a, …)` in an allocator of the kernel's own to `return (0,
    a)`.
    """
    allocator = called(sheet, old)
    if allocator is None or allocator[1] != _MODULO or not is_plain(old):
        return None
    return cst.parse_expression(_modulo(allocator[0], _words(new), (), lambda: "0"))


def _words(call: cst.Call) -> dict[str, cst.BaseExpression]:
    names = ("base_addr",)
    return {keyword_of(arg) or names[n]: arg.value for n, arg in enumerate(call.args)}


def _modulo(
    memory: Buffer,
    args: Mapping[str, cst.BaseExpression],
    block: Sequence[str],
    tile: Callable[[], str],
) -> str:
    """Return the address that mod_alloc gives a block; `tile` returns the block's bytes per
    partition.
    """
    byte, bank, first = (code(args[n]) if n in args else "0" for n in _BASES)
    banks, partitions, free = (_number(args.get(name), block) for name in _COUNTS)
    if partitions != "0":
        raise NotSlices("its blocks share partitions")
    byte = added(byte, times(free, tile())) if free != "0" else byte
    if memory is Buffer.PSUM:
        byte = added(times(added(bank, banks), str(PSUM_BANK_BYTES)), byte)
    return f"({first}, {byte})"


def _number(counts: cst.BaseExpression | None, block: Sequence[str]) -> str:
    """Return the place of a block among `counts`, modulo each count."""
    if counts is None or not block:
        return "0"
    if not isinstance(counts, cst.Tuple | cst.List):
        raise NotSlices(f"`{code(counts)}` is not a literal")
    sizes = [code(element.value) for element in counts.elements]
    text = "0"
    for position, (counter, size) in enumerate(zip(block, sizes, strict=False)):
        if size == "1":
            continue
        step = "1"
        for later in sizes[position + 1 :]:
            step = times(step, later)
        term = f"{counter} % {factor(size)}"
        text = added(text, term if step == "1" else f"({term}) * {factor(step)}")
    return f"({text})" if " " in text else text


def _tile(sheet: Sheet, old: cst.Call, new: cst.Call) -> str:
    """Return the bytes per partition of one block.

    It is a number if all evaluations found the same one, else an expression from its shape.
    """
    at = sheet.spot(old)
    evaluations = (sheet.facts, *sheet.facts.of_other_shapes)
    tensors = [tensor for facts in evaluations for tensor in facts.tensors.get(at, ())]
    sizes = {prod(tensor.shape[1:]) * tensor.dtype.size for tensor in tensors}
    if len(sizes) == 1:
        return str(sizes.pop())
    types = {tensor.dtype.size for tensor in tensors}
    shape = find(new, ("shape",), "shape")
    if len(types) != 1 or shape is None or not isinstance(shape.value, cst.Tuple):
        raise NotSlices("its size is unknown, or changes from iteration to iteration")
    text = "1"
    for element in shape.value.elements[1:]:
        text = times(text, code(element.value))
    return times(text, str(types.pop()))


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
    sheet: Sheet,
    old: cst.Call,
    new: cst.Call,
    memory: Buffer,
    call: cst.Call,
    block: Sequence[str],
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
    """Return the loops around a use but not around the definition, the outermost first."""
    outside = {id(parent) for parent in sheet.parents(node)}
    inside = [parent for parent in sheet.parents(use) if id(parent) not in outside]
    if any(isinstance(parent, cst.FunctionDef | cst.While | cst.Lambda) for parent in inside):
        return []
    return [parent for parent in reversed(inside) if isinstance(parent, cst.For)]


def _dimension(loop: cst.For, uses: Sequence[cst.Subscript], count: int) -> int | None:
    """Return the block dimension in which every use has the loop's counter, if nothing changes
    that.
    """
    name = loop.target.value if isinstance(loop.target, cst.Name) else ""
    if any(name in names_set(node) for node in walk(loop.body)):
        return None
    dims = [
        {dim for dim, element in enumerate(use.slice[:count]) if _names(element) == name}
        for use in uses
    ]
    return min(set.intersection(*dims), default=None)


def _names(element: cst.SubscriptElement) -> str:
    inner = element.slice
    value = inner.value if isinstance(inner, cst.Index) else None
    return value.value if isinstance(value, cst.Name) else ""


# --------------------------------------------------------------------------------------------------

BLOCKS = "a block dimension"
PARTITIONS = "nki.language.par_dim"
MAKERS = tuple(f"nki.language.{name}" for name in ("ndarray", "zeros", "ones", "full", "empty"))
MAX_BYTES = 96 * KIB  # per partition; above it blocks become lists: half of trn1's SBUF
DTYPE, SHAPE, VIEW = "dtype", "shape", "view"
_HBM = ("hbm", "shared_hbm", "private_hbm")

Key = tuple[int, str]
"""A function (by `id`) and a local name of it."""


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
        """Return the items of the block dimensions that remain."""
        return [block for place, block in enumerate(blocks) if place not in self.gone]


@dataclass(frozen=True)
class Maker:
    """A call that makes a tensor with block dimensions."""

    call: cst.Call
    shape: list[str]
    kind: Kind


class Blocks:
    """The tensors of a file that have block dimensions."""

    def __init__(self, indices: Indices) -> None:
        self.indices = indices
        self.sheet = sheet = indices.sheet
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
        maker = self._calls[id(call)] = Maker(call, [*map(code, shape)], kind)
        return maker, keys

    def _place(
        self, node: cst.Assign, call: cst.Call, keys: Sequence[Key], count: int
    ) -> Place | None:
        """Return the place inside the loops that count its blocks, if all uses of the tile are
        there.
        """
        uses = [use for use in self._by_key.get(keys[0], ()) if not self._is_set(use)]
        around = [next(self.sheet.parents(use)) for use in uses]
        indexed = [parent for parent in around if isinstance(parent, cst.Subscript)]
        if len(keys) > 1 or len(indexed) < len(uses) or is_allocated(self.sheet, call):
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
        """Return the evaluated bytes per partition of a tensor that stays a tensor; 0 for
        others.
        """
        tensors = self.sheet.tensors(maker.call)
        kind = maker.kind
        if kind.is_list or len(kind.gone) == kind.count:
            return 0
        total = sum(prod(tensor.shape[1:]) * tensor.dtype.size for tensor in tensors)
        turns = [maker.shape[place] for place in kind.gone]
        return total // self.sheet.facts.runs // prod(int(n) for n in turns if n.isdecimal())

    def _is_list(self, call: cst.Call) -> bool:
        """Whether it is in PSUM or has addresses, and thus becomes a tile for each block."""
        in_psum = any(
            t.buffer is Buffer.PSUM or t.fixed is not None for t in self.sheet.tensors(call)
        )
        return in_psum or is_allocated(self.sheet, call)

    def _is_viewed(self, key: Key) -> bool:
        """Whether an index of it cannot be expressed by slices."""
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
        """Whether its shape is used, blocks first."""
        return any(attribute_of(self.sheet, use) == SHAPE for use in self._by_key.get(key, ()))

    def _shape(self, call: cst.Call) -> list[cst.BaseExpression] | None:
        if self.sheet.name_of(call.func) not in MAKERS or _in_hbm(self.sheet, call):
            return None
        return _shape(call)

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
        """Return the function that binds the name, with the name."""
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
        parent = next(self.sheet.parents(use))
        if isinstance(parent, cst.Arg) and parent.keyword is use:
            return True
        if isinstance(parent, cst.Attribute) and parent.value is use:
            return parent.attr.value in (DTYPE, SHAPE) or self._is_view_of_one(use, count)
        if not isinstance(parent, cst.Subscript) or parent.value is not use:
            return isinstance(parent, cst.Attribute) and parent.attr is use
        first = [element.slice for element in parent.slice[:count]]
        numbers = [n for n in first if isinstance(n, cst.Index) and _is_number(n.value)]
        return len(numbers) == count

    def _is_view_of_one(self, use: cst.CSTNode, count: int) -> bool:
        """Whether the use is `t.view(dtype)[k, 0:128, 0:n]` with all of the last dimension, which a
        type changes.
        """
        _, call, index, *_ = self.sheet.parents(use)
        if not isinstance(index, cst.Subscript) or _viewed(call) is not use:
            return False
        return len(index.slice) > count + 1 and self._is_one(call, count)

    # ---- new forms -------------------------------------------------------------------------

    def count(self, node: cst.Subscript) -> int:
        """Return the number of block dimensions of the indexed tensor."""
        kind = self._kind(node)
        return kind.count if kind is not None else 0

    def _kind(self, node: cst.Subscript) -> Kind | None:
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
        kind = self._kind(old)
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
        assert isinstance(old.value, cst.Name)
        tiles = [f"{old.value.value}{'[0]' * depth}" for depth in range(kind.count + 1)]
        if name == DTYPE:
            return f"{tiles[-1]}.{DTYPE}"
        lengths = ", ".join(f"len({tile})" for tile in tiles[:-1])
        return f"({lengths}, *{tiles[-1]}.{SHAPE})"

    def element(self, old: cst.Subscript) -> tuple[str, int]:
        """Return the indexed tile of a list, as text, and how many dimensions select it."""
        kind = self._kind(old)
        if kind is None:
            return code(old.value), 0
        if not isinstance(old.value, cst.Name):
            raise NotSlices("it has block dimensions, and is viewed with another element type")
        texts = kind.kept([code(element.slice) for element in old.slice[: kind.count]])
        if texts and not kind.is_list:
            raise NotSlices("it has block dimensions")
        return f"{code(old.value)}{''.join(f'[{text}]' for text in texts)}", kind.count

    def target(self, call: cst.Call) -> str:
        """Return the part of a tensor that a call is assigned to, if plain slices express it."""
        statement = next(self.sheet.parents(call))
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Subscript) or self._kind(target) is not None:
            return ""
        plain = all(isinstance(element.slice, cst.Slice) for element in target.slice)
        return code(target) if plain and not is_indexed(self.indices, target) else ""

    def tile(self, old: cst.BaseExpression) -> str:
        """Return a list's tile that is used as a whole, as text; "" for everything else."""
        kind = self._kind(old) if isinstance(old, cst.Subscript) else None
        if kind is None or not isinstance(old, cst.Subscript):
            return ""
        is_whole = kind.is_list and len(old.slice) == kind.count > len(kind.gone)
        return self.element(old)[0] if is_whole else ""

    def made(self, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
        """Return the expression that makes such a tensor."""
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


def attribute_of(sheet: Sheet, name: cst.Name) -> str:
    """Return the attribute read from a name: "shape" for `t.shape`; "" if none."""
    parent = next(sheet.parents(name))
    is_owner = isinstance(parent, cst.Attribute) and parent.value is name
    return parent.attr.value if is_owner and isinstance(parent, cst.Attribute) else ""


def _shaped(call: cst.Call, texts: Sequence[str]) -> cst.Call:
    arg = find(call, (SHAPE,), SHAPE)
    assert arg is not None
    return with_value(call, arg, cst.parse_expression(tuple_of(texts)))


def _in_hbm(sheet: Sheet, call: cst.Call) -> bool:
    buffer = keyword_value(call, "buffer")
    return buffer is not None and sheet.name_of(buffer).rpartition(".")[2] in _HBM


def _shape(call: cst.Call) -> list[cst.BaseExpression] | None:
    """Return the dimensions of a call's shape, if that is a literal."""
    arg = find(call, (SHAPE,), SHAPE)
    return _elements(arg.value) if arg is not None else None


def _elements(value: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """Return the dimensions of a literal shape: `(2, n)`, `[2] + [n, m]`."""
    if isinstance(value, cst.Tuple | cst.List):
        return [element.value for element in value.elements]
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        left, right = _elements(value.left), _elements(value.right)
        return [*left, *right] if left is not None and right is not None else None
    return None


def _marked(sheet: Sheet, shape: Sequence[cst.BaseExpression]) -> int:
    """Return the number of dimensions before the one marked as that of the partitions."""
    marks = [_marked_size(sheet, size) is not None for size in shape]
    return marks.index(True) if marks.count(True) == 1 else 0


def unmarked(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Remove the partition marks from the shape of a tensor in HBM, which has no partitions."""
    shape = _shape(old) if _in_hbm(sheet, old) else None
    sizes = [_marked_size(sheet, size) or size for size in shape or ()]
    return new if shape is None or sizes == shape else _shaped(new, [*map(code, sizes)])


def _marked_size(sheet: Sheet, size: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return n of `nl.par_dim(n)`; None for other sizes."""
    is_mark = isinstance(size, cst.Call) and sheet.name_of(size.func) == PARTITIONS
    return size.args[0].value if isinstance(size, cst.Call) and is_mark else None


def front(texts: Sequence[str], count: int) -> list[str]:
    """Move the partition dimension before the `count` block dimensions; all of it if not named."""
    blocks, rest = texts[:count], texts[count:]
    if not rest or rest[0] == "...":  # an ellipsis may also stand for no dimension
        return [":", *blocks, *rest]
    return [rest[0], *blocks, *rest[1:]]


def _is_number(value: cst.BaseExpression) -> bool:
    is_name = isinstance(value, cst.Name) and value.value == "None"
    return not isinstance(value, cst.Ellipsis) and not is_name
