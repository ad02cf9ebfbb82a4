"""What evaluations share is the same after every attempt to change it.

The attempts are every mutator, and every method, on every object that two evaluations both reach.
All that the modules of the interpreter and of the language hold is compared before and after.
"""

import ast
import functools
import gc
import importlib
import pkgutil
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import nkic
import nkic.interpret
import nkic.language
import nkic.machine
import nkic.specialise
from nkic.base.device import KernelError
from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.interpret import attributes, objects
from nkic.interpret.attributes import Provided
from nkic.interpret.containers import KernelSet
from nkic.interpret.machine import Machine
from nkic.interpret.objects import INSTANCES, Class, Frozen
from nkic.language import views
from nkic.language.trace import Trace, tracing
from nkic.machine import targets
from nkic.source.parse import parse
from nkic.source.resolve import resolve
from nkic.specialise.closed import PROVIDED, World
from tests.harness.metalanguage import HEAD
from tests.security.test_walk import SOURCE

STEPS = 20_000  # for each attempt
FEW = 6  # values of a type
# Attempts on `x`, each the body of a function. `n` is the name of a field, which `x` may have.
NAMED = """
    setattr(x, n, 1)
    delattr(x, n)
    object.__setattr__(x, n, 1)
    object.__delattr__(x, n)
    super(type(x), x).__setattr__(n, 1)
    super(type(x), x).__delattr__(n)
    Frozen.__setattr__(x, n, 1)
    Frozen.__delattr__(x, n)
    Slots.__setattr__(x, n, 1)
    type(x).__setattr__(x, n, 1)
    type(x).__delattr__(x, n)
    setattr(type(x), n, 1)
    delattr(type(x), n)
    cached(n).__get__(x)
    cached(n).__get__(type(x))
    cached('y').__set_name__(x, n)
    functools.cached_property.__set_name__(x, int, n)
    x.__set_name__(int, n)
    x.__dict__[n] = 1
    vars(x)[n] = 1
    x[n] = 1
    del x[n]
    x.__setitem__(n, 1)
    x.__delitem__(n)
    x.update({n: 1})
    x.setdefault(n, 1)
    dict.update(x, {n: 1})
    dict.__setitem__(x, n, 1)
    dict.setdefault(x, n, [])
    dict.pop(x, n)
    collections.OrderedDict.move_to_end(x, n)
    collections.Counter.update(x, {n: 1})
    setattr(copy.copy(x), n, 1)
    setattr(copy.deepcopy(x), n, [])
    setattr(dataclasses.replace(x, **{n: 1}), n, 2)
    setattr(functools.partial(x), n, 1)
    setattr(x.__class__, n, 1)
    x.__init__(**{n: 1})
    x.__init_subclass__(**{n: 1})
    ValueError.__init__(x, n)
    string.Template.__init__(x, n)
    operator.attrgetter.__init__(x, n)
    operator.methodcaller.__init__(x, n)
"""
PLAIN = """
    x.leak = 1
    x.leak: int = 1
    x.leak += 1
    x.leak, y = 1, 2
    [x.leak, *y] = [1]
    for x.leak in [1]: pass
    del x.leak
    x[0] = 1
    x[:] = []
    del x[0]
    del x[:]
    x += [1]
    x |= {'leak': 1}
    x.append(1)
    x.extend([1])
    x.insert(0, 1)
    x.clear()
    x.pop()
    x.popitem()
    x.remove(x[0])
    x.sort()
    x.reverse()
    x.add('leak')
    x.discard(1)
    list.append(x, 1)
    list.clear(x)
    list.sort(x)
    set.add(x, 1)
    set.clear(x)
    dict.clear(x)
    dict.popitem(x)
    collections.deque.append(x, 1)
    collections.deque.rotate(x, 1)
    collections.defaultdict.__init__(x, list)
    collections.ChainMap.__init__(x, {})
    next(x)
    list(x)
    x.send(1)
    x.close()
    x.throw(ValueError())
    ValueError.add_note(x, 'leak')
    ValueError.with_traceback(x, None)
    ValueError.__init__(x, 1)
    functools.update_wrapper(x, helper)
    functools.wraps(helper)(x)
    functools.wraps(x)(helper)
    functools.update_wrapper(x, x)
    functools.partial.__init__(x, helper)
    functools.total_ordering(x)
    functools.singledispatch(x).register(int, helper)
    functools.lru_cache(x).cache_clear()
    functools.lru_cache(None)(lambda y: y)(x)
    contextlib.nullcontext.__init__(x, 1)
    contextlib.suppress.__init__(x, ValueError)
    contextlib.ExitStack.callback(x, helper)
    contextlib.ExitStack.push(x, helper)
    contextlib.ExitStack.pop_all(x)
    operator.itemgetter.__init__(x, 1)
    operator.setitem(x, 0, 1)
    operator.delitem(x, 0)
    operator.iadd(x, [1])
    operator.ior(x, {'leak': 1})
    dataclass(x)
    dataclass(frozen=True)(x)
    dataclass(slots=True)(x)
    enum.unique(x)
    enum.Flag.__init_subclass__(boundary=x)
    enum.IntFlag.__init_subclass__(boundary=x)
    typing.runtime_checkable(x)
    typing.final(x)
    abc.abstractmethod(x)
    property(x).setter(x)
    staticmethod(x).leak = 1
    classmethod(x).leak = 1
    Data.__init__(x, 1)
    Frozen.__init__(x, 1)
    Record.__init__(x, 1)
    Record.__post_init__(x)
    x.__init__()
    x.__init__(1)
    x.__init__(1, 2)
    x.__new__(x)
    x.__iadd__([1])
    x.__ior__({'leak': 1})
    x.__set__(x, 1)
    x.__delete__(x)
    x.__enter__()
    x.__exit__(None, None, None)
    x.register(int)
    x().leak = 1
    type(x)().leak = 1
    x.fget.leak = 1
    copy.copy(x).append(1)
    try: raise x from ValueError()
    class S(x): leak = 1
    class S(x):\\n  def __init__(self): self.leak = 1\\n S()
    class S(x):\\n  def __set_name__(self, c, n): c.leak = 1\\n S.leak = 1
    class S:\\n  y = x\\n S.y.leak = 1
    class S:\\n  y = x\\n S().y = 1
    class S(enum.Enum):\\n  y = x\\n S.y.value.leak = 1
    match x:\\n  case object(leak=y): pass
"""
SETTING = """
import functools
@dataclass(frozen=True)
class Frozen:
    a: int
@dataclass(slots=True)
class Slots:
    a: int
class Record(nl.NKIObject):
    a: int
def helper(): pass
def cached(name):
    made = functools.cached_property(lambda owner: 'leak')
    made.__set_name__(int, name)
    return made
"""
CALLS: tuple[tuple[Any, ...], ...] = ((), (1,), ("leak", 1))


