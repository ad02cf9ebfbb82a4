"""Allocators of Beta 1: `buffer=ncc.sbuf.mod_alloc(base_addr=0)` → `address=(0, 0)`.

An allocator's rule for blocks that share addresses becomes arithmetic on the block's number.
Source: NKI's documentation up to SDK 2.26, direct allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import libcst as cst

from nkic.machine.memory import PSUM_BANK_BYTES, Buffer
from nkic.migrate.arguments import COMMA, find, is_plain, keyword, keyword_of, keyword_value, named
from nkic.migrate.beta1.indices import added, code, factor, times, tuple_of
from nkic.migrate.beta1.slices import NotSlices
from nkic.migrate.sheet import Sheet

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
