"""The other kernels of a file that can be evaluated for the same arguments.

A tutorial's file holds several versions of a kernel with the same parameters: what a command line
says of the arguments applies to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from nkic.base.source import SourceFile
from nkic.migrate.tree import walk
from nkic.specialise.request import Request


def siblings(source: SourceFile, request: Request) -> Iterator[Request]:
    """Yield requests for the other decorated functions at the top of the file.

    All their parameters without defaults must be among the request's.
    """
    try:
        tree = cst.parse_module(source.text)
    except cst.ParserSyntaxError:
        return  # reported when the file is parsed for the rules
    arguments = {**request.args, **request.like, **request.consts}
    for statement in tree.body:
        if not isinstance(statement, cst.FunctionDef) or not statement.decorators:
            continue
        if statement.name.value == request.kernel:
            continue
        names = {p.name.value for p in walk(statement.params) if isinstance(p, cst.Param)}
        if names and _needed(statement) <= arguments.keys():
            yield _cut(request, statement.name.value, names)


def _needed(function: cst.FunctionDef) -> set[str]:
    """Return the parameters without defaults."""
    params = (node for node in walk(function.params) if isinstance(node, cst.Param))
    return {param.name.value for param in params if param.default is None and not param.star}


def _cut(request: Request, kernel: str, names: set[str]) -> Request:
    """Return the request for another kernel, with the arguments that it has."""
    args = {name: kind for name, kind in request.args.items() if name in names}
    consts = {name: value for name, value in request.consts.items() if name in names}
    return replace(request, kernel=kernel, args=args, consts=consts)
