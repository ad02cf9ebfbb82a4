"""Answers about small kernels, and searches for limits and sizes, are what tests/data/equal says.

NKIC_BLESS=1 writes the pages again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.machine.dtypes import DTYPES
from nkic.simulate.field import decide, domain, intervals
from nkic.simulate.field.batch import batch_invariant
from nkic.simulate.field.domain import Cause, Fills, Look, distance_of, limits_of, looked
from nkic.simulate.field.functions import Order
from nkic.simulate.field.intervals import proven
from nkic.simulate.inputs import ArrayParameter, Generator
from tests.equal import test_pairs as pairs
from tests.equal import test_proofs as proofs
from tests.equal import test_references as references
from tests.equal.kernels import compiled
from tests.equal.recorded import PAGES, page, sum_of
from tests.harness.bless import compare_file

TINY = "float32[4,8]"
LINE = re.compile(r"test_(answer_pages|references)\.py:\d+")


def text_of(record: Mapping[str, Any]) -> str:
    """Return the text of an answer as data, its numbers to eight digits."""
    return json.dumps(record, default=str, sort_keys=True)


def plainly(value: Any) -> Any:
    """Return a value with all its numbers to eight digits."""
    if isinstance(value, float):
        return float(f"{value:.8g}")
    if isinstance(value, dict):
        return {key: plainly(each) for key, each in value.items()}
    return [plainly(each) for each in value] if isinstance(value, list | tuple) else value


# ---- pairs of kernels, without their limits ----

ROUNDED = "h = nl.copy({}, dtype=nl.bfloat16)\nout = nl.copy(h, dtype=nl.float32) * 2.0"
CHOSEN = {
    "clipped": ("out = nl.minimum(nl.maximum(x, -1e6), 1e6)",
                "out = nl.maximum(nl.minimum(x, 1e6), -1e6)"),
    "positive": ("out = nl.relu(nl.exp(x))", "out = nl.exp(x)"),
    "negated": ("out = nl.maximum(x, w)", "out = nl.minimum(-x, -w) * -1.0"),
    "compared": ("out = nl.greater(x, w, dtype=nl.float32)",
                 "out = nl.less(w, x, dtype=nl.float32)"),
    "or same": ("out = nl.greater_equal(x, w, dtype=nl.float32)",
                "out = 1.0 - nl.less(x, w, dtype=nl.float32)"),
    "ties": ("out = nl.greater(nl.relu(x), 0.0, dtype=nl.float32)",
             "out = nl.greater(x, 0.0, dtype=nl.float32)"),
    "selected": ("out = nl.where(nl.greater(x, w), x, w)", "out = nl.maximum(x, w)"),
    "roots": ("out = nl.sqrt(x * x * w)", "out = nl.sqrt(w) * x"),
    "roots of squares": ("out = nl.sqrt(x * x)", "out = nl.copy(x)"),
    "one root": ("out = nl.rsqrt(x + 2.0)", "out = nl.reciprocal(nl.sqrt(2.0 + x))"),
    "rounding": (ROUNDED.format("x * 0.5"), "out = nl.copy(x)"),
    "rounding twice": (ROUNDED.format("x * 0.5"), ROUNDED.format("0.5 * x")),
    "high degrees": ("out = x * x * x * x * w * w", "out = (x * x) * (x * w) * (x * w)"),
    "deep": ("out = nl.exp(nl.exp(nl.exp(x)))", "out = nl.exp(nl.exp(nl.exp(w)))"),
    "bits": ("out = x.view(nl.int32)\nout = nl.copy(x)", "out = nl.copy(x)"),
    "unconfirmed": ("out = x + w * 1e-9", "out = nl.copy(x)"),
    "sums": ("out = nl.sum(x, axis=1, keepdims=True)",
             "out = nl.sum(x, axis=1, keepdims=True) * 1.0"),
    "integers": ("out = nl.copy(x, dtype=nl.int32)", "out = nl.copy(x * 1.0, dtype=nl.int32)"),
}  # fmt: skip
ANSWERED: dict[str, Sequence[str]] = {
    **pairs.EQUAL,
    **pairs.DIFFERENT,
    "max8": (pairs.TOP, pairs.TOP),
}


def compared(pair: Sequence[str], type_: str, seed: int) -> str:
    one, other = (compiled(body, type_, type_).executable for body in pair)
    found = decide.equal(one, other, seed=seed)
    example = found.counterexample.text if found.counterexample else ""
    return f"{text_of(plainly(found.as_json()))} {example}".strip()


@pytest.fixture
def without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide._Comparing, "_limits", lambda self: ())
    monkeypatch.setattr(decide.Kernel, "proof", lambda self, arrays: None)


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("part", range(8))
def test_answers(part: int) -> None:
    names = [*ANSWERED][part::8]
    lines = [f"{name}: {compared(ANSWERED[name], 'float32[24,32]', part)}" for name in names]
    compare_file(PAGES / f"answers_{part}.txt", page(lines))


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("part", range(6))
def test_answers_about_few_elements(part: int) -> None:
    lines = list[str]()
    for name in [*CHOSEN][part::6]:
        lines.append(f"> {name}")
        lines += [compared(CHOSEN[name], "float32[1,1]", seed) for seed in (1, 2)]
        lines += [compared(CHOSEN[name], type_, 1) for type_ in ("float32[3,4]", "bfloat16[3,2]")]
    compare_file(PAGES / f"choices_{part}.txt", page(lines))


# ---- sizes of inputs ----

STAYS = "out = nl.copy(x)"
LIMITED = {
    "exp": ("out = nl.exp(x)", "out = nl.exp(x * 0.5) * nl.exp(x * 0.5)"),
    "product": ("out = x * w", "out = (x * 1e20) * (w * 1e-20)"),
    "pole": (STAYS, "out = x * x * nl.reciprocal(x)"),
    "shrinking": ("out = x * 1.0", "out = (x * 1e-30) * 1e30"),
    "digits": ("out = x - w", "out = (x * 1e4 - w * 1e4) * 1e-4"),
    "variance": (pairs.VARIANCE, pairs.EQUAL["variances"][1]),
    "roots": ("out = nl.sqrt(x) * nl.sqrt(w)", "out = nl.sqrt(x * w)"),
    "none": (STAYS, "out = x * 1.0"),
    "bfloat16": ("h = nl.copy(x, dtype=nl.bfloat16)\nout = nl.copy(h, dtype=nl.float32)", STAYS),
}


@pytest.mark.parametrize("name", LIMITED)
def test_limits(name: str) -> None:
    one, other = (compiled(body, TINY, TINY).executable for body in LIMITED[name])
    found = decide.equal(one, other)
    record = text_of(plainly(found.as_json()))
    compare_file(PAGES / f"limits_{name}.txt", page([record, *found.text.splitlines()]))


# ---- functions of NumPy ----


def first_of_two(x: Any, w: Any) -> Any:
    return x * 2.0, w


def swapped(w_hbm: Any, x_hbm: Any) -> Any:
    return x_hbm * w_hbm - w_hbm


REFERENCES: dict[str, tuple[str, Callable[..., Any]]] = {
    "softmax": (pairs.SOFTMAX, references.softmax),
    "unguarded": (pairs.SOFTMAX, references.unguarded),
    "moments": (pairs.VARIANCE, references.by_moments),
    "other": (pairs.RMS, references.rms_without_eps),
    "narrow": ("out = x * 2.0", lambda x, w: x.astype("float16") * 2),
    "narrow twice": ("out = x * 2.0", lambda x, w: (x.astype("float16") * 2).astype("float16")),
    "names": ("out = x * w - w", swapped),
    "clipped": ("out = nl.minimum(x, 6.0)", lambda x, w: np.minimum(x, 6)),
    "rows": ("out = nl.max(x, axis=1, keepdims=True)", lambda x, w: x.max(1, keepdims=True)),
    "deciding": ("out = x * 1.0", lambda x, w: x if x.max() > 0 else x * 1),
    "sorted": ("out = x * 1.0", lambda x, w: np.sort(x, 1)),
    "root": ("out = nl.sqrt(x * x)", lambda x, w: np.sqrt(x * x)),
    "scaled": ("out = x * 1.0", lambda x, w: x * 1e30 * 1e-30),
    "pole": ("out = nl.reciprocal(x)", lambda x, w: 1 / x),
    "logarithm": ("out = nl.log(x * w)", lambda x, w: np.log(x) + np.log(w)),
    "constant": ("out = nl.full((4, 8), 2.0, dtype=nl.float32)\nout = out + x * 0.0",
                 lambda x, w: np.full((4, 8), 2.0) + 0 * x),
    "two": ("out = x * 2.0", first_of_two),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_references(name: str) -> None:
    body, function = REFERENCES[name]
    made = compiled(body, TINY, TINY).executable
    try:
        found = decide.equal(made, function)
    except UsageFailed as error:
        lines = [str(error)]
    else:
        lines = [text_of(plainly(found.as_json())), *found.text.splitlines()]
    text = LINE.sub("test_answer_pages.py", page(lines))
    compare_file(PAGES / f"reference_{name.replace(' ', '_')}.txt", text)


CAUSES = {
    "exp": "out = nl.exp(x) * w",
    "product": "out = x * w * x",
    "pole": "out = w * nl.reciprocal(x) + nl.sum(x, axis=1, keepdims=True)",
    "logarithm": "out = nl.log(x - 1.0)",
    "integers": "out = nl.copy(nl.copy(x, dtype=nl.int32), dtype=nl.float32) * 1e38",
    "whole": "h = nl.copy(x, dtype=nl.int32)\n"
    "out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
    "nisa.tensor_scalar(dst=out, data=h, op0=nl.multiply, operand0=3e38)",
    "whole and not": "h = nl.copy(x, dtype=nl.int32)\n"
    "out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
    "nisa.scalar_tensor_tensor(dst=out, data=h, op0=nl.multiply, operand0=3e38, op1=nl.multiply, "
    "operand1=w)",
    "loop": "out = nl.copy(w)\ndef body(i):\n    nisa.tensor_tensor(dst=out[:, nl.ds(i, 4)], "
    "data1=out[:, nl.ds(i, 4)], data2=x[:, 0:4], op=nl.multiply)\n"
    "nl.fori_loop(0, 8, body, step=4)\nout = out * out",
    "infinite": "out = nl.full((4, 8), float('-inf'), dtype=nl.float32)\n"
    "nisa.tensor_copy(dst=out[:, 0:4], src=x[:, 0:4])\nout = nl.exp(nl.maximum(out, w) * x)",
    "narrow": "h = nl.copy(x * w, dtype=nl.float16)\nout = nl.copy(h, dtype=nl.float32) + x * x",
    "difference": "out = (x * 1e20) * 1e20 - (w * 1e20) * 1e20",
    "accumulated": "out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
    "s = nl.ndarray((4, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
    "nisa.activation(dst=out, op=nl.exp, data=x, reduce_op=nl.add, reduce_res=s,"
    " reduce_cmd=nisa.reduce_cmd.reset_reduce)\nout = out * s",
}
NUMBERS = (0.0, -1.0, 1.5, 88.5, 1e19, 1e30, 3e38)


def causes() -> Iterator[str]:
    for name, body in CAUSES.items():
        made = compiled(body, TINY, TINY)
        for good, bad in ((1.0, number) for number in NUMBERS):
            given = (proofs.inputs(made, Generator("const", (n,))) for n in (good, bad))
            cause = domain.cause_in_kernel(made.executable, *given)
            yield f"{name} of {bad:g}: {cause.text} at {cause.place} within {cause.within}"


PROVEN = {
    **{f"proofs {n}": body for n, body in enumerate(proofs.ALL)},
    **{name: both[1] for name, both in LIMITED.items()},
    **{f"power {n}": f"out = {' * '.join(['x'] * n)}" for n in (2, 3, 5)},
    **{name: getattr(proofs, name) for name in ("PARTS", "SOME", "ROUNDED", "LEAST", "CANCELLED",
                                                "WRONG_SIGN", "FUNCTIONS", "SPLIT", "BEYOND")},
    "remainder": proofs.REMAINDER.format("bfloat16", 1.0),
    "of a multiple": proofs.REMAINDER.format("float16", 0.3),
    "narrow": "h = nl.copy(x * x, dtype=nl.float16)\nout = nl.copy(h, dtype=nl.float32)",
    "of numbers": "out = nl.exp(x * 0.0 + 3.0)",
    "steep": "out = nl.exp(nl.exp(x)) + w",
    "late": "out = nl.exp(x * 1e-30)",
    "early": "out = nl.exp(x * 1e7)",
    "never": "out = nl.exp(x * 1e9)",
    "roots": "out = nl.sqrt(x)",
}  # fmt: skip


@pytest.mark.parametrize("part", range(4))
def test_proven_sizes(part: int) -> None:
    lines = list[str]()
    for name in [*PROVEN][part::4]:
        made = compiled(PROVEN[name], "float32[24,32]", "float32[24,32]")
        found = proven(made.executable, proofs.inputs(made, Generator("uniform", (0.0, 1.0, 1.0))))
        lines += [f"{name}: {text_of(plainly(found.as_json()))}", f"  {found.text('it')}"]
    compare_file(PAGES / f"proven_{part}.txt", page(lines))


def crossings() -> Iterator[str]:
    ends = (-20.0, -3.0, 5.5), (0.0, 1e-30, 1e-9, 0.25, 0.5, 1.0, 3.0)
    for peaks in product(product(*ends), repeat=2):
        yield f"{intervals._crossing(peaks):.8g}"


# ---- the search for limits, over functions that are written here ----

INPUTS = tuple(
    ArrayParameter(name, DTYPES[dtype], (2, 3), number)
    for number, (name, dtype) in enumerate((("a", "float32"), ("b", "bfloat16")))
)
HALF = (ArrayParameter("h", DTYPES["float16"], (2, 3), 0),)


def sizes_of(fills: Fills) -> Mapping[str, tuple[str, float]]:
    """Return the kind and the largest number of each input."""
    return {n: (f.name, max(map(abs, f.numbers[:2]), default=0.0)) for n, f in fills.items()}


def beyond(**most: float) -> Callable[[Fills], Look]:
    """Return a function whose first side is lost where an input is larger."""

    def look(fills: Fills) -> Look:
        sizes = sizes_of(fills)
        lost = any(n in sizes and sizes[n][1] > most[n] for n in most)
        return Look((lost, False), 0.5 if lost else 1.0, 0.0)

    return look


def below(least: float, side: int) -> Callable[[Fills], Look]:
    def look(fills: Fills) -> Look:
        lost = any(size < least for _, size in sizes_of(fills).values())
        return Look((lost and side == 0, lost and side == 1), 1.0, 0.0)

    return look


def apart(by: Callable[[float], float], form: str = "uniform") -> Callable[[Fills], Look]:
    def look(fills: Fills) -> Look:
        sizes = [size for kind, size in sizes_of(fills).values() if kind == form]
        return Look((False, False), 1.0, by(max(sizes, default=0.0)))

    return look


def both_lost(one: float, other: float) -> Callable[[Fills], Look]:
    def look(fills: Fills) -> Look:
        size = max(size for _, size in sizes_of(fills).values())
        lost = size > one, size > other
        return Look((lost[0] and not lost[1], lost[1] and not lost[0]), 1.0 - lost[0] * 1.0, 0.0)

    return look


def negative_alone(fills: Fills) -> Look:
    """A function that is not defined for negative numbers."""
    is_negative = any(f.name == "uniform" and f.numbers[0] < 0 for f in fills.values())
    size = max(size for _, size in sizes_of(fills).values())
    return Look((size > 1e3, False), 0.4 if is_negative else 1.0, 0.0)


LOOKS: dict[str, Callable[[Fills], Look]] = {
    "of a": beyond(a=77.5), "of b": beyond(b=1e5), "of both": beyond(a=5.0, b=2.0**50),
    "large": beyond(a=2.0**60), "of h": beyond(h=30000.0), "below": below(1e-9, 0),
    "below, other": below(0.25, 1), "at 0": below(1e-300, 1), "none": beyond(),
    "apart": apart(lambda size: size), "apart at once": apart(lambda size: 101.0),
    "usual": apart(lambda size: 10.0 + size), "constants": apart(lambda size: size * 2, "const"),
    "in order": both_lost(1e4, 1e6), "close": both_lost(2.0**70, 2.0**73),
    "far": both_lost(2.0**70, 2.0**80), "negative": negative_alone,
    "at 1": beyond(a=0.5), "never finite": lambda fills: Look((False, False), 0.0, 0.0),
}  # fmt: skip


def caused(side: int | None, good: Fills, bad: Fills) -> tuple[int | None, Cause]:
    size = max(size for _, size in sizes_of(bad).values())
    return side, Cause("k.py:3" if side == 0 else "", "it fails", f"`x` near {size:.3g}")


def searched(name: str) -> Iterator[str]:
    tried = list[str]()

    def look(fills: Fills) -> Look:
        tried.append(" ".join(f"{n}={f}" for n, f in sorted(fills.items())))
        return LOOKS[name](fills)

    for inputs in (INPUTS[:1], INPUTS, HALF, ()):
        tried.clear()
        found = limits_of(inputs, look, caused)
        yield f"{len(tried)} runs {sum_of(*(np.frombuffer(t.encode(), np.uint8) for t in tried))}"
        for limit in found:
            yield f"  {limit.text(('one', 'other'))}"
            yield f"  {text_of(plainly(limit.as_json()))}"


def distances() -> Iterator[str]:
    numbers = np.array([0.0, 1.0, 1.0001, 3.0, -2.0, np.inf, np.nan, 1e30])
    for name in ("float32", "bfloat16", "float16", "int32"):
        for one, other in product(numbers, repeat=2):
            with np.errstate(all="ignore"):
                far = distance_of(np.array([one, 1.0]), np.array([other, 1.0]), DTYPES[name])
            yield f"{name} {one:g} {other:g}: {far:.8g}"
    for several in (1, 2):
        triple = [(numbers, np.roll(numbers, n), DTYPES["float32"]) for n in range(several)]
        yield f"{several}: {plainly(list(looked(triple)))}"


def orders() -> Iterator[str]:
    """What an order keeps of comparisons."""
    from nkic.simulate.field.elements import choose, constant, variables

    state, yes = np.random.default_rng(1), np.array([[True, False, True]])
    x, c = variables(state, (1, 3)), constant([[0.0, -2.0, 5.0]])
    mixed = choose(yes, x, c)
    order = Order()
    for number in range(4):
        order.begin(number == 2)
        for side in (0, 1):
            order.follow(side)
            for place, (mask, counts) in enumerate(product((yes, ~yes, yes | True), repeat=2)):
                order.decided(mask if number else mask & yes, counts, place % 4, x, c, mixed)
        yield f"{sorted(order.seen)} {order.one_way()} {sorted(order._met)} {order._edges.tolist()}"


@pytest.mark.parametrize("part", [crossings, distances, orders, causes])
def test_what_searches_are_made_of(part: Callable[[], Iterator[str]]) -> None:
    compare_file(PAGES / f"{part.__name__}.txt", page([*part()]))


def test_searches_for_limits() -> None:
    lines = [line for name in LOOKS for line in (f"> {name}", *searched(name))]
    compare_file(PAGES / "searches.txt", page(lines))


# ---- batches ----

ROWS = {
    "sums": "out = nl.sum(x, axis=1, keepdims=True)",
    "softmax": pairs.SOFTMAX,
    "columns": "out = nl.sum(x, axis=1, keepdims=True) * x + w",
    "constants": "out = x * 3.0 + 0.5",
    "narrow": "out = nl.copy(nl.copy(x, dtype=nl.bfloat16), dtype=nl.float32) * w",
    "rows": "out = x * float(x.shape[0])",
    "halves": "n = 1 if x.shape[0] > 4 else 2\n"
    "out = nl.sum(nl.sum(x.reshape((x.shape[0], n, 8 // n)), axis=2), axis=1, keepdims=True)",
    "exchanged": "out = x + w if x.shape[0] > 4 else w + x",
    "top": "out = nl.ndarray((x.shape[0], 8), dtype=nl.float32, buffer=nl.sbuf)\n"
    "nisa.max8(dst=out, src=x)",
    "masks": "out = nl.where(nl.greater(x, 0.5), x, w)",
    "random": "out = nl.copy(x)\nnisa.rng(dst=out.view(nl.uint32))",
}


@pytest.mark.parametrize("name", ROWS)
def test_batches(name: str) -> None:
    lines = list[str]()
    for few, many in ((3, 5), (5, 3), (4, 4), (1, 6)):
        one, other = (
            compiled(ROWS[name], f"float32[{n},8]", f"float32[{n},8]").executable
            for n in (few, many)
        )
        try:
            found = batch_invariant(one, other)
        except UsageFailed as error:
            lines.append(f"{few}, {many}: {error}")
        else:
            lines += [f"{few}, {many}: {text_of(found.as_json())}", *found.text.splitlines()]
    compare_file(PAGES / f"batch_{name}.txt", page(lines))


def test_the_search_stops_within_its_ratio() -> None:
    """The page of searches is of a factor of 1.002, and the proofs of one of 2 ** _NEAR."""
    assert (domain._CLOSE, intervals._NEAR) == (1.002, 2.0**-5)
