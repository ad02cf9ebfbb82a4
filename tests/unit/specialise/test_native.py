"""Test NumPy's functions on tensors, and early exits from device loops, where Python evaluates."""

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nkic.artifact.read import read
from nkic.artifact.records import InstructionRecord
from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.limits import Limits
from nkic.base.profiles import Profile
from nkic.compiler.request import parse_options
from nkic.specialise import numpy
from tests.harness import two_ways
from tests.harness.kernels import compile_text
from tests.harness.metalanguage import body
from tests.harness.two_ways import Outcome

HEAD = """\
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, bias=None):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    t = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
    u = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.memset(dst=t, value=1.0)
    nisa.memset(dst=u, value=2.0)
    {body}
    nisa.dma_copy(dst=out, src=x)
    return out
"""
FIRST = HEAD[: HEAD.index("{body}")].count("\n") + 1  # the line of the body
Ways = Callable[..., list[Outcome]]


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[Ways]:
    """Return the outcomes of both ways for a kernel with this body, native first."""

    def evaluated(body: str, nki: str = "0.6") -> list[Outcome]:
        path = tmp_path / "asks.py"
        path.write_text(HEAD.format(body=body))
        request = two_ways.request_in(path, parse_options(args=["a=float32[128,64]"], nki=nki))
        with two_ways.live_module(path) as module:
            return two_ways.both(module.kernel, two_ways.as_call(request))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield evaluated


