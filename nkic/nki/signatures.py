"""Signatures and documentation of NKI's functions, from the instruction table and the library."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from inspect import Parameter, Signature
from typing import Any

from nkic.language import library
from nkic.machine.instructions import listing
from nkic.machine.memory import PARTITIONS
from nkic.machine.operands import Attribute, Operand, Row
from nkic.nki import example_costs

Documented = tuple[Signature, str]
_BOTH = Parameter.POSITIONAL_OR_KEYWORD


class Written:
    """A default value as it is written in a signature: `engine.unknown`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def of_row(row: Row) -> Documented:
    """Return the signature and documentation of an instruction."""
    signature = Signature([_parameter(row, name) for name in row.parameters])
    lines = [
        f"{row.name}{_bare(signature)}",
        "",
        row.doc,
        "",
        f"On {listing.availability(row)}. A tile on chip has at most {PARTITIONS} partitions.",
        *filter(None, [example_costs.told(row)]),
        "",
        *(f":param {name}: {text}" for name, text in listing.described(row).items()),
        "",
        f"Source: {row.source}.",
    ]
    return signature, "\n".join(lines)


def _bare(signature: Signature) -> Signature:
    """Return the signature without annotations, for reading."""
    bare = [p.replace(annotation=Parameter.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=bare)


def _parameter(row: Row, name: str) -> Parameter:
    default: Any = _default(row, name)
    return Parameter(name, _BOTH, default=default, annotation=_annotation(row, name))


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
    """Return the signature and documentation of a function of the specialiser."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = Signature([Parameter("args", Parameter.VAR_POSITIONAL)])
    return _bare(signature), inspect.getdoc(function) or ""
