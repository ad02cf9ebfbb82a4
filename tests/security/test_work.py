"""What an evaluation does is paid for: bytecode and bytes per step charged are bounded.

Counted are the instructions of Python that run, in nkic and in the library, and the bytes that are
alive at once; no clock. Every function and method of every library module is called with large
values, and programs are drawn from a few loops around them. What the functions of NKI do is counted
in `test_hostile_calls`: their errors end the kernel.
"""

import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import numpy  # noqa: F401 - its import is not the work of the first call that needs it
import pytest

from nkic.base.profiles import Profile
from nkic.interpret import machine
from nkic.interpret.budget import Budget
from tests.harness import metalanguage
from tests.security import calls
from tests.security.test_shared import world
from tests.security.test_walk import SOURCE

STEPS = 1_500  # of a call, in which it ends or is ended
PER_STEP, FREE = 16, 12_000  # instructions of Python that a step pays for, and those of any call
BYTES_PER_STEP, FREE_BYTES = 64, 200_000
ENOUGH = 4  # a call that does so many times as much as it may is ended

# What makes each large value, new for each call, and what it is called with beside it.
LARGE = {
    "list": "[*range(4000)]",
    "shared": "shared()",
    "dict": "dict.fromkeys(range(2000), 'v')",
    "set": "set(range(2000))",
    "text": "'a b ' * 20000",
    "bytes": "b'ab' * 20000",
    "number": "3 ** 5000",
    "texts": "('k' * 300,) * 500",
    "array": "numpy.zeros((60, 60))",
    "range": "range(10 ** 6)",
    "endless": "itertools.repeat(1)",
    "objects": "[Data([i]) for i in range(500)]",
}
PATTERNS = ("v", "v, w", "helper, v", "v, 1", "1, v", "'x', v")
SETTING = """
def helper(*args): return args
def shared():
    made = [1]
    for _ in range(60): made = [made, made]
    return made
"""


class TooMuch(BaseException):
    """Raised inside a call that does much more than it pays for."""


class Work(NamedTuple):
    """What a call did, and what it paid."""

    call: str
    instructions: int
    bytes: int
    steps: int

    @property
    def unpaid(self) -> bool:
        """Whether it did more than its steps pay for."""
        instructions = self.instructions > FREE + PER_STEP * self.steps
        return instructions or self.bytes > FREE_BYTES + BYTES_PER_STEP * self.steps


