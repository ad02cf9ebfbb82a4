"""Kernels with one random fault each, against the original and a reference in NumPy: none is called
equal unless ordinary runs agree, too.
"""

import re
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.simulate.field.decide import equal
from tests.equal.kernels import compiled

SAMPLES = (
    """
    m = nl.max(x * 0.5, axis=1, keepdims=True)
    e = nl.exp(x * 0.5 - m)
    s = nl.sum(e, axis=1, keepdims=True)
    out = e * nl.reciprocal(s) * w + 0.25
    """,
    """
    r = nl.rsqrt(nl.mean(x * x, axis=1, keepdims=True) + 0.125)
    a = nl.copy(x[0:24, 1:31]) * r
    out = nl.silu(a) * w[0:24, 2:32] - 3.0
    """,
    """
    a = nl.maximum(x[0:24, 0:16], w[0:24, 16:32])
    b = nl.tanh(x[0:24, 1:17] + 1.5) * 2.0
    out = nl.where(nl.greater(a, 0.5), a * b, a - b)
    """,
    """
    c = x - nl.mean(x, axis=1, keepdims=True)
    v = nl.mean(c * c, axis=1, keepdims=True) + 0.25
    out = c * nl.rsqrt(v) * w[0:24, 0:32] + 0.5
    """,
    """
    s = nl.matmul(x[0:24, 0:16], w[0:24, 4:32], transpose_x=True) * 0.25
    e = nl.exp(s - nl.max(s, axis=1, keepdims=True))
    out = e[0:16, 2:26] * nl.reciprocal(nl.sum(e, axis=1, keepdims=True)) + 0.5
    """,
)


def scaled_softmax(x: Any, w: Any) -> Any:
    e = np.exp(x * 0.5)
    return e / e.sum(axis=1, keepdims=True) * w + 0.25


def gated(x: Any, w: Any) -> Any:
    a = x[:24, 1:31] / np.sqrt((x**2).mean(axis=1, keepdims=True) + 0.125)
    return a / (1 + np.exp(-a)) * w[:, 2:32] - 3


def chosen(x: Any, w: Any) -> Any:
    a, b = np.maximum(x[:, :16], w[:, 16:]), 2 * np.tanh(x[:, 1:17] + 1.5)
    return np.where(a > 0.5, a * b, a - b)


def normalised(x: Any, w: Any) -> Any:
    return (x - x.mean(1)[:, None]) / np.sqrt(np.var(x, axis=1)[:, None] + 0.25) * w + 0.5


def scores(x: Any, w: Any) -> Any:
    s = np.einsum("ki,kj->ij", x[:, :16], w[:, 4:]) / 4
    e = np.exp(s - np.max(s, axis=1, keepdims=True))
    return (e / np.sum(e, axis=1, keepdims=True))[:, 2:26] + 0.5


REFERENCES = (scaled_softmax, gated, chosen, normalised, scores)
CHANGES = 40  # of each sample, so that there are 200
SWAPS = {" + ": " - ", " - ": " + ", " * ": " + ", "max": "min", "sum": "mean", "mean": "sum"}
SWAPS |= {"maximum": "minimum", "greater": "less", "tanh": "sigmoid", "silu": "gelu", "x": "w"}


def mutant(text: str, random: Random) -> str:
    """Return the text with a number, an offset or an operator changed."""
    places = [*re.finditer(r"\d+\.\d+|\b[xw]\b| [-+*] |\b[a-z]{3,7}\b", text)]
    while True:
        found = random.choice(places)
        word = found[0]
        other = SWAPS.get(word, "")
        if re.fullmatch(r"\d+\.\d+", word):
            other = str(float(word) * random.choice((1.5, -1.0, 1.001, 0.75, 3.0)))
        if other:
            return text[: found.start()] + other + text[found.end() :]


def shifted(text: str, random: Random) -> str:
    """Return the text with a slice moved by one."""
    places = [m for m in re.finditer(r"(\d+):(\d+)\]", text) if m[1] != "0"]
    if not places:
        return mutant(text, random)
    found = random.choice(places)
    slice_text = f"{int(found[1]) - 1}:{int(found[2]) - 1}]"
    return text[: found.start()] + slice_text + text[found.end() :]


def differ(one: nkic.Artifact, other: nkic.Artifact) -> bool:
    """Return whether the outputs of ordinary runs differ by more than rounding."""
    for fill in ("randn(5)", "uniform(-3,3,6)"):
        a, b = (nkic.run(k, fill=fill).outputs["output_0"] for k in (one, other))
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True):
            return True
    return False


def mutants(number: int, count: int) -> list[str]:
    """Return so many different mutants of a sample: some have two faults."""
    random, found = Random(number), {SAMPLES[number]}
    while len(found) <= count:
        text = random.choice((mutant, mutant, shifted))(SAMPLES[number], random)
        found.add(mutant(text, random) if random.random() < len(found) / count else text)
    return sorted(found - {SAMPLES[number]})


def check(number: int, count: int) -> Counter[str]:
    """Compare mutants of a sample with it and with its reference; return the verdicts."""
    original, verdicts = compiled(SAMPLES[number]), Counter[str]()
    for text in mutants(number, count):
        other = compiled(text)
        differs = differ(original, other)
        answers = []
        if shape(original) == shape(other):
            answers = [equal(original.executable, other.executable)]
            answers.append(nkic.equal(other, REFERENCES[number]))
        for answer in answers:
            assert not (differs and answer), answer.text + text
            assert answer.verdict == "different" or not differs, answer.text + text
            verdicts[answer.verdict] += 1
    return verdicts


def shape(kernel: nkic.Artifact) -> tuple[int, ...]:
    return kernel.signature.outputs[0].shape


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_no_mutant_is_called_equal_that_is_not(number: int) -> None:
    original = compiled(SAMPLES[number])
    assert equal(original.executable, original.executable)
    assert nkic.equal(original, REFERENCES[number])
    verdicts = check(number, 3)
    assert verdicts["different"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_none_of_two_hundred(number: int) -> None:
    verdicts = check(number, CHANGES)
    assert verdicts["different"] >= CHANGES and verdicts.total() == 2 * CHANGES, verdicts
