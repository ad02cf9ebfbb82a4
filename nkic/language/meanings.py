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
    "masked_fill": "where",
    "dot": "matmul",
    "mm": "matmul",
    "bmm": "matmul",
    "einsum": "matmul",
    "unsqueeze": "expand_dims",
    "tile": "broadcast_to",
    "repeat": "broadcast_to",
    "expand": "broadcast_to",
    "empty": "ndarray",
    "array": "ndarray",
    "half": "float16",
    "bf16": "bfloat16",
    "fp16": "float16",
}


def meant(name: str, names: Container[str]) -> str:
    """Return a `Guess` at the member of `names` that another library's name means, or ""."""
    meaning = MEANT.get(name, "")
    return Guess(name, meaning, False) if meaning in names else ""