def attempts() -> tuple[str, list[str]]:
    """Return the source of a file with every attempt as a function, and their names."""
    text, names = [SOURCE.partition("VALUES =")[0], SETTING], []
    for prefix, lines, parameters in (("n", NAMED, "x, n"), ("p", PLAIN, "x")):
        for number, line in enumerate(filter(None, map(str.strip, lines.splitlines()))):
            names.append(f"{prefix}{number}")
            body = line.replace("\\n", "\n   ")
            end = "\n    except ValueError: pass" if line.startswith("try:") else ""
            text.append(f"def {names[-1]}({parameters}):\n    {body}{end}\n")
    listed = ", ".join(names)
    text.append(f"@nki.jit\ndef kernel():\n    return [{listed}]\n")
    return "\n".join(text), names


@contextmanager
def world(text: str) -> Iterator[tuple[World, Any]]:
    """Evaluate a kernel; yield its world and its result."""
    report = Reporter()
    resolved = resolve(
        SourceFile("kernel.py", text),
        "kernel",
        load=lambda name, importer: None,
        parse=parse,
        provided=PROVIDED,
        report=report,
        profile=Profile.NKI_0_7,
    )
    trace = Trace(targets.DEFAULT, Profile.NKI_0_7, report)
    with tracing(trace):
        made = World(resolved, trace)
        trace.begin(())
        yield made, made.interpreter.call(made.interpreter.kernel().function, {})


