"""Where kernels that are equal as functions part: an overflow, a pole, lost digits."""

import json
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.machine.dtypes import DTYPES
from nkic.simulate.field.domain import distance_of
from nkic.simulate.inputs import parse_generator
from tests.equal.kernels import answer, compiled
from tests.equal.test_pairs import ONLINE, PLAIN, RMS, SOFTMAX, VARIANCE
from tests.equal.test_references import by_moments, rms, softmax

ROOTS = "out = nl.exp(nl.sqrt(x)) / nl.exp(nl.sqrt(w))"
GUARDED = "out = nl.exp(nl.sqrt(x) - nl.sqrt(w))"


def finite(body: str, *fills: str) -> bool:
    """Return whether a kernel's results are finite at `--inputs` of a limit."""
    kernel, given = compiled(body), dict(fill.split("=") for fill in fills)
    arrays = {}
    for p in kernel.signature.inputs:
        generator = parse_generator(given[p.name])
        assert generator is not None
        arrays[p.name] = generator.array(p.name, p.dtype, p.shape)
    return bool(np.isfinite(nkic.run(kernel, arrays).outputs["output_0"]).all())


@pytest.mark.filterwarnings("error")
def test_integers_that_differ_are_infinitely_far_apart() -> None:
    one, other = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    assert distance_of(one, one, DTYPES["int32"]) == 0
    assert distance_of(one, other, DTYPES["int32"]) == np.inf
    assert 100 < distance_of(one, other, DTYPES["float32"]) < np.inf


def test_a_softmax_without_its_maximum_overflows_where_exp_does() -> None:
    (limit, *_) = found = answer(SOFTMAX, PLAIN).limits
    assert (limit.side, limit.way.form, limit.cause.place) == (1, "within", "k.py:9")
    assert limit.cause.text == "activation (exp) makes infinity of numbers"
    assert 88.72 / 1.01 < limit.holds < limit.fails < 88.73 * 1.01
    assert limit.other > 1e30
    assert not finite(PLAIN, *limit.fill) and finite(SOFTMAX, *limit.fill)
    held = [fill.replace(f"{limit.fails:g}", f"{limit.holds:g}") for fill in limit.fill]
    assert finite(PLAIN, *held)
    assert [each.side for each in answer(PLAIN, SOFTMAX).limits] == [0] * len(found)


@pytest.mark.parametrize("pair", [(SOFTMAX, ONLINE), (SOFTMAX, SOFTMAX), (RMS, rms)])
def test_guarded_kernels_have_no_limit(pair: tuple[str, Any]) -> None:
    first, second = pair
    found = (
        answer(first, second) if isinstance(second, str) else nkic.equal(compiled(first), second)
    )
    assert found and not found.limits
    assert "no inputs were found at which only one overflows" in found.text


def test_a_reference_has_no_limit_where_the_kernel_has_one() -> None:
    found = nkic.equal(compiled(PLAIN), softmax)
    assert found and found.limits[0].side == 0
    line = found.text.splitlines()[1]
    assert line.startswith("limit of the first kernel at k.py:9: activation (exp) makes infinity")
    assert "the function stays finite up to 2.127e+37" in line
    record = json.loads(json.dumps(found.as_json()))["limits"][0]
    assert record["place"] == "k.py:9" and record["within"].startswith("`t2` beyond [-88.")


def test_variance_by_moments_loses_its_digits_far_from_zero() -> None:
    found = nkic.equal(compiled(VARIANCE), by_moments)
    lost = [limit for limit in found.limits if limit.cause.text == "digits are lost"]
    assert [(limit.side, limit.way.form) for limit in lost] == [(1, "around")]
    assert 50 < lost[0].fails < 1000


def test_a_pole_is_found_where_inputs_shrink() -> None:
    found = answer("out = nl.copy(x)", "out = x * x * nl.reciprocal(x)").limits
    (limit,) = (limit for limit in found if limit.fails < limit.holds)
    assert limit.side == 1 and 2.0**-140 < limit.fails < limit.holds < 2.0**-110
    assert limit.cause.text == "reciprocal makes infinity of numbers"


def test_functions_of_positive_numbers_are_tried_on_these() -> None:
    (limit, *_) = answer(GUARDED, ROOTS).limits
    assert limit.side == 1 and limit.way.low == 0.0
    assert 88.7**2 < limit.fails < 90**2


def test_limits_are_the_same_each_time() -> None:
    assert answer(SOFTMAX, PLAIN).as_json() == answer(SOFTMAX, PLAIN).as_json()
