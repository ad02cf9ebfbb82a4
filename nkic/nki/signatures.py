"""Signatures and documentation of NKI's functions, from the instruction table and the library, with
the cost of an instruction on plain tiles.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from inspect import Parameter, Signature
from typing import Any

from nkic.language import library
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import listing
from nkic.machine.operands import Attribute, AttributeKind, Facts, Operand, Row, Tile
from nkic.machine.rules import violations
from nkic.machine.targets import DEFAULT, PARTITIONS, Buffer
from nkic.machine.timing import timing

FREE, DTYPE = 512, "float32"
_CHOSEN = {AttributeKind.ALU: "add", AttributeKind.ACTIVATION: "exp", AttributeKind.NUMBER: 1.0}


def _cost(row: Row) -> str:
    """Return the cost on tiles of [128, 512] float32 as a sentence; empty if it takes no such
    tiles.
    """
    operands = {operand.name: _example(operand) for operand in row.operands}
    attributes = {attribute.name: _chosen(attribute) for attribute in row.attributes}
    facts = Facts(DEFAULT, operands, attributes, row.engines[0])
    if any(value is ... for value in (*operands.values(), *attributes.values())):
        return ""
    engine = row.choose(facts)
    facts = Facts(DEFAULT, operands, attributes, engine)
    if violations(row, facts):
        return ""
    hold = timing(row, facts, engine).hold / 1000
    size = f"[{PARTITIONS}, {FREE}] {DTYPE}"
    return f"On tiles of {size}, {DEFAULT.name}'s {engine.value} is busy for {hold:.0f} ns."


def _example(operand: Operand) -> Any:
    """Return a tile in SBUF, or the simplest other value that the operand allows."""
    if operand.default is not ...:
        return operand.default
    if operand.optional:
        return None
    if operand.number and operand.column:
        return 1.0
    fits = Buffer.SBUF in operand.buffers and (not operand.dtypes or DTYPE in operand.dtypes)
    dims = ((1, 1),) if operand.column else ((1, FREE),)
    return Tile(Buffer.SBUF, DTYPES[DTYPE], 0, PARTITIONS, dims) if fits else ...


def _chosen(attribute: Attribute) -> Any:
    return _CHOSEN.get(attribute.kind, ...) if attribute.required else attribute.default


Documented = tuple[Signature, str]
_BOTH = Parameter.POSITIONAL_OR_KEYWORD


class Written:
    """A default value as it is written in a signature: `engine.unknown`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def of_row(row: Row) -> Documented:
    parameters = (
        Parameter(name, _BOTH, default=_default(row, name), annotation=_annotation(row, name))
        for name in row.parameters
    )
    signature = Signature([*parameters])
    lines = [
        f"{row.name}{_bare(signature)}",
        "",
        row.doc,
        "",
        f"On {listing.availability(row)}. A tile on chip has at most {PARTITIONS} partitions.",
        *filter(None, [_cost(row)]),
        "",
        *(f":param {name}: {text}" for name, text in listing.described(row).items()),
        "",
        f"Source: {row.source}.",
    ]
    return signature, "\n".join(lines)


def _bare(signature: Signature) -> Signature:
    bare = [p.replace(annotation=Parameter.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=bare)


def _default(row: Row, name: str) -> Any:
    if name in ("engine", "name"):
        return Written("engine.unknown") if name == "engine" else None
    if name == row.spread:
        return Parameter.empty
    definition = _definition(row, name)
    if definition is None or definition.default is ...:
        return Parameter.empty
    return _plain(name, definition.default)


def _plain(name: str, default: Any) -> Any:
    if type(default) in (type(None), bool, int, float, str, tuple):
        return default
    return Written(str(getattr(default, "name", default)))


def _definition(row: Row, name: str) -> Operand | Attribute | None:
    definitions: tuple[Operand | Attribute, ...] = (*row.operands, *row.attributes)
    return next((definition for definition in definitions if definition.name == name), None)


def _annotation(row: Row, name: str) -> Any:
    definition = _definition(row, name)
    if name == "name":
        return "str | None"
    if name == row.spread:
        return "list[NkiTensor]"
    if not isinstance(definition, Operand):
        return Parameter.empty
    kinds = ["NkiTensor"] if definition.buffers else []
    kinds += ["float"] if definition.number else []
    kinds += ["VirtualRegister"] if definition.register else []
    return " | ".join([*kinds, *(["None"] if definition.optional else [])])


@cache
def library_functions() -> dict[str, Documented]:
    """Return the functions of `nki.language` that nkic implements as kernel source."""
    functions: dict[str, Documented] = {}
    for file in dict.fromkeys(library.sources().values()):
        for node in ast.parse(file.text).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                signature, doc = _of_definition(node), ast.get_docstring(node) or ""
                functions[node.name] = (signature, f"{node.name}{signature}\n\n{doc}")
    return functions


def _of_definition(node: ast.FunctionDef) -> Signature:
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults))
    pairs = zip(plain, [*defaults, *args.defaults], strict=True)
    parameters = [Parameter(arg.arg, _BOTH, default=_written(value)) for arg, value in pairs]
    if args.vararg is not None:
        parameters.append(Parameter(args.vararg.arg, Parameter.VAR_POSITIONAL))
    for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        parameters.append(Parameter(arg.arg, Parameter.KEYWORD_ONLY, default=_written(value)))
    return Signature(parameters)


def _written(value: ast.expr | None) -> Any:
    if value is None:
        return Parameter.empty
    try:
        return ast.literal_eval(value)
    except ValueError:
        return Written(ast.unparse(value))


def of_function(function: Any) -> Documented:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = Signature([Parameter("args", Parameter.VAR_POSITIONAL)])
    return _bare(signature), inspect.getdoc(function) or ""