def member_names(m: Machine, value: Any) -> list[str]:
    classes = [*m.class_of(value).mro, *(value.mro if value.__class__ is Class else ())]
    tables = [table for cls in classes for table in (cls.members, cls.extra.get("protocol", {}))]
    own = value.fields if value.__class__ in INSTANCES else ()
    always = ("__class__", "__bases__", "__mro__", "__init__", "__setattr__", "__delattr__")
    return list(dict.fromkeys([*own, *always, *(name for table in tables for name in table)]))


def reached(m: Machine, start: Any) -> dict[int, Any]:
    """Return every value that a kernel can reach, by identity."""
    found: dict[int, Any] = {}
    methods: dict[tuple[type, int], Any] = {}  # one of each class and function leads to all
    waiting = [start, *m.builtins.values()]
    while waiting:
        value = waiting.pop()
        if id(value) in found or isinstance(value, int | float | str | bytes):
            continue
        found[id(value)] = value
        if isinstance(value, objects.Method):
            kind = (value.owner.__class__, id(value.function))
            if methods.setdefault(kind, value) is not value:
                continue
        names = member_names(m, value)
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif isinstance(value, Provided):
            names += value.space.names()
        for name in names:
            with suppress(Exception):
                led = attributes.get(m, value, name)
                # What a read makes anew, such as the transpose of an array, nothing else holds;
                # its class is reached, and its own reads would never end.
                if led is attributes.get(m, value, name) or led.__class__ is not value.__class__:
                    waiting.append(led)
    return found


def shared_values() -> list[Any]:
    """Return the values that two evaluations of one file both reach."""
    found: list[dict[int, Any]] = []
    with world(SOURCE) as (first, one), world(SOURCE) as (second, two):
        for made, value in ((first, one), (second, two)):
            interpreter = made.interpreter
            found.append(interpreter.run(partial(reached, interpreter.machine, value)))
    both = found[0].keys() & found[1].keys()
    return [value for key, value in found[0].items() if key in both]


# ---- the state of everything that is shared -----------------------------------------------------

ROOMS = (nkic.interpret, nkic.language, nkic.specialise, nkic.machine)
OPEN = frozenset(
    {"_active", "_current", "__warningregistry__"}
)  # the state of a running evaluation


def modules() -> list[types.ModuleType]:
    """Return every module of the rooms that evaluations use."""
    found = []
    for room in ROOMS:
        for entry in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if ".native" not in entry.name:
                found.append(importlib.import_module(entry.name))
    return [*ROOMS, *found]


def parts(value: Any) -> dict[Any, Any]:
    """Return what an object consists of, by name."""
    kind = type(value)
    if isinstance(value, dict):
        return {("item", number): pair for number, pair in enumerate(dict.items(value))}
    if isinstance(value, list | tuple | set | frozenset):
        listed = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        held: dict[Any, Any] = dict(enumerate(listed))
    elif isinstance(value, types.FunctionType):
        return {
            "name": (value.__qualname__, value.__name__),
            "state": (value.__dict__, value.__defaults__, value.__kwdefaults__, value.__code__),
            "closure": tuple(_content(cell) for cell in value.__closure__ or ()),
        }
    elif isinstance(value, functools.partial):
        return {"call": (value.func, value.args, value.keywords)}
    elif isinstance(value, types.MappingProxyType):
        return {("item", number): pair for number, pair in enumerate(value.items())}
    elif isinstance(value, types.MethodType | staticmethod | classmethod):
        return {"function": value.__func__}
    elif isinstance(value, type):
        held = {k: v for k, v in vars(value).items() if k != "__abstractmethods__"}
        return held if value.__module__.startswith("nkic.") else {}
    elif not kind.__module__.startswith("nkic."):
        return {}
    else:
        held = {}
    for ancestor in kind.__mro__:
        slots = ancestor.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            held[name] = getattr(value, name, None)
    computed = {k for c in kind.__mro__ for k, v in vars(c).items() if _is_lazy(v)}
    held |= {k: v for k, v in getattr(value, "__dict__", {}).items() if k not in computed}
    return held


