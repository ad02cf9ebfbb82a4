"""A live function as a kernel to trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from nkic.base.source import SourceFile
from nkic.specialise.native.sources import Parse, Sources
from nkic.syntax import nodes
from nkic.syntax.bindings import Kernel

FindSource = Callable[[CodeType, Mapping[str, Any]], SourceFile | None]


@dataclass(frozen=True)
class LiveKernel:
    """A function of the running program, and its arguments.

    `arguments` are live values by parameter; arguments that are tensors are only in the request.
    `replace(value, tensors)` returns the kernel's version of a value inside an argument, such as
    the tensor for an array, and KEEP for most values. Objects of a class that `enters` refuses are
    not traversed. `source_of` returns the file of a code object, given its global variables, or
    None for code that is not the kernel's: Python's own, frameworks, nkic.
    """

    function: FunctionType
    arguments: Mapping[str, Any]
    replace: Callable[[Any, Mapping[str, Any]], Any]
    enters: Callable[[type], bool]
    source_of: FindSource


def kernel_node(function: FunctionType, sources: Sources, parse: Parse) -> Kernel:
    """Return the definition in its source, or one synthesised from the signature."""
    code = function.__code__
    file = sources.of(code, function.__globals__)
    module = sources.module(file.path) if file is not None else None
    if module is not None:
        try:
            node = module.function_at(code.co_name, code.co_firstlineno)
        except LookupError:  # the file has changed since, or Python runs other code
            node = None
        if isinstance(node, nodes.FunctionDef):
            return Kernel(function.__name__, module, node)
    return _made_up(function, file, sources, parse)


def _made_up(
    function: FunctionType, file: SourceFile | None, sources: Sources, parse: Parse
) -> Kernel:
    code = function.__code__
    path = file.path if file is not None else code.co_filename
    text = f"def {function.__name__}{_parameters(function)}:\n    pass\n"
    source = SourceFile(path, "\n" * (code.co_firstlineno - 1) + text)
    if file is None:
        sources.allow(code, SourceFile(path, ""))
    module = sources.add_module(source, parse(source))
    node = module.tree.body[0]
    assert isinstance(node, nodes.FunctionDef)
    return Kernel(function.__name__, module, node)


def _parameters(function: FunctionType) -> str:
    """Return the signature as source, without annotations; defaults are unused numbers."""
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    plain = [
        p.replace(annotation=empty, default=empty if p.default is empty else 0)
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
