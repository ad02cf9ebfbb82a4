"""Names of PyTorch, NumPy, JAX and Triton: what they are called in NKI, and how to write what NKI
has no function for.

Each advice on a name is a claim: tests/advice/test_foreign.py puts the code that it quotes in the
place of the name and compiles that. `t` is the tensor, `u` another, `n` a number of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from functools import wraps
from typing import Any, TypeVar, cast

from nkic.base.device import KernelError
from nkic.base.diagnostics import Guess, did_you_mean

# Functions with the same arguments and another name. Only names that differ by more than a spelling
# correction are listed, and those whose nearest name computes something else.
MEANT = {
    **dict.fromkeys(("gelu_tanh", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_apprx_tanh"),
    **dict.fromkeys(("gelu_sigmoid", "quick_gelu"), "gelu_apprx_sigmoid"),
    "swish": "silu",
    **dict.fromkeys(("logistic", "expit"), "sigmoid"),
    "leaky_relu": "prelu",
    "atan": "arctan",
    "amax": "max",
    "amin": "min",
    "pow": "power",
    **dict.fromkeys(("mul", "times", "mult"), "multiply"),
    "sub": "subtract",
    **dict.fromkeys(("div", "true_divide"), "divide"),
    "remainder": "mod",
    "neg": "negative",
    "bitwise_not": "invert",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
    "empty": "ndarray",
    "absolute": "abs",
    "clone": "copy",
    "trans": "transpose",
    "half": "float16",
    "bf16": "bfloat16",
    "fp16": "float16",
    "float": "float32",
    "int": "int32",
}

_REPEAT = ("broadcast_to", "nl.broadcast_to(t, shape) repeats the elements of a tile")
_PRODUCT = ("matmul", "nl.matmul(x, y) multiplies two matrices")
_JOIN = (
    "ndarray",
    "make the whole with nl.ndarray, and write each part into its columns: "
    "`nisa.tensor_copy(dst=u[:, 0:n], src=t)`",
)
_PARTS = ("ndarray", "a slice is a part, without a copy: `t[:, 0:n]`")
_CLIP = ("minimum", "nl.minimum(nl.maximum(t, low), high) keeps values within bounds")
_SORT = (
    "max",
    "nothing sorts: nisa.max8 finds the 8 largest values, nisa.nc_find_index8 their places",
)
_WIDE = ("float32", "no engine computes with 64 bits: use nl.float32 or nl.int32")

# Names of functions whose arguments differ: the member of `nki.language` that does it, and how.
OTHERWISE = {
    **dict.fromkeys(("tile", "repeat", "expand", "expand_as"), _REPEAT),
    **dict.fromkeys(("dot", "mm", "bmm", "einsum", "linear"), _PRODUCT),
    "array": ("shared_constant", "nl.shared_constant(array) puts known numbers into HBM"),
    **dict.fromkeys(
        ("unsqueeze", "newaxis"),
        ("expand_dims", "nl.expand_dims(t, axis) adds a dimension of size 1"),
    ),
    "inverse": ("reciprocal", "nothing inverts a matrix; `nl.reciprocal(t)` divides 1 by elements"),
    "masked_fill": ("where", "nl.where(condition, x, y) chooses element by element"),
    **dict.fromkeys(("clip", "clamp"), _CLIP),
    "relu6": ("relu", "write `nl.minimum(nl.relu(t), 6.0)`"),
    "exp2": ("exp", "write `nl.exp(nl.multiply(t, 0.6931471805599453))`"),
    "log2": ("log", "write `nl.multiply(nl.log(t), 1.4426950408889634)`"),
    "log10": ("log", "write `nl.multiply(nl.log(t), 0.4342944819032518)`"),
    "log1p": ("log", "write `nl.log(nl.add(t, 1.0))`"),
    "expm1": ("exp", "write `nl.subtract(nl.exp(t), 1.0)`"),
    "sinh": ("exp", "write `nl.multiply(nl.subtract(nl.exp(t), nl.exp(nl.negative(t))), 0.5)`"),
    "cosh": ("exp", "write `nl.multiply(nl.add(nl.exp(t), nl.exp(nl.negative(t))), 0.5)`"),
    "erfc": ("erf", "write `nl.subtract(1.0, nl.erf(t))`"),
    "fma": ("add", "write `nl.add(nl.multiply(t, u), t)`, or one nisa.scalar_tensor_tensor"),
    "std": ("var", "write `nl.sqrt(nl.var(t, axis=1))`"),
    "norm": ("sum", "write `nl.sqrt(nl.sum(nl.square(t), axis=1))`"),
    "any": ("max", "write `nl.max(nl.not_equal(t, 0.0), axis=1)`"),
    "logsumexp": ("log", "write `nl.log(nl.sum(nl.exp(t), axis=1))`, with the maximum taken off t"),
    "log_softmax": ("softmax", "write `nl.log(nl.softmax(t, axis=1))`"),
    "argmax": ("max", "nisa.max8, then nisa.nc_find_index8, find the places of the largest values"),
    "topk": ("max", "nisa.max8 finds the 8 largest values, nisa.nc_find_index8 their places"),
    **dict.fromkeys(("sort", "argsort"), _SORT),
    "cumsum": ("add", "nisa.tensor_tensor_scan computes running sums along the free dimension"),
    "cumprod": ("add", "nisa.tensor_tensor_scan computes running products"),
    "layer_norm": ("mean", "nisa.bn_stats and nisa.bn_aggr compute mean and variance"),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack", "hstack", "vstack"), _JOIN),
    **dict.fromkeys(("split", "chunk", "narrow"), _PARTS),
    "full_like": ("full", "write `nl.full(t.shape, 1.0, dtype=t.dtype)`"),
    "ones_like": ("ones", "write `nl.ones(t.shape, dtype=t.dtype)`"),
    "eye": ("shared_identity_matrix", "nl.shared_identity_matrix(n) puts one into HBM"),
    "cast": ("copy", "write `nl.copy(t, dtype=nl.bfloat16)`"),
    "squeeze": ("ndarray", "it is a method, for a dimension of size 1: `t.squeeze_dim(dim)`"),
    "reshape": ("ndarray", "it is a method, for the free dimensions: `t.reshape((128, 2, 32))`"),
    "view": ("ndarray", "it is the method reshape: `t.reshape((128, 2, 32))`"),
    "permute": ("transpose", "it is a method, for the free dimensions; nl.transpose swaps both"),
    "cdiv": ("ndarray", "write `(n + 3) // 4` with Python's integers"),
    "constexpr": ("ndarray", "every argument that is not a tensor is known while compiling"),
    "static_assert": ("ndarray", "write `assert n > 0`, which is evaluated while compiling"),
    "atomic_add": ("ndarray", "nothing is atomic: each program writes a part of its own"),
    "debug_barrier": ("ndarray", "nisa.core_barrier orders two cores; the rest is ordered for you"),
    "inf": ("ndarray", 'write `float("inf")`'),
    "nan": ("ndarray", 'write `float("nan")`'),
    "pi": ("ndarray", "write math.pi, after `import math`"),
    **dict.fromkeys(("double", "long"), _WIDE),
}

_CONVERT = "write `nl.copy(t, dtype=nl.{})`"
_PLACED = "remove it: the tensors of a kernel are on the device"
_FILL = "write `nisa.memset(t, value=0.0)`"
_UNKNOWN = "values are known only on the device"
_TRANSPOSED = "use nl.transpose or nisa.nc_transpose"
_SWAPPED = "use permute for free dimensions, nisa.nc_transpose across partitions"
_FLAT = "use flatten_dims(start, end) or reshape"
_NO_GRADIENTS = "remove it: a kernel has no gradients"
_WHOLE_COUNT = "remove it: nl.var divides by the number of elements"
_TRANSPOSE_FIRST = "remove it, and pass nl.transpose(y)"
# Attributes of tensors, where they are not functions of `nki.language`; {} is an axis.
METHODS = {
    **dict.fromkeys(("T", "t", "mT"), _TRANSPOSED),
    **dict.fromkeys(("transpose", "swapaxes"), _SWAPPED),
    "astype": "copy to a tensor of the other dtype with nisa.tensor_copy",
    "to": "write `nl.copy(t, dtype=nl.bfloat16)`, for another dtype",
    "type": "write `nl.copy(t, dtype=nl.bfloat16)`",
    "float": _CONVERT.format("float32"),
    "half": _CONVERT.format("float16"),
    "bfloat16": _CONVERT.format("bfloat16"),
    "int": _CONVERT.format("int32"),
    "clone": "write `nl.copy(t)`",
    "detach": _NO_GRADIENTS,
    "contiguous": "remove it, or write `nl.copy(t)`",
    **dict.fromkeys(("device", "cuda", "cpu"), _PLACED),
    "numel": "write `t.size`, which is a number",
    "dim": "write `t.ndim`, which is a number",
    **dict.fromkeys(("flatten", "ravel"), _FLAT),
    "squeeze": "use squeeze_dim(dim)",
    "unsqueeze": "use expand_dim(dim)",
    "std": "write nl.sqrt(nl.var(t, {}))",
    "argmax": "use nisa.max8, then nisa.nc_find_index8",
    **dict.fromkeys(("zero_", "fill_"), _FILL),
    **dict.fromkeys(("item", "numpy", "tolist"), _UNKNOWN),
}

# Parameters: what each is called in NKI, by preference.
PARAMETERS = {
    **dict.fromkeys(("dim", "dims", "axes"), ("axis",)),
    **dict.fromkeys(("keepdim", "keep_dims"), ("keepdims",)),
    "input": ("x", "data", "src"),
    "other": ("y", "data2"),
    "a": ("x", "data1"),
    "b": ("y", "data2"),
    **dict.fromkeys(("out", "output"), ("dst",)),
    "p": ("rate", "prob"),
    **dict.fromkeys(("trans_a", "transpose_a"), ("transpose_x",)),
    "size": ("shape",),
    "fill_value": ("value",),
    "condition": ("cond",),
}
# Parameters that NKI has no name for, and what is written instead.
WITHOUT = {
    **dict.fromkeys(("unbiased", "correction", "ddof"), _WHOLE_COUNT),
    "inplace": "remove it, and pass the tile itself as dst",
    "approximate": "remove it: nl.gelu_apprx_tanh is the approximation",
    "out": "remove it: the function returns a new tile",
    "where": "remove it, and choose the elements with nl.where first",
    "device": _PLACED,
    "requires_grad": _NO_GRADIENTS,
    **dict.fromkeys(("transpose_b", "trans_b"), _TRANSPOSE_FIRST),
}


def meant(name: str, names: Container[str]) -> str:
    """Return a `Guess` at the member of `names` that another library's name means, or ""."""
    meaning = MEANT.get(name, "")
    return Guess(name, meaning, False) if meaning in names else ""