def _is_lazy(member: Any) -> bool:
    return isinstance(member, functools.cached_property)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def state() -> dict[int, tuple[Any, dict[Any, Any]]]:
    """Return every object that the modules hold, by identity, with its parts."""
    found: dict[int, tuple[Any, dict[Any, Any]]] = {}
    waiting: list[Any] = [
        value for one in modules() for name, value in vars(one).items() if name not in OPEN
    ]
    waiting += [sys.modules["nkic.interpret.library"].modules()]
    waiting += [cached() for cached in _tables()]
    while waiting:
        value = waiting.pop()
        if id(value) in found or value is None or isinstance(value, types.ModuleType):
            continue
        held = parts(value)
        found[id(value)] = value, held
        waiting += held.values()
    return found


def _tables() -> list[Callable[[], Any]]:
    """Return the functions that make a shared table once."""
    from nkic.interpret import builtins, types
    from nkic.specialise import closed, numpy

    return [types.table, builtins.table, closed.kernel_object, closed.surface_classes,
            closed.beta1_classes, numpy.table, numpy.classes]  # fmt: skip


def changes(before: dict[int, Any], after: dict[int, Any]) -> list[str]:
    return [
        f"{type(value)} {held.get('name')}: {[k for k in held if not _same(held, now, k)]}"
        for key, (value, held) in before.items()
        if key in after
        for now in [after[key][1]]
        if held.keys() != now.keys() or not all(_same(held, now, k) for k in held)
    ]


def _same(before: dict[Any, Any], after: dict[Any, Any], key: Any) -> bool:
    one, other = before[key], after.get(key)
    if one.__class__ is tuple and other.__class__ is tuple:
        return len(one) == len(other) and all(
            a is b or (isinstance(a, str | int | float) and a == b and type(a) is type(b))
            for a, b in zip(one, other, strict=True)
        )
    return one is other or (isinstance(one, str | int | float) and one == other)


# ---- the tests ----------------------------------------------------------------------------------


def attack(values: list[Any]) -> int:
    """Try everything on every value; return the number of attempts that raised nothing."""
    text, names = attempts()
    done = 0
    with world(text) as (made, functions):
        interpreter, m = made.interpreter, made.interpreter.machine

        def attempt(function: Any, *args: Any) -> int:
            m.left, depth = STEPS, len(m.stack)
            try:
                m.call(function, args, {})
            except (KernelError, objects.ErrorInstance, Exception):
                return 0
            finally:
                del m.stack[depth:]
            return 1

        def each() -> None:
            nonlocal done
            for value in values:
                own = list(value.fields) if value.__class__ in INSTANCES else []
                members = attributes.public_names(value, m.class_of(value))
                for name, function in zip(names, functions, strict=True):
                    for field in ("leak", *own, *members[:2]) if name[0] == "n" else ():
                        done += attempt(function, value, field)
                    done += attempt(function, value) if name[0] == "p" else 0

        interpreter.run(each)
    return done


def call_methods(values: list[Any]) -> None:
    """Call every attribute of every value, with a few arguments."""
    with world(SOURCE) as (made, _):
        m = made.interpreter.machine

        def each() -> None:
            for value in values:
                for name in member_names(m, value):
                    for args in ((value,), *CALLS, (value, "leak", 1), (int, "leak")):
                        m.left = STEPS
                        with suppress(Exception):
                            m.call(attributes.get(m, value, name), args, {})

        made.interpreter.run(each)


