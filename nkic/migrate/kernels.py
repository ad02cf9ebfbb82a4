"""The other kernels of a file that can be evaluated for the same arguments.

A file of a tutorial holds several versions of a kernel, which take the same: what one call of the
command says of the arguments is true of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from nkic.base.source import SourceFile
from nkic.migrate.tree import walk
from nkic.specialise.request import Request


def siblings(source: SourceFile, request: Request) -> Iterator[Request]:
    """Requests for decorated functions at the top of the file, whose parameters without a value are
    all among the request's; not for the kernel that it names.
    """
    try:
        tree = cst.parse_module(source.text)
    except cst.ParserSyntaxError:
        return  # which is said when the file is read for its rules
    given = {**request.args, **request.like, **request.consts}
    for one in tree.body:
        if not isinstance(one, cst.FunctionDef) or not one.decorators:
            continue
        if one.name.value == request.kernel:
            continue
        names = {p.name.value for p in walk(one.params) if isinstance(p, cst.Param)}
        if names and _needed(one) <= given.keys():
            yield _cut(request, one.name.value, names)


def _needed(function: cst.FunctionDef) -> set[str]:
    """The parameters that have no value of their own."""
    params = (one for one in walk(function.params) if isinstance(one, cst.Param))
    return {one.name.value for one in params if one.default is None and not one.star}


def _cut(request: Request, kernel: str, names: set[str]) -> Request:
    """The request for another kernel: with the arguments that it has."""
    args = {name: kind for name, kind in request.args.items() if name in names}
    consts = {name: value for name, value in request.consts.items() if name in names}
    return replace(request, kernel=kernel, args=args, consts=consts)
