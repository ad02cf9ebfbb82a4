"""Kernels with one random fault each: none is called equal unless ordinary runs agree, too."""

from __future__ import annotations

import re
from random import Random

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
)
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
            other = str(float(word) * random.choice((1.5, -1.0, 1.001)))
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


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_no_mutant_is_called_equal_that_is_not(number: int) -> None:
    text, random, verdicts = SAMPLES[number], Random(number), []
    original = compiled(text)
    for change in (mutant, mutant, mutant, mutant, shifted, shifted):
        other = compiled(change(text, random))
        answer = equal(original.executable, other.executable)
        differs = differ(original, other)
        assert not (differs and answer), answer.text
        assert answer.verdict == "different" if differs else answer.verdict != "different"
        verdicts.append(answer.verdict)
    assert verdicts.count("different") >= 4
    assert equal(original.executable, original.executable)