@pytest.fixture(scope="module")
def values() -> list[Any]:
    """Return the shared values, after everything that is made lazily was made once."""
    attack(chosen(shared_values()))
    return shared_values()


def chosen(values: list[Any]) -> list[Any]:
    """Return all classes and objects, and a few values of each type that has no tables."""
    seen: dict[type, int] = {}
    for value in values:
        seen[type(value)] = seen.get(type(value), 0) + 1
    few = {kind: 0 for kind in seen if kind is not Class and kind not in INSTANCES}
    picked = []
    for value in values:
        kind = type(value)
        if kind in few:
            few[kind] += 1
        if few.get(kind, 0) <= FEW:
            picked.append(value)
    return picked


def test_there_is_much_that_evaluations_share(values: list[Any]) -> None:
    kinds = {type(value) for value in values}
    assert len(values) > 1000
    assert {Class, objects.Instance, objects.Builtin, objects.HostFunction} <= kinds
    assert not kinds & {list, dict, set, KernelSet, objects.ListInstance, objects.DictInstance}


def test_no_attempt_changes_what_evaluations_share(values: list[Any]) -> None:
    before = state()
    assert len(before) > 10_000
    assert attack(chosen(values)) > 1000
    call_methods(chosen(values))
    assert changes(before, state()) == []


def test_no_evaluation_outlives_its_kernel(values: list[Any]) -> None:
    attack(chosen(values))
    gc.collect()
    assert [one for one in gc.get_objects() if type(one) is Machine] == []


def test_the_tables_of_shared_classes_refuse_changes(values: list[Any]) -> None:
    tables = [getattr(v, t) for v in values if v.__class__ is Class for t in ("members", "extra")]
    tables += [value.fields for value in values if value.__class__ in INSTANCES]
    assert len(tables) > 250
    assert {type(table) for table in tables} == {Frozen}
    for method in ("clear", "pop", "popitem", "setdefault", "update", "__setitem__", "__ior__"):
        with pytest.raises(KernelError):
            getattr(tables[0], method)({})


def test_a_broken_guard_is_seen(values: list[Any]) -> None:
    strict = next(v for v in values if v.__class__ is objects.Instance and v.fields)
    before, kept = state(), strict.fields
    strict.fields = dict(kept)  # as if nobody had sealed it
    try:
        attack([strict])
        assert changes(before, state()) != []
    finally:
        strict.fields = kept


# Functions that set fields: of an object in general, and of a class body.
WRITERS = {"attributes.py": 2, "compile/statements.py": 1, "library/dataclasses.py": 1}
MUTATORS = {"pop", "popitem", "clear", "update", "setdefault"}


