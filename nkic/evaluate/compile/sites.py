"""Reads of attributes and calls of methods, which remember what they found last.

Most places in a kernel meet values of one class, and call one function. What they remember is one
tuple, since evaluations in several threads may share these closures.
"""

from __future__ import annotations

from typing import Any

from nkic.evaluate import attributes
from nkic.evaluate.attributes import Provided
from nkic.evaluate.border import NESTED, admit
from nkic.evaluate.budget import CLASS_COST
from nkic.evaluate.code import AT, FUNCTION, MACHINE, Evaluate, Frame
from nkic.evaluate.compile.closures import CallArguments
from nkic.evaluate.objects import INSTANCES, UNSET, Class, Function
from nkic.syntax import nodes


def attribute(node: nodes.Attribute, owner: Evaluate, name: str) -> Evaluate:
    """Return the closure that reads an attribute."""
    get, instances = attributes.get, INSTANCES
    last: tuple[Class | None, Any] = None, None  # a shared class, and its function for `name`

    def load(f: Frame) -> Any:
        nonlocal last
        value = owner(f)
        f[AT] = node
        m, kind = f[MACHINE], value.__class__
        if kind is Provided:
            memoised = value.memo.get(name, UNSET)
            if memoised is not UNSET:
                return memoised
        elif kind not in instances:
            cls = m.classes.get(kind)
            known, read = last
            if cls is known and cls is not None:
                return read(m, value)
            read = attributes.getter(cls, kind, name)
            if read is not None:
                last = cls, read
        return get(m, value, name)

    return load


def attribute_of_global(
    node: nodes.Attribute, owner: str, name: str, otherwise: Evaluate
) -> Evaluate:
    """Return the closure that reads an attribute of a global variable, most often a module."""

    def load(f: Frame) -> Any:
        value = f[FUNCTION].globals.get(owner, UNSET)
        if value.__class__ is Provided:
            memoised = value.memo.get(name, UNSET)
            if memoised is not UNSET:
                f[AT] = node
                return memoised
        return otherwise(f)

    return load


def method_call(
    node: nodes.Call,
    func: nodes.Attribute,
    module: str,
    owner: Evaluate,
    name: str,
    arguments: CallArguments,
) -> Evaluate:
    """Return the closure of `owner.name(…)`, which makes no bound method of a kernel's function.

    `module` is the owner's name if it is a global variable.
    """
    get, instances, nested = attributes.get, INSTANCES, NESTED
    positional, keywords, values, form = arguments
    # A value called with all arguments in one sequence, its function, and the steps of the call.
    last: tuple[Any, Any, int] = UNSET, None, 0

    def run(f: Frame) -> Any:
        nonlocal last
        value: Any = f[FUNCTION].globals.get(module, UNSET) if module else UNSET
        if value is UNSET:
            value = owner(f)
        f[AT] = func
        m = f[MACHINE]
        member: Any = UNSET
        if value.__class__ is Provided:
            member = value.memo.get(name, UNSET)
        elif value.__class__ in instances and name not in value.fields:
            method = value.cls.find(name)
            if method.__class__ is Function:
                args = (value, *positional(f))
                named = None if keywords is None else keywords(f)
                f[AT] = node
                return m.invoke(method, args, named)
        if member is UNSET:
            member = get(m, value, name)
        kind = member.__class__
        known, call, cost = last
        if member is not known and values is not None:
            vectorcall = member.vectorcall if kind is Class else m.vectorcalls.get(kind)
            if vectorcall is not None:
                known, call = member, vectorcall(member, form)
                cost = CLASS_COST if kind is Class else 0
                last = known, call, cost
        if member is known and values is not None:
            each = values(f)
            f[AT] = node
            m.left -= cost
            for value in each:
                if value.__class__ in nested:
                    admit(m, (value,))
            return call(each)
        args, named = positional(f), None if keywords is None else keywords(f)
        f[AT] = node
        if kind is Class:
            m.left -= CLASS_COST
            return member.make(m, member, *args, **(named or {}))
        return m.call(member, args, named)

    return run
