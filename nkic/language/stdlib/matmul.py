"""Matrix multiplication of two tiles."""

import nki.isa as nisa
import nki.language as nl
from nkic.stdlib import _in_sbuf, _known_issue, _require, transpose


def matmul(x, y, transpose_x=False):
    """x @ y, or x.T @ y, as a new float32 tile in PSUM."""
    are_matrices = len(x.shape) == 2 and len(y.shape) == 2
    advice = "reshape or slice them"
    _require(are_matrices, "{} @ {}: 2 dimensions each", x.shape, y.shape, help=advice)
    inner = x.shape[0] if transpose_x else x.shape[1]
    rows = y.shape[0]
    fit = "of x @ y, the last size of x is the first of y: transpose one, or pass transpose_x=True"
    text = "{} and {} do not fit: {} is not {}"
    _require(inner == rows, text, x.shape, y.shape, inner, rows, help=fit)
    if not transpose_x:
        advice = "load x transposed, and pass transpose_x=True"
        _known_issue("nl.matmul without transpose_x=True", 1, advice)
    stationary = _in_sbuf(x if transpose_x else transpose(x))
    moving = _in_sbuf(y)
    result = nl.ndarray((stationary.shape[1], y.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=result, stationary=stationary, moving=moving, accumulate=False)
    return result