def _writes_fields(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return _is_fields(node.value)
    if isinstance(node, ast.AugAssign):
        return _is_fields(node.target)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in MUTATORS and _is_fields(node.func.value)
    return False


def _is_fields(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "fields"


def test_one_function_sets_fields_and_one_deletes_them() -> None:
    found: dict[str, int] = {}
    for room in (nkic.interpret, nkic.specialise):
        folder = Path(room.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            count = sum(map(_writes_fields, ast.walk(ast.parse(file.read_text()))))
            if count:
                found[str(file.relative_to(folder))] = count
    assert found == WRITERS


VICTIM = """
class P(enum.Flag, boundary=enum.STRICT):
    A = 1
    B = 4
try:
    P(2)
except ValueError:
    pass
else:
    raise TypeError('STRICT accepts 2')
assert not hasattr(os.environ, 'leak')
"""
CRIMES = """
    del enum.STRICT._value_
    Frozen.__delattr__(enum.STRICT, '_name_')
    cached('_value_').__get__(enum.STRICT)
    cached('leak').__get__(os.environ)
    ValueError.add_note(int, 'x')
    enum.STRICT._value_ = 'keep'
"""


@pytest.mark.parametrize("crime", [line.strip() for line in CRIMES.strip().splitlines()])
def test_the_next_kernel_of_the_process_is_as_the_first(crime: str) -> None:
    def compiled(body: str) -> bool:
        lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
        head = f"{HEAD}import enum, os\nfrom dataclasses import dataclass\n{SETTING}"
        tail = "    out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)\n"
        tail += "    nl.store(out, nl.zeros((1, 1), nl.float32))\n    return out\n"
        text = f"{head}@nki.jit\ndef k():\n{lines}{tail}"
        try:
            nkic.compile(SourceFile("k.py", text), evaluate="closed")
        except nkic.CompileError:
            return False
        return True

    assert compiled(VICTIM)
    compiled(crime)
    assert compiled(VICTIM)


# Uses of V as a size, an index or a number. `Same` is equal to everything and has a colliding hash.
NUMBERS = """
    x = nl.ndarray((V, 16), dtype=nl.float32, buffer=nl.sbuf)
    x = nl.ndarray([V, 4, V], dtype=nl.float32, buffer=nl.shared_hbm)
    x = f.reshape((128, V, 16))
    x = f[:, 0:V]
    x = f[:, V]
    x = f[:, nl.ds(V, 4)]
    x = f.ap([[16, 128], [V, 4]], offset=V)
    x = f.broadcast((128, V, 16))
    x = f.expand_dim(V)
    x = f.permute((0, V))
    x = f.slice(1, V, 4)
    x = f.reshape_dim(1, (V, 16))
    x = nl.shared_constant(np.eye(V, 2))
    x = nl.shared_constant(np.zeros((V, 2)))
    x = nl.shared_constant(np.zeros(4).reshape((V, 4)))
    nisa.tensor_scalar(dst=f, data=f, op0=nl.add, operand0=V)
    nl.fori_loop(0, V, lambda i: nisa.memset(f, 0))
"""
SAME = """
class Same(int):
    def __eq__(self, other): return True
    def __hash__(self): return 5
"""


def _kinds(value: Any) -> Iterator[type]:
    if isinstance(value, tuple | list):
        for part in value:
            yield from _kinds(part)
    else:
        yield type(value)


@pytest.mark.parametrize("line", [line.strip() for line in NUMBERS.strip().splitlines()])
def test_no_cache_keeps_a_number_of_a_kernel(line: str) -> None:
    """Otherwise its comparisons, or `True` in place of 1, would reach the next kernel."""
    for value in ("True", "Same(1)", "Same(4)"):
        body = line.replace("V", value)
        text = (
            f"{HEAD}import nki.isa as nisa\nimport numpy as np\n{SAME}@nki.jit\ndef k():\n"
            "    f = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf)\n"
            f"    nisa.memset(f, 0)\n    {body}\n"
            "    out = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.shared_hbm)\n"
            "    nisa.dma_copy(dst=out, src=f)\n    return out\n"
        )
        with suppress(nkic.CompileError):
            nkic.compile(SourceFile("k.py", text), evaluate="closed")
    for cache in (views.interned, views.row_major):
        tables = [table for table in gc.get_referents(cache) if isinstance(table, dict)]
        keys = [key for table in tables for key in table if not isinstance(key, str)]
        assert keys
        assert {kind for key in keys for kind in _kinds(key)} <= {int}
    gc.collect()
    assert [one for one in gc.get_objects() if type(one) is Machine] == []


def test_each_thread_has_its_own_active_machine() -> None:
    seen: list[Any] = []
    with world(SOURCE) as (made, _):
        machine = made.interpreter.machine

        def look() -> None:
            thread = threading.Thread(target=lambda: seen.extend(objects._active.machines))
            thread.start()
            thread.join()
            seen.append(objects.active())

        made.interpreter.run(look)
    assert seen == [machine]
