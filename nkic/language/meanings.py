"""Names in PyTorch, JAX and NumPy for functions with a different name in `nki.language`.

Only names that differ by more than a spelling correction are listed.
"""

from __future__ import annotations

from collections.abc import Container

from nkic.base.suggest import Guess

MEANT = {
    "gelu_tanh": "gelu_apprx_tanh",
    "gelu_new": "gelu_apprx_tanh",
    "gelu_fast": "gelu_apprx_tanh",
    "gelu_pytorch_tanh": "gelu_apprx_tanh",
    "gelu_sigmoid": "gelu_apprx_sigmoid",
    "quick_gelu": "gelu_apprx_sigmoid",
    "swish": "silu",
    "logistic": "sigmoid",
    "expit": "sigmoid",
    "leaky_relu": "prelu",
    "atan": "arctan",
    "amax": "max",
    "amin": "min",
    "pow": "power",
    "mul": "multiply",
    "sub": "subtract",
    "div": "divide",
    "true_divide": "divide",
    "remainder": "mod",
    "neg": "negative",
    "inverse": "reciprocal",
    "bitwise_not": "invert",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
    "empty": "ndarray",
    "times": "multiply",
    "absolute": "abs",
    "half": "float16",
    "bf16": "bfloat16",
    "fp16": "float16",
}

_REPEAT = ("broadcast_to", "nl.broadcast_to(t, shape) repeats the elements of a tile")
_PRODUCT = ("matmul", "nl.matmul(x, y) multiplies two matrices")
# Names of functions whose arguments differ: the member of `nki.language` that does it, and how.
OTHERWISE = {
    "tile": _REPEAT,
    "repeat": _REPEAT,
    "expand": _REPEAT,
    "dot": _PRODUCT,
    "mm": _PRODUCT,
    "bmm": _PRODUCT,
    "einsum": _PRODUCT,
    "array": ("shared_constant", "nl.shared_constant(array) puts known numbers into HBM"),
    "unsqueeze": ("expand_dims", "nl.expand_dims(t, axis) adds a dimension of size 1"),
    "masked_fill": ("where", "nl.where(condition, x, y) chooses element by element"),
    "clip": ("minimum", "nl.minimum(nl.maximum(t, low), high) keeps values within bounds"),
    "clamp": ("minimum", "nl.minimum(nl.maximum(t, low), high) keeps values within bounds"),
    "argmax": ("max", "nisa.max8, then nisa.nc_find_index8, find the places of the largest values"),
    "topk": ("max", "nisa.max8 finds the 8 largest values, nisa.nc_find_index8 their places"),
    "layer_norm": ("mean", "nisa.bn_stats and nisa.bn_aggr compute mean and variance"),
}


def meant(name: str, names: Container[str]) -> str:
    """Return a `Guess` at the member of `names` that another library's name means, or ""."""
    meaning = MEANT.get(name, "")
    return Guess(name, meaning, False) if meaning in names else ""


def otherwise(name: str, names: Container[str]) -> str:
    """Return how to do what another library's function does, or ""."""
    member, text = OTHERWISE.get(name, ("", ""))
    return text if member in names else ""