def otherwise(name: str, names: Container[str]) -> str:
    """Return how to do what another library's function does, or ""."""
    member, text = OTHERWISE.get(name, ("", ""))
    return text if member in names else ""


def parameter(name: str, free: Collection[str]) -> str:
    """Return advice on an unknown parameter, another library's or a misspelt one, or "".

    `free` are the parameters that are not passed yet.
    """
    for meaning in PARAMETERS.get(name, ()):
        if meaning in free:
            return Guess(name, meaning, False)
    return WITHOUT.get(name) or did_you_mean(name, free)


MOST_SIZES = 8  # that an advice repeats
_Method = TypeVar("_Method", bound=Callable[..., Any])


def one_tuple(taken: str, meant: str, wrong: Any = int) -> Callable[[_Method], _Method]:
    """Make a method tell what it takes if it gets sizes or dimensions one by one, as PyTorch's."""

    def of(method: _Method) -> _Method:
        @wraps(method)
        def call(self: Any, *args: Any, **named: Any) -> Any:
            if args and (args[1:] or isinstance(args[0], wrong)):
                listed = args[0] if isinstance(args[0], tuple | list) else args
                parts = [str(int(p)) if isinstance(p, int) else "…" for p in listed[:MOST_SIZES]]
                inner = ", ".join([*parts, *["…"][: len(listed) - len(parts)]])
                text = f"{method.__name__} does not accept these arguments: it takes {taken}"
                comma = "," if len(listed) == 1 else ""
                advice = f"for another order or shape: .{meant}(({inner}{comma}))"
                raise KernelError("argument-kind", text, help=advice)
            return method(self, *args, **named)

        return cast(_Method, call)

    return of
