"""Traverse everything that a kernel can reach; nothing of the host is reachable."""

import io
import types
from collections.abc import Iterator
from typing import Any

from nkic.base.device import KernelError
from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.interpret import attributes, objects
from nkic.interpret.attributes import Provided
from nkic.interpret.machine import Machine
from nkic.interpret.modules import ModuleValue
from nkic.interpret.objects import INSTANCES, Builtin, Class, Function, HostFunction, Method
from nkic.language.trace import Trace, tracing
from nkic.machine import targets
from nkic.source import bindings
from nkic.source.parse import parse
from nkic.source.resolve import resolve
from nkic.specialise.closed import PROVIDED, World
from tests.harness.metalanguage import HEAD

HOST = (
    *(types.ModuleType, types.FrameType, types.CodeType, types.TracebackType, types.FunctionType),
    *(types.BuiltinFunctionType, types.MethodType, types.GeneratorType, io.IOBase, type, Machine),
)
SOURCE = f"""{HEAD}
import nki.isa as nisa
import nki.collectives as ncc
import math, numpy, dataclasses, enum, functools, itertools, collections, operator, typing, string
import contextlib, copy, abc, os, sys, textwrap
from dataclasses import dataclass
class Base(nl.NKIObject):
    n: int = 1
    def method(self): return self
    @property
    def prop(self): return 2
    @classmethod
    def make(cls): return cls()
@dataclass
class Data:
    x: list
class Mode(enum.Enum):
    A = 1
class Row(typing.NamedTuple):
    a: int
def generate(n=(1, 2), *rest, **more):
    yield n
def outer():
    held = [1]
    return lambda: held
@functools.lru_cache
def cached(x): return x
def failing():
    try: 1 / 0
    except ZeroDivisionError as error: return error
VALUES = [Base(), Data([1]), Mode.A, Row(1), generate(), outer(), cached, failing(), {{1: 2}},
    {{3}}, range(3), slice(1), b'x', 1.5, None, ..., NotImplemented, Base().method, 'x'.join, len,
    map(len, []),
    functools.partial(len, []), itertools.count(), collections.deque(), collections.Counter(),
    operator.attrgetter('x'), int | str, typing.Any, super(Base, Base()), iter([]), zip(),
    enumerate([]),
    property(len), staticmethod(len), numpy.finfo(numpy.float32), numpy.zeros((2, 2)), nl.ds(0, 4),
    nl.tile_size, nl.no_reorder(), nl.float32, nl.sbuf, nisa.engine.vector, nl.add]
@nki.jit
def kernel():
    return VALUES, nki, nl, nisa, ncc, math, numpy, dataclasses, enum, functools, itertools, \\
        collections, operator, typing, string, contextlib, copy, abc, os, sys, textwrap
"""
# Names looked up on every value, in addition to those of its class.
ASKED = (
    *bindings.SPECIAL_METHODS,
    *bindings.words("""
        __class__ __dict__ __bases__ __mro__ __subclasses__ __globals__ __code__ __closure__ mro
        __defaults__ __self__ __func__ __wrapped__ __module__ __init_subclass__ __traceback__
        __context__ __cause__ gi_frame gi_code cr_frame f_back tb_frame __builtins__ __loader__
        __spec__ __reduce__ __reduce_ex__ __getstate__ __weakref__ __sizeof__ __dir__ args obj
        func keywords function machine code runtime cells fields cls members payload make extra
        nkic_frames nkic_value space world values frame _access _register _row call
    """),
)


def asked(value: Any, methods: dict[tuple[type, int], Any]) -> tuple[str, ...]:
    """Return the names to look up. A function that many objects of one class have as a method is
    asked for everything once, and afterwards for what it is bound to.
    """
    if not isinstance(value, Method):
        return ASKED
    kind = (value.owner.__class__, id(value.function))
    if kind in methods:
        return ("__self__", "__func__")
    methods[kind] = value.function  # kept, so that no other one gets its identity
    return ASKED


def edges(m: Machine, value: Any, names: tuple[str, ...] = ASKED) -> Iterator[Any]:
    """Return the values that a kernel can get from a value: its elements and its attributes.

    An attribute of its own class that every read makes anew, such as the transpose of an array, has
    nothing that the value does not have, and would never end.
    """
    if isinstance(value, dict):
        yield from (*value.keys(), *value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    known = list(attributes.public_names(value, m.class_of(value)))
    if isinstance(value, Provided):
        known += value.space.names()
    if isinstance(value, ModuleValue):
        known += value.runtime.module.bindings
    for name in dict.fromkeys((*known, *names)):
        try:
            led = attributes.get(m, value, name)
            if led.__class__ is not value.__class__ or led is attributes.get(m, value, name):
                yield led
        except (KernelError, AttributeError, TypeError, NameError, objects.ErrorInstance):
            continue


def reachable(m: Machine, start: Any) -> dict[int, Any]:
    """Return every reachable value by its identity."""
    found: dict[int, Any] = {}
    methods: dict[tuple[type, int], Any] = {}
    waiting = [start, *m.builtins.values()]
    while waiting:
        value = waiting.pop()
        if id(value) in found or isinstance(value, int | float | str | bytes):
            continue
        found[id(value)] = value
        assert len(found) < 100_000
        waiting += edges(m, value, asked(value, methods))
    return found


def test_nothing_of_the_hosts_can_be_reached() -> None:
    report, profile = Reporter(), Profile.NKI_0_7
    source = SourceFile("kernel.py", SOURCE)
    resolved = resolve(
        source,
        "kernel",
        load=lambda name, importer: None,
        parse=parse,
        provided=PROVIDED,
        report=report,
        profile=profile,
    )
    trace = Trace(targets.DEFAULT, profile, report)
    with tracing(trace):
        world = World(resolved, trace)
        trace.begin(())
        interpreter = world.interpreter
        value = interpreter.call(interpreter.kernel().function, {})
        found = interpreter.run(lambda: reachable(interpreter.machine, value))
    assert len(found) > 1500
    kinds = {type(one) for one in found.values()}
    assert {Class, Function, Builtin, HostFunction} <= kinds
    assert kinds & INSTANCES
    wrong = [one for one in found.values() if isinstance(one, HOST)]
    assert wrong == []