class Counter:
    """Counts the instructions of Python that run in frames entered from now on."""

    def __init__(self, most: int) -> None:
        self.left = self.most = most

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._opcode

    def _opcode(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            self.left = self.most
            raise TooMuch
        return self._opcode


def measured(machine: Any, name: str, call: Callable[[], Any]) -> Work:
    """Make a call with few steps."""
    machine.left, depth = STEPS, len(machine.stack)
    counter = Counter(ENOUGH * (FREE + PER_STEP * STEPS))
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    ended = False
    sys.settrace(counter)
    try:
        call()
    except TooMuch:
        ended = True
    except Exception:  # the verdict is another test's affair
        pass
    finally:
        sys.settrace(None)
        del machine.stack[depth:]
    _, peak = tracemalloc.get_traced_memory()
    did = counter.most if ended else counter.most - counter.left
    return Work(name, did, peak - before, STEPS - max(machine.left, 0))


NKI = {"nl", "nisa", "ncc", "nki", "f", "h", "r"}
TARGETS = [t for t in calls.targets(Profile.NKI_0_7) if t.module not in NKI and "__" not in t.path]
MODULES = sorted({target.module for target in TARGETS})
# Each is the body of a loop over `v`, in which `x` is an element.
LOOPS = """
    hasattr(v, 'nope')
    getattr(x, '__qualname__', None)
    try: v.nope
    except AttributeError: pass
    x == w or x in (1, 'a')
    str(x) + repr(x)
    y = {x: 1} if x.__class__ in (int, str) else x
    y = [x, x][::-1] + [*'ab']
    match x:
      case [_, *rest]: y = rest
      case {'a': z}: y = z
      case Data(x=z): y = z
    y = f'{x!r:>10}', '%s' % (x,)
    y = max(v, w) if v.__class__ is str else x
    y = lambda *a, **n: (a, n)
    y(x, *[1, 2], **{'k': x})
    class X(Data): pass
    y = X(x)
    y = sorted([x, x], key=str)
    y = isinstance(x, (int, str, Data)), len([x]), bool(x), hash('x')
"""


def source(targets: list[calls.Target]) -> tuple[str, list[str]]:
    """Return a file whose kernel returns makers of large values and callers, and what these do."""
    text = [SOURCE.partition("VALUES =")[0], "import numpy as np", SETTING]
    text += [f"def make_{kind}(): return {made}" for kind, made in LARGE.items()]
    done = [f"{target.path}({given})" for target in targets for given in PATTERNS]
    text += [f"def call_{n}(v, w): return {call}" for n, call in enumerate(done)]
    lists = (f"[make_{kind}" for kind in LARGE), (f"[call_{n}" for n, _ in enumerate(done))
    makers, callers = (", ".join(each).replace("[", "") for each in lists)
    return "\n".join([*text, f"@nki.jit\ndef kernel(): return [{makers}], [{callers}]"]), done


def works(text: str, done: list[str], chosen: Callable[[int], list[int]]) -> Iterator[Work]:
    """Make each call with some of the large values, whose numbers `chosen` returns."""
    found: list[Work] = []
    tracemalloc.start()
    with world(text) as (made, (makers, callers)):
        m = made.interpreter.machine

        def large(maker: Any) -> Any:
            m.left = 10_000_000
            return m.call(maker, (), {})

        def each() -> None:
            for number, (call, caller) in enumerate(zip(done, callers, strict=True)):
                for kind in chosen(number):
                    values = large(makers[kind]), large(makers[kind])
                    name = f"{call} of {[*LARGE][kind]}"
                    work = measured(m, name, partial(m.call, caller, values, {}))
                    if work.unpaid:  # not if it was work of the first call only
                        values = large(makers[kind]), large(makers[kind])
                        work = measured(m, name, partial(m.call, caller, values, {}))
                    found.append(work)

        try:
            made.interpreter.run(each)
        finally:
            tracemalloc.stop()
    yield from found


def unpaid(module: str, seed: int, share: float) -> list[Work]:
    """Return the calls of a module's functions that do more than they pay for."""
    chance = random.Random(f"{module} {seed}")
    targets = [target for target in TARGETS if target.module == module]
    text, done = source(targets)

    def chosen(number: int) -> list[int]:
        return [chance.randrange(len(LARGE))] if chance.random() < share else []

    return [work for work in works(text, done, chosen) if work.unpaid]


def loops() -> tuple[str, list[str]]:
    """Return a file with programs: each of the bodies in a loop over a large value."""
    bodies: list[str] = []
    for line in filter(None, map(str.rstrip, LOOPS.splitlines())):
        goes_on = line.startswith(("      ", "    except", "    y(", "    y = X("))
        bodies[-1:] = [f"{bodies[-1]}\n{line}"] if goes_on else [*bodies[-1:], line]
    text, _ = source([])
    for number, body in enumerate(bodies):
        indented = body.replace("\n", "\n    ")
        head = f"def call_{number}(v, w):\n    for x in v:\n    {indented}\n"
        text = text.replace("@nki.jit", f"{head}@nki.jit")
    names = ", ".join(f"call_{number}" for number, _ in enumerate(bodies))
    return text.replace(", []", f", [{names}]"), bodies


@pytest.mark.parametrize("module", MODULES, ids=lambda name: name or "builtins")
def test_what_a_function_does_is_paid_for(module: str) -> None:
    assert unpaid(module, 0, 0.04) == []


def test_a_search_pays_for_what_it_compares() -> None:
    names = {"index", "count", "indexOf", "countOf"}
    text, done = source([t for t in TARGETS if t.path.rpartition(".")[2] in names])
    done = [call if call.endswith("(v, w)") else "" for call in done]
    found = [*works(text, done, lambda number: [0] if done[number] else [])]
    assert len(found) > 4 and [work for work in found if work.unpaid] == []


def test_comparisons_and_truths_of_elements_are_paid_for() -> None:
    text, done = source([t for t in TARGETS if t.path in ("all", "any", "max", "min")])
    kinds = {"all(v)": [11], "any(v)": [11], "max(v, w)": [7], "min(v, w)": [7]}
    found = [*works(text, done, lambda number: kinds.get(done[number], []))]
    assert len(found) == 4 and [work for work in found if work.unpaid] == []


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("collections.namedtuple(1, v)", "text"),
        ("typing.NamedTuple(v)", "text"),
        ("operator.mod('x', v)", "texts"),
        ("operator.contains(v, w)", "texts"),
        ("bytes('x', v)", "text"),
        ("operator.contains(v, w)", "objects"),
        ("enum.IntEnum('x', v)", "shared"),
        ("object.__setattr__(1, v, 1)", "shared"),
    ],
)
def test_calls_that_did_more_than_they_paid_for(call: str, kind: str) -> None:
    text, _ = source([])
    text = text.replace("@nki.jit", f"def call_0(v, w): return {call}\n@nki.jit")
    text = text.replace(", []", ", [call_0]")
    (work,) = works(text, [call], lambda number: [[*LARGE].index(kind)])
    assert not work.unpaid and work.steps > 20


