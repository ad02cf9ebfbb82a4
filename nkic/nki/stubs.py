"""Type stubs of the modules that nkic provides as `nki`, for type checkers and editors.

`python -m nkic.nki.stubs FOLDER` writes the package FOLDER/nki: set `mypy_path` or Pyright's
`stubPath` to FOLDER. The stubs are generated on demand, so they always match the instruction table.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from nkic.nki import modules, names

_HEAD = "# Written by `python -m nkic.nki.stubs` from nkic's tables.\n"
_IMPORTS = "import builtins\nfrom enum import Enum, IntEnum\nfrom typing import Any\n"
_STARS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
_WORD = re.compile(r"\w+")
_KNOWN = frozenset({"NkiTensor", "None", "Any", *["float", "int", "bool", "str", "list", "tuple"]})
_BOOL = re.compile(r"\bbool\b")
_SPECIAL = ("__getitem__", "__enter__", "__exit__")
_BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"),
    *("lshift", "rshift", "and", "or", "xor"),
)
_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *(*_BINARY, *(f"r{name}" for name in _BINARY)),
        *("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"),
    )
)


def stub(module: str) -> str:
    lines = [_HEAD + _IMPORTS]
    if module in ("nki.isa", "nki.collectives", "nki.typing"):
        lines[0] += "from nki.language import NkiTensor\n"
    values = modules.vars_of(modules.built(module)).items()
    # Classes first, because values are annotated with them.
    in_order = sorted(values, key=lambda pair: (not isinstance(pair[1], type), pair[0]))
    definitions = [line for name, value in in_order for line in _definition(module, name, value)]
    if module == "nki.typing":
        definitions.append("def __getattr__(name: str) -> Any: ...")
    return "\n".join([*lines, *definitions]) + "\n"


def _definition(module: str, name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type) and issubclass(value, Enum):
        yield from _enumeration(name, value)
    elif isinstance(value, names.Function) or inspect.isfunction(value):
        yield from _function(name, value)
    elif isinstance(value, names.KernelType) and value.__dict__["inside"] is None:
        return  # an annotation such as tensor[128, 512], which is Any to type checkers
    elif isinstance(value, names.KernelType) and value.__module__ != module:
        yield f"from {value.__module__} import {value.__name__} as {name}"
    elif isinstance(value, type):
        yield from _class(name, value)
    elif isinstance(value, Enum):
        yield f"{name}: {type(value).__name__}"
    else:
        yield f"{name}: {'str' if isinstance(value, str) else 'Any'}"


def _enumeration(name: str, value: type[Enum]) -> Iterator[str]:
    kind = "IntEnum" if issubclass(value, int) else "Enum"
    yield f"class {name}({kind}):"
    yield from (f"    {member.name} = {member.value!r}" for member in value)


def _class(name: str, value: type) -> Iterator[str]:
    if value is str:
        yield f"{name} = str"
        return
    if name == "ndarray":  # a constructor of tensors that isinstance accepts
        yield f"{name} = NkiTensor"
        return
    yield f"class {name}{_base(value)}:"
    yield _docstring(value.__doc__)
    yield "    def __init__(self, *args: Any, **more: Any) -> None: ..."
    if isinstance(value, names.KernelType):
        yield from _members(value.__dict__["inside"])


def _base(value: type) -> str:
    """Return the base class to state: that of exceptions, or another class of the same module."""
    if issubclass(value, Exception):
        return "(Exception)"
    if not isinstance(value, names.KernelType):
        return ""
    shown = modules.vars_of(modules.built(value.__module__)).items()
    inside = {
        kind.__dict__["inside"]: name for name, kind in shown if isinstance(kind, names.KernelType)
    }
    bases = [inside[one] for one in value.__dict__["inside"].__mro__[1:] if one in inside]
    return f"({bases[0]})" if bases else ""


def _members(inside: type) -> Iterator[str]:
    """Yield the members of an object that kernels use, without the operators that it rejects."""
    for name, member in vars(inside).items():
        if name in _OPERATORS:
            yield from _operator(name, member)
            continue
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(member, property):
            annotation = inspect.signature(member.fget or _nothing).return_annotation
            yield f"    @property\n    def {name}(self) -> {_annotation(annotation)}:"
        elif inspect.isfunction(member):
            signature = inspect.signature(member)
            parameters = ", ".join(_parameters(signature)).replace("self: Any", "self", 1)
            yield f"    def {name}({parameters}) -> {_annotation(signature.return_annotation)}:"
        else:
            yield f"    {name}: Any"
            continue
        yield _docstring(member.__doc__, "        ")


def _operator(name: str, member: Any) -> Iterator[str]:
    if inspect.signature(member).return_annotation != "NoReturn":
        words = "self, other: Any" if len(inspect.signature(member).parameters) == 2 else "self"
        yield f"    def {name}({words}) -> Any: ..."


def _nothing() -> None:
    """The getter of a property without one."""


def _function(name: str, value: Any) -> Iterator[str]:
    signature = getattr(value, "__signature__", None)
    if signature is None:
        signature = None if isinstance(value, names.Function) else inspect.signature(value)
    parameters = (
        "*args: Any, **more: Any" if signature is None else ", ".join(_parameters(signature))
    )
    yield f"def {name}({parameters}) -> Any:"
    yield _docstring(value.__doc__)


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    has_star = False  # after a bare `*`
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            yield "*"
        has_star = has_star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        star = _STARS.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else " = ..."
        yield f"{star}{parameter.name}: {_annotation(parameter.annotation)}{default}"


def _annotation(annotation: Any) -> str:
    """Return the annotation if it consists of names known to every stub; else Any."""
    if not isinstance(annotation, str) or not annotation:
        return "Any"
    if not {*_WORD.findall(annotation)} <= _KNOWN:
        return "Any"
    return _BOOL.sub("builtins.bool", annotation)  # nki.language has a dtype of that name


def _docstring(doc: str | None, indent: str = "    ") -> str:
    text = inspect.cleandoc(doc or "").replace("\\", "\\\\").replace('"""', "'''")
    end = f"\n{indent}" if "\n" in text else ""
    return textwrap.indent(f'"""{text}', indent) + f'{end}"""'


def write(folder: Path) -> None:
    for module, text in texts().items():
        path = folder / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def texts() -> dict[str, str]:
    files = {}
    for module in modules.module_names():
        parts = module.split(".")[1:]
        inner = any(other.startswith(f"{module}.") for other in modules.module_names())
        name = "/".join([*parts, "__init__"]) if inner else "/".join(parts)
        files[f"nki/{name}.pyi"] = stub(module)
    return files


if __name__ == "__main__":
    write(Path(sys.argv[1]))