def _errors(said: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    return [one for one in said if one.level is Level.ERROR]


def arithmetic(data: bytes) -> list[tuple[object, ...]]:
    items = [item for stream in read(data).streams for item in stream.items]
    found = [one for one in items if isinstance(one, InstructionRecord)]
    return [(one.row, one.operands, one.attributes) for one in found]


@pytest.mark.parametrize(
    ("asked", "message", "advice"),
    [
        ("np.sum(x)", "`numpy.sum` does not take `x`", "write nl.sum(t, axis=1)"),
        ("np.where(t > 0, x, 0)", "`numpy.where` does not take `t`", "write nl.where"),
        ("np.fft.fft(x)", "`numpy.fft` does not take `x`", "multiply by the matrix"),
        ("np.tanh(x)", "`x` cannot be converted to a number", "nl.tanh computes it"),
        ("np.hypot(t, u)", "`t` cannot be converted", "write `nl.sqrt(nl.add("),
        ("np.multiply(t, 2.0)", "`t` cannot be converted", "nl.multiply computes it"),
        ("np.asarray(x)", "`x` cannot be converted to an array", "compute with `nl` functions"),
        ("np.from_dlpack(x)", "`x` cannot be converted to an array", "compute with `nl` functions"),
        ("np.ones((128, 64)) * x", "a NumPy array cannot be", "as an argument"),
        ("x - np.ones((128, 64))", "a NumPy array cannot be", "as an argument"),
    ],
)
def test_functions_of_numpys_own_where_python_evaluates(
    asked: str, message: str, advice: str, ways: Ways
) -> None:
    (error,) = _errors(ways(f"y = {asked}")[0].said)
    assert message in error.message
    assert advice in error.help
    assert error.primary is not None
    assert error.primary.span.line == FIRST


@pytest.mark.parametrize(
    "body",
    [
        "y = np.float32(2.0) * t",
        "y = np.float32(2.0) - t",
        "y = np.int32(2) < t",
        "y = np.ones(()) / t",
        "assert np.shape(x) == (128, 64) and np.ndim(x) == 2",
    ],
)
def test_numbers_of_numpy_are_operands_and_shapes_are_known(body: str, ways: Ways) -> None:
    assert _errors(ways(body)[0].said) == []


def test_operators_after_numpys_numbers_are_those_of_pythons_numbers(ways: Ways) -> None:
    for theirs, ours in (("np.float32(2.0) - t", "2.0 - t"), ("np.int32(2) < t", "2 < t")):
        numpys, pythons = (ways(f"y = {one}")[0].data for one in (theirs, ours))
        assert numpys is not None and pythons is not None
        assert arithmetic(numpys) == arithmetic(pythons)


@pytest.mark.parametrize(
    ("body", "word", "line"),
    [
        ("for k in nl.dynamic_range(4):\n        if bias is None:\n            break", "break", 3),
        (
            "for k in nl.dynamic_range(4):\n        for _ in range(2):\n            return out",
            "",
            3,
        ),
        ("go = nisa.register_alloc(3)\n    while go:\n        break", "break", 3),
    ],
)
def test_leaving_a_loop_on_the_device_is_said_where_it_is_left(
    body: str, word: str, line: int, ways: Ways
) -> None:
    for way in ways(body, nki="0.5"):
        error = _errors(way.said)[-1]
        assert f"`{word or 'return'}` cannot leave a loop that runs on the device" in error.message
        assert "the body is compiled once" in error.help
        assert error.primary is not None
        assert error.primary.span.line == FIRST + line - 1


# ------------------------------------------------------------------------------------------------
# NumPy's numbers and arrays in kernels: the closed world gets what Python itself gets.

BOTH_HEAD = """\
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

TABLE = np.arange(12.0).reshape(3, 4)


def kernel(x):
    out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
{body}
    nisa.dma_copy(dst=out, src=t)
    return out
"""
ENDLESS = {"runaway", "too-large"}


def both(tmp_path: Path, lines: str, nki: str = "0.7") -> list[Outcome]:
    """Return the outcomes of a kernel with these lines, native first."""
    text = BOTH_HEAD
    if nki == "beta1":
        text = text.replace("import nki", "import neuronxcc.nki")
        text = text.replace("nisa.dma_copy(dst=t, src=x)", "t[...] = nl.load(x)")
        text = text.replace("nisa.dma_copy(dst=out, src=t)", "nl.store(out, t)")
    path = tmp_path / "numbers.py"
    indented = "\n".join(f"    {line}" for line in lines.strip().splitlines())
    path.write_text(text.format(body=indented))
    request = two_ways.request_in(path, parse_options(args=["x=float32[4,4]"], nki=nki))
    with two_ways.live_module(path) as module, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return two_ways.both(module.kernel, two_ways.as_call(request))


def same(found: list[Outcome]) -> str:
    """Check that both ways compiled to the same bytes and printed the same; return the print."""
    native, closed = found
    assert native.raised is None and closed.raised is None, (native.raised, closed.raised)
    assert native.data is not None
    assert native.data == closed.data
    assert native.printed == closed.printed
    return native.printed


EXPRESSIONS = """
np.float32(1 / 3)
np.float32(1 / 3) * 3.0
np.float32(1 / 3) * np.float64(3)
1.0 / np.float32(3)
np.float32(7) // 2
np.int32(7) / 2
np.int8(100) + np.int8(100)
2 ** np.int16(3)
np.float16(65504) * 2
np.float32(1) / 0
np.float64(2.5) * 2 + 1
np.sqrt(2) * np.float32(2)
-np.uint8(3)
np.bool_(True) + 1
np.float32("-inf"), np.float32(" 0.1 "), np.float16("1e3"), np.float64("1_0"), np.half("nan")
np.intp(3), np.uintp(4), np.ulonglong(5), np.zeros(2, np.intp)
np.int32("-3"), np.intp(" 4 "), np.uint8("255")
~np.int32(5)
np.float32(2) == 2
np.float32(0.1) == 0.1
np.int32(3) < 2.5
[np.float32(1.5), np.float64(2)]
f"{np.float32(0.1):.3f} {np.float64(2):g}"
abs(np.float32(-2)), round(np.float32(2.567), 2), int(np.float32(2.9)), float(np.int8(3))
bool(np.float32(0)), max(np.float32(3), 2), sum([np.float32(1), 2]), [10, 20][np.int64(1)]
list(range(np.int32(3))), [0] * np.int64(2), "ab" * np.int8(2), (1,) * np.uint8(3)
isinstance(np.float32(1), np.floating), isinstance(np.float64(1), float), isinstance(1, np.int32)
isinstance(np.int32(1), np.integer), isinstance(np.zeros(1), np.ndarray)
isinstance(np.int32(1), np.int32), isinstance(np.int32(1), int)
np.finfo(np.float32).max, np.finfo("float16").eps, np.iinfo(np.int32).min, np.iinfo(np.uint8).bits
np.float32(3).item(), np.int64(3).dtype, np.float32(2.5).astype(np.int32)
np.prod((2, 3)), np.ceil(1.5), np.floor(-1.5), np.maximum(2, 3), np.log2(8), np.abs(-3)
{np.int32(1): "a"}[1], {1: "b"}[np.int64(1)], np.float32(1) in [1, 2], 3 in np.arange(4)
np.tril(np.ones((3, 3))), np.triu(np.ones((3, 3)), 1), np.tri(3), np.eye(3, k=1), np.identity(2)
np.identity(n=2, dtype=np.int8), np.eye(N=2, M=3), np.tri(N=2), np.full(shape=2, fill_value=1)
np.zeros(shape=(2, 1)), np.arange(start=1, stop=7, step=2), np.linspace(start=0, stop=1, num=3)
np.repeat(a=np.ones(2), repeats=2), np.broadcast_to(array=np.ones(2), shape=(3, 2))
np.diag(v=np.ones(2), k=1), np.tile(A=np.ones(2), reps=2), np.kron(a=np.ones(2), b=np.ones(2))
np.arange(6).reshape(2, 3) * 2.5, np.arange(1, 2, 0.25), np.linspace(0, 1, 5)
np.where(TABLE > 5, TABLE, -1), TABLE.T, TABLE[1], TABLE[:, 1:3], TABLE[-1, ::2]
TABLE[[0, 2], [1, 3]], TABLE[TABLE > 7], TABLE[None, 0, ...].shape
np.concatenate([TABLE, TABLE]), np.stack([TABLE[0], TABLE[1]], axis=1), np.tile([1, 2], (2, 2))
np.kron([[1, 2]], [[1], [1]]), np.outer([1, 2], [3, 4]), np.repeat([1, 2], 2), np.diag([1, 2])
TABLE.sum(), TABLE.sum(axis=0), TABLE.mean(axis=1, keepdims=True), TABLE.argmax(), TABLE.max()
np.cumsum(TABLE, axis=1), np.sort([3, 1, 2]), np.clip(TABLE, 2, 5), np.flip(TABLE, 0)
TABLE.astype(np.int32).dtype, TABLE.astype("float16").itemsize, TABLE.tolist(), len(TABLE)
np.array([[1, 2], [3, 4]], dtype=np.float32), np.array(3).ndim, np.asarray((1, 2)).size
np.full((2, 2), 7), np.zeros_like(TABLE), np.expand_dims(TABLE, 0).shape, np.squeeze([[1]])
np.exp(TABLE[0]), np.sin([0.5]), np.logical_and([True, False], True), np.isfinite([1.0, np.inf])
np.dtype("f4"), np.dtype(np.float32).type(0), np.dtype(np.float32).itemsize, TABLE.dtype
TABLE.dtype == np.float64, np.float32(1).dtype == nl.float32, nl.float32 == np.float32
[row.sum() for row in TABLE], [value for value in np.float32([1, 2])], np.float32([1, 2]) + 1
np.swapaxes(TABLE, 0, 1).shape, np.meshgrid([1, 2], [3, 4]), np.broadcast_to([1, 2], (2, 2))
np.bitwise_and(6, 3), np.left_shift([1, 2], 2), np.remainder(7, 3), np.power([2, 3], 2)
""".strip().splitlines()


@pytest.mark.parametrize("nki", ["beta1", "0.3", "0.7"])
def test_numbers_and_arrays_are_those_of_python(tmp_path: Path, nki: str) -> None:
    lines = [one for one in EXPRESSIONS if nki != "beta1" or "nl." not in one]
    printed = same(both(tmp_path, "\n".join(f"print({one})" for one in lines), nki))
    assert "np.float32(1.5), np.float64(2.0)" in printed


@pytest.mark.parametrize("call", ["np.float32(x=1.0)", "np.int8(1, a=2)", "np.float64(1.0, 2.0)"])
def test_a_type_takes_one_argument_without_a_name(call: str, tmp_path: Path) -> None:
    assert [one.data for one in both(tmp_path, call)] == [None, None]
    caught = f"try:\n    {call}\nexcept TypeError:\n    print('refused')"
    assert "refused" in same(both(tmp_path, caught))


WRITES = """
a = np.zeros((4, 4), dtype=np.float32)
a[0, 1] = 5
a[2] += 1
a[:, 3] = [1, 2, 3, 4]
a[a > 3] = -1
a[[1, 3], [0, 0]] = np.float32(0.1)
view = a[3]
view[1:3] = 9
a *= 2
a.fill(7) if a.sum() > 1000 else None
c = nl.shared_constant(a)
a[0] = 100
b = a.copy()
b[1, 1] = -5
print(a, b, c.shape)
u = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=u, src=c)
nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
nisa.dma_copy(dst=u, src=nl.shared_constant(b))
nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=np.float32(0.1))
"""


def test_a_kernel_writes_the_arrays_that_it_made(tmp_path: Path) -> None:
    printed = same(both(tmp_path, WRITES))
    assert "[  0.2  18.   18.   -2. ]" in printed  # by a list, a view, a mask, and in place
    assert printed.count("-5.") == 1  # the copy


@pytest.mark.parametrize("profile", [p for p in Profile if p is not Profile.BETA1])
def test_numbers_of_numpy_are_operands_in_every_version(profile: Profile) -> None:
    text = BOTH_HEAD.replace("def kernel", "@nki.jit\ndef kernel").format(
        body="    s = np.float32(1.0 / x.shape[0]) * np.sqrt(4)\n"
        "    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=s)"
    )
    block = f'# /// nkic\n# nki = "{profile.label}"\n# [args]\n# x = "float32[4, 4]"\n# ///\n'
    assert compile_text(block + text) == ()


def test_arrays_of_the_module_are_new_in_every_compilation(tmp_path: Path) -> None:
    block = '# /// nkic\n# [args]\n# x = "float32[4, 4]"\n# ///\n'
    text = BOTH_HEAD.replace("def kernel", "@nki.jit\ndef kernel").format(
        body="    assert TABLE[0, 0] == 0\n    TABLE[0, 0] = 5"
    )
    assert compile_text(block + text) == compile_text(block + text) == ()


@pytest.mark.parametrize("name", sorted(numpy.FUNCTIONS))
def test_every_function_is_numpys_and_is_paid_for(name: str) -> None:
    """Each is called with arguments that it takes, and costs more with larger ones."""
    import numpy as np

    assert callable(getattr(np, name))
    if name in ("shape", "ndim", "size"):
        return
    small, large = (_steps(name, count) for count in (4, 400))
    assert small is not None and large is not None, name
    assert large - small >= 396, (small, large)


def _steps(name: str, count: int) -> int | None:
    """Return the steps of a call with arrays of `count` elements, in the first form that works."""
    a = f"np.arange({count})"
    forms = (
        *(f"np.{name}({count})", f"np.{name}({a})", f"np.{name}({a}, {a})", f"np.{name}({a}, 1)"),
        *(f"np.{name}(0, {count}, {count})", f"np.{name}({count}, 1.5)", f"np.{name}([{a}, {a}])"),
        *(f"np.{name}(True, {a}, {a})", f"np.{name}({a}, 0, 0)", f"np.{name}([{a}], 0, 1)"),
        *(f"np.{name}(1, {count})", f"np.{name}({a}, {count}, 2)"),
        f"np.{name}({a}, (-1, 1))",
    )
    for form in forms:
        done = body(f"import numpy as np\na = {a}\nr = {form}\nreturn np.size(r)")
        if not done.slugs and (done.value > 1 or "arange" in form):
            return done.steps
    return None


@pytest.mark.parametrize(
    "code",
    """
np.zeros(10**12)
np.ones((10**6, 10**6))
np.full((2**40,), 1.5)
np.eye(10**7)
np.arange(10**12)
np.linspace(0, 1, 10**12)
np.tile([1], 10**12)
np.repeat([1], 10**12)
np.broadcast_to([1], (10**6, 10**6)).sum()
np.zeros((10**4, 1)) + np.zeros((1, 10**5))
np.outer(np.zeros(10**5), np.zeros(10**5))
np.kron(np.zeros(10**5), np.zeros(10**5))
np.zeros((2, 10**5))[np.zeros(10**5, dtype=np.int32)]
np.diag([1], 10**6)
np.meshgrid(*[np.arange(10**3)] * 4)
np.where(np.zeros((10**5, 1)), np.zeros((1, 10**5)), 0)
[0] * np.int64(10**10)
'a' * np.int64(10**10)
np.int64(10**10) * [0]
list(range(np.int64(10**10)))
f"{1:{np.int64(10**10)}}"
np.array(x)
np.float32(x)
np.zeros(10**5) + x
np.zeros(10**5)[x]
while True: a += 1
while True: a[0] = 1
while True: np.add(1, 1)
while True: np.float32(1)
for i in range(2000): np.float32(zeros)
""".strip().splitlines(),
)
def test_what_is_large_is_paid_for_before_it_is_made(code: str) -> None:
    head = "import numpy as np\na = np.zeros(100000)\nzeros = '0' * 10**5\n"
    head += "x = [1]\nfor i in range(60): x = [x, x]\n"
    assert body(f"{head}{code}", limits=Limits(steps=10_000_000)).slugs[0] in ENDLESS


@pytest.mark.parametrize(
    "value", ["len", "'a'", "object()", "{}", "lambda: 1", "np", "np.add", "[['a']]", "A()"]
)
def test_numpy_sees_numbers_and_its_own_values_only(value: str) -> None:
    head = "import numpy as np\nclass A:\n    def __float__(self): return 1.0\n"
    for form in ("np.float32({})", "np.array([1, {}])", "np.add({}, 1)", "np.zeros(2)[{}]"):
        done = body(f"{head}return {form.format(value)}")
        if (form, value) == ("np.float32({})", "'a'"):  # float() reads texts, as "-inf"
            assert done.slugs == ["wrong-value"]
            continue
        assert done.slugs in (["argument-kind"], ["wrong-type"], ["bad-index"]), (form, done.slugs)


def test_random_arithmetic_is_that_of_python(tmp_path: Path) -> None:
    rng = random.Random(4)
    names = [*numpy.TYPES, *numpy.TYPES]
    lines = []
    for _ in range(300):
        first, second = (
            f"np.{rng.choice(names)}({rng.choice(('1', '0', '2.5', '3'))})" for _ in range(2)
        )
        if rng.random() < 0.3:
            second = rng.choice(
                ("2", "1.5", "True", f"np.array([1, 2], dtype=np.{rng.choice(names)})")
            )
        symbol = rng.choice(("+", "-", "*", "/", "//", "%", "**", "<", "==", "&", "<<"))
        pair = (first, second) if rng.random() < 0.5 else (second, first)
        lines.append(f"try: print({pair[0]} {symbol} {pair[1]})")
        lines.append("except TypeError: print('no')")
        lines.append("except ValueError: print('no')")
        lines.append("except OverflowError: print('no')")
    same(both(tmp_path, "\n".join(lines)))