@pytest.mark.parametrize(
    "read",
    [
        *("next(iter(d))", "list(d)", "[*d.values()]", "max(view)", "d.copy()", "d | {}"),
        *("d == {1: 2}", "dict(d)", "{**d}", "(lambda **n: 1)(**d)", "[*s]", "s.copy()"),
        *("s | {1}", "s == {1}", "frozenset(s)", "s & s", "s - {1}", "s ^ {1}"),
    ],
)
def test_what_was_deleted_is_paid_for_by_who_reads_past_it(read: str) -> None:
    made = "d, s = {str(n): n for n in range(9000)}, set(range(9000))"
    deleted = "for n in range(8999): del d[str(n)]; s.discard(n)"
    text, _ = source([])
    head = (
        f"def call_0(d, s, view): return {read}",
        f"def make():\n  {made}\n  {deleted}\n  return d, s, d.values()",
        "def fresh():\n  d = {'8999': 8999}\n  return d, {8999}, d.values()",
    )
    text = text.replace("@nki.jit", "\n".join([*head, "@nki.jit"]))
    spent = []
    with world(text.replace(", []", ", [call_0, make, fresh]")) as (world_made, (_, functions)):
        m = world_made.interpreter.machine

        def each() -> None:
            for maker in functions[1:]:
                m.left = 10_000_000
                values = m.call(maker, (), {})
                before = m.left
                m.call(functions[0], values, {})
                spent.append(before - m.left)

        world_made.interpreter.run(each)
    assert spent[0] - spent[1] > 100


@pytest.mark.parametrize("symbol", ["&", "|", "-", "^", "<=", "&=", "|=", "-=", "^="])
def test_operators_of_sets_pay_for_colliding_elements(symbol: str) -> None:
    text, _ = source([])
    head = f"""
def call_0(a, b):
    a {symbol} b
def colliding(): return {{i * (2 ** 61 - 1) for i in range(60)}}
@nki.jit"""
    text = text.replace("@nki.jit", head).replace(", []", ", [call_0, colliding]")
    spent = []
    with world(text) as (made, (_, (call, colliding))):
        m = made.interpreter.machine

        def each() -> None:
            values = [m.call(colliding, (), {}) for _ in range(2)]
            before = m.left
            m.call(call, values, {})
            spent.append(before - m.left)

        made.interpreter.run(each)
    assert spent[0] > 60 * 60 // 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 20))
@pytest.mark.parametrize("module", MODULES, ids=lambda name: name or "builtins")
def test_what_a_function_does_is_paid_for_many_times(module: str, seed: int) -> None:
    assert unpaid(module, seed, 1) == []


def test_what_a_program_does_is_paid_for() -> None:
    text, bodies = loops()
    found = list(works(text, bodies, lambda number: [*range(number % 3, len(LARGE), 3)]))
    assert len(found) > 50 and sum(work.steps >= STEPS for work in found) > 40
    assert [work for work in found if work.unpaid] == []


def test_a_charge_that_is_undone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text, done = source([target for target in TARGETS if target.path == "np.array"])
    shared = [*LARGE].index("shared")

    def found() -> list[Work]:
        return [w for w in works(text, done, lambda n: [shared] * (n == 0)) if w.unpaid]

    assert found() == []
    monkeypatch.setattr(machine, "_NEST_STEPS", 0)
    assert found() != []


def test_bytes_that_are_not_paid_for_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text, done = source([target for target in TARGETS if target.path == "list"])
    kind = [*LARGE].index("range")
    assert not any(work.unpaid for work in works(text, done, lambda number: [kind]))
    monkeypatch.setattr(Budget, "elements", lambda self, count, noun: None)
    assert any(work.unpaid for work in works(text, done, lambda number: [kind]))


def test_an_array_of_short_axes_is_printed_whole_and_paid_for() -> None:
    """NumPy leaves out elements of axes longer than six alone."""

    def spent(shape: str) -> int:
        code = f"import numpy as np\nrepr(np.broadcast_to(np.zeros(1), {shape}))"
        return metalanguage.body(code).steps

    assert spent("(5,) * 6") - spent("(5 ** 6,)") > 5**6


def test_zeros_that_a_number_is_read_from_are_paid_for() -> None:
    def spent(zeros: int) -> int:
        return metalanguage.body(
            f"x = b'\\0' * {zeros}\nfor i in range(9): int.from_bytes(x, 'big')"
        ).steps

    assert spent(80_000) - spent(0) > 9 * 80_000
