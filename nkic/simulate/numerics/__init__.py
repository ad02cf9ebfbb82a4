"""Operators and functions on plain arrays, without memories, engines or instructions.

Every function writes to `out` and accepts an operand as `out`. Numbers are float32 in arrays of any
layout; results depend on values alone, never on layout, threads or block sizes. docs/fidelity.md
states the rules. NumPy's warnings about overflow or NaN do not apply here: callers work inside
`quiet()`.

    alu         one or two operands, one result: `machine.operators.ALU`
    activation  functions of the scalar engine: `machine.operators.ACTIVATIONS`
    reduction   sums, products, maxima along axes
    scan        recurrences along the free axis
    matmul      the tensor engine's product
    sums        orders of summation; chain: sequential sums in float32, by BLAS
    statistics  mean and variance
    vector      largest elements, selection, transposition
"""

from __future__ import annotations

import numpy as np


def quiet() -> np.errstate:
    """Return a context in which NaN, overflow and division by zero raise no warning."""
    return np.errstate(all="ignore")
