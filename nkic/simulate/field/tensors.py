"""A function of PyTorch over the field: torch hands over what is called with a `Tensor`.

Torch asks a class that has `__torch_function__` to carry out its functions, and names them. So
each has a row here, in terms of what `traced` knows. Torch is never imported: a function that uses
it has done so.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from math import inf, isfinite, sqrt
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.field.domain import Cause, cause_in_function
from nkic.simulate.field.elements import TOP
from nkic.simulate.field.traced import CALLS, UFUNCS, Stored, Traced, followed

Row = Callable[..., Any]


class Tensor:
    """A tensor of elements, in the words of torch: a shell of a `Traced`."""

    __array_ufunc__ = None  # the operators of NumPy's numbers leave it to those below

    def __init__(self, traced: Traced) -> None:
        self.traced = traced

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options = dict(kwargs or {})
        first = next(_met((*args, *options.values())))
        return first.call(getattr(function, "__name__", str(function)), args, options)

    def call(self, name: str, args: Iterable[Any], options: Mapping[str, Any]) -> Any:
        """Carry out a function of torch, or refuse it."""
        trace, args = self.traced, [*args]
        dunder = name.startswith("__")
        own = name.strip("_").removeprefix("special_").removeprefix("linalg_")
        if own == "setitem":
            _stored(trace, args[0], _plain(args[1]), args[2])
            return None
        in_place = name.endswith("_") and not dunder
        if dunder and own not in ROWS and own[:1] == "i":  # x += y
            own, in_place = own[1:], True
        if own not in ROWS:
            trace.refuse(f"torch.{own}")
        given = {k: v for k, v in options.items() if k not in _IGNORED and v is not None}
        if own not in _TYPED and (dtype := given.pop("dtype", None)) is not None:
            _noted(trace, dtype)
        if in_place or given.pop("inplace", False):
            into = args[0]
            _stored(trace, into, ..., self.call(own, args, given))
            return into
        plain, named = [_plain(x) for x in args], {k: _plain(v) for k, v in given.items()}
        try:
            inspect.signature(ROWS[own]).bind(trace, *plain, **named)
        except TypeError:
            trace.refuse(f"torch.{own} with these arguments")
        return _shown(ROWS[own](trace, *plain, **named))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a tensor of the field has no attribute {name!r}")
        if name in _ATTRIBUTES:
            return _shown(_ATTRIBUTES[name](self.traced))
        return lambda *args, **options: self.call(name, (self, *args), options)

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.traced[_index(self.traced, key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        _stored(self.traced, self, _plain(key), value)

    def __len__(self) -> int:
        return len(self.traced)

    def __iter__(self) -> Iterator[Tensor]:
        return map(Tensor, self.traced)

    def __bool__(self) -> bool:
        return bool(self.traced)

    def __float__(self) -> float:
        return float(self.traced)

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.traced.__array__()

    __hash__ = object.__hash__


def _operator(name: str) -> Callable[..., Any]:
    return lambda self, *others: self.call(name, (self, *others), {})


for _name in (
    *("add", "sub", "mul", "truediv", "pow", "matmul", "and", "or"),
    *("radd", "rsub", "rmul", "rtruediv", "rpow", "rmatmul", "rand", "ror"),
    *("iadd", "isub", "imul", "itruediv", "ipow"),
    *("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"),
):
    setattr(Tensor, f"__{_name}__", _operator(f"__{_name}__"))


def _met(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _met(value)


def _is_torch(value: Any) -> bool:
    return any(each.__module__.partition(".")[0] == "torch" for each in type(value).__mro__)


def _plain(value: Any) -> Any:
    """Return a value without torch: elements as `Traced`, other tensors as arrays."""
    if isinstance(value, Tensor):
        return value.traced
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value)) if type(value) in (list, tuple) else [*value]
    if _is_torch(value) and hasattr(value, "detach"):
        return array_of(value)
    return value


def array_of(value: Any) -> NDArray[Any]:
    """Return the numbers of a tensor; types that NumPy lacks as float32."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach().cpu()
    wide = value.dtype.is_floating_point and "float64" not in str(value.dtype)
    return np.asarray((value.float() if wide else value).numpy())


def _shown(value: Any) -> Any:
    if isinstance(value, Traced):
        return Tensor(value)
    if isinstance(value, Extremes):
        return Extremes(_shown(value.values), value.indices)
    return type(value)(map(_shown, value)) if type(value) in (list, tuple) else value


def _index(trace: Traced, key: Any) -> Any:
    if isinstance(key, Traced) or next(_met([key]), None) is not None:
        trace.refuse("an index that depends on elements")
    return _plain(key)


def _stored(trace: Traced, into: Any, key: Any, value: Any) -> None:
    if not isinstance(into, Tensor):
        raise Stored(
            f"a store into a tensor of numbers at {trace.places.line(trace.places.here('store'))}",
            {},
        )
    into.traced[key] = _plain(value)


def _noted(trace: Traced, dtype: Any) -> None:
    """Note a conversion to a type, which has no effect on elements."""
    name = str(dtype).removeprefix("torch.")
    if not getattr(dtype, "is_floating_point", "float" in name):
        trace.refuse(f"conversion to {name}")
    trace.places.cast(name)


# ---- torch's names ------------------------------------------------------------------------------


class Extremes(NamedTuple):
    values: Any
    indices: Any  # of no use: which element is greatest is not known


def _axes(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list | tuple) and dim else None if dim == [] else dim


def _listed(sizes: Any) -> tuple[int, ...]:
    """Return the numbers of `f(2, 3)` or `f((2, 3))`."""
    return tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else tuple(sizes)


def _reducing(op: str) -> Row:
    return lambda t, input, dim=None, keepdim=False: t.of(input).reduced(op, _axes(dim), keepdim)


def _extreme(op: str) -> Row:
    def found(t: Traced, input: Any, dim: Any = None, keepdim: bool = False, **names: Any) -> Any:
        other = names.pop("other", dim)
        if names:
            t.refuse(f"torch.{op} with these arguments")
        if other is None:
            return t.of(input).reduced(op)
        if not isinstance(other, int):
            return t.operate(op, t.of(input), t.of(other))
        return Extremes(t.of(input).reduced(op, dim, keepdim), object())

    return found


def _var(
    t: Traced,
    input: Any,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    ddof = int(unbiased) if correction is None else correction
    return CALLS["var"](t, input, _axes(dim), ddof=ddof, keepdims=keepdim)


def _softmax(t: Traced, input: Any, dim: Any = None) -> Any:
    if dim is None:
        t.refuse("torch.softmax without a dimension")
    power = t.of(input).function("exp")
    return power / power.reduced("add", dim, True)


def _logsumexp(t: Traced, input: Any, dim: Any, keepdim: bool = False) -> Any:
    x = t.of(input)
    most = x.reduced("maximum", _axes(dim), True)
    total = (x - most).function("exp").reduced("add", _axes(dim), True).function("log") + most
    return total if keepdim else total.reduced("add", _axes(dim))


def _normal(t: Traced, x: Traced, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * t.of(weight)
    return x if bias is None else x + t.of(bias)


def _layer_norm(
    t: Traced,
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-5,
) -> Any:
    axes, x = tuple(range(-len(normalized_shape), 0)), t.of(input)
    off = x - x.reduced("average", axes, True)
    spread = ((off * off).reduced("average", axes, True) + eps).function("rsqrt")
    return _normal(t, off * spread, weight, bias)


def _rms_norm(
    t: Traced, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    axes, x = tuple(range(-len(normalized_shape), 0)), t.of(input)
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    mean = (x * x).reduced("average", axes, True) + eps
    return _normal(t, x * mean.function("rsqrt"), weight, None)


def _attention(
    t: Traced,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    q, k, v = t.of(query), t.of(key), t.of(value)
    if dropout_p:
        t.refuse("torch.scaled_dot_product_attention with dropout")
    if enable_gqa:
        k, v = (_repeated(t, x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    turned = k._moved(lambda x: np.swapaxes(x, -1, -2))
    scores = UFUNCS["matmul"](t, q, turned) * (1 / sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = np.tril(np.ones(scores.shape[-2:], np.bool_))
    if isinstance(attn_mask, Traced):
        if (attn_mask.elements.residues[TOP] <= 1).all():
            t.refuse("torch.scaled_dot_product_attention with a mask that depends on elements")
    elif attn_mask is not None and attn_mask.dtype.kind == "b":
        attn_mask = np.where(attn_mask, 0.0, -inf)
    scores = scores if attn_mask is None else scores + t.of(attn_mask)
    return UFUNCS["matmul"](t, _softmax(t, scores, -1), v)


def _clamp(t: Traced, input: Any, min: Any = None, max: Any = None) -> Any:
    return CALLS["clip"](t, input, min, max)


def _masked(t: Traced, input: Any, mask: Any, value: Any) -> Any:
    return CALLS["where"](t, mask, value, t.of(input))


def _gelu(t: Traced, input: Any, approximate: str = "none") -> Any:
    name = {"none": "gelu", "tanh": "gelu_apprx_tanh"}[approximate]
    return t.of(input).function(name)


def _softplus(t: Traced, input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return (t.of(input) * beta).function("softplus") / beta


def _sum_of(sign: float) -> Row:
    return lambda t, input, other, *, alpha=1: t.of(input) + t.of(other) * (sign * alpha)


def _product_and(t: Traced, input: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return t.of(input) * beta + UFUNCS["matmul"](t, a, b) * alpha


def _linear(t: Traced, input: Any, weight: Any, bias: Any = None) -> Any:
    found = UFUNCS["matmul"](t, t.of(input), t.of(weight).T)
    return found if bias is None else found + t.of(bias)


def _norm(t: Traced, input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    if p not in (2, "fro"):
        t.refuse(f"torch.norm of order {p}")
    return t.of(input).function("square").reduced("add", _axes(dim), keepdim).function("sqrt")


def _normalized(t: Traced, input: Any, p: Any = 2, dim: Any = 1, eps: Any = 1e-12) -> Any:
    size = t.operate("maximum", _norm(t, input, p, dim, True), t.of(eps))
    return t.of(input) / size


def _dropout(t: Traced, input: Any, p: Any = 0.5, training: bool = True) -> Any:
    if training and p:
        t.refuse("torch.dropout in training")
    return t.of(input)


def _moving(move: Callable[..., Any]) -> Row:
    """Return the row of a function that moves elements to other places: of an array of these."""

    def moved(t: Traced, input: Any, *args: Any, **options: Any) -> Any:
        if any(isinstance(x, Traced) for x in (*args, *options.values())):
            t.refuse("an index that depends on elements")
        return t.of(input)._moved(lambda at: move(at, *args, **options))

    return moved


def _shaped_as(t: Traced, input: Any, other: Any) -> Any:
    shape = t.of(other).shape
    return t.of(input)._moved(lambda at: at.reshape(shape))


def _joining(join: Callable[..., Any]) -> Row:
    return lambda t, tensors, dim=0: t._carried(lambda rows: join(rows, dim), tensors)


def _repeated(t: Traced, input: Any, repeats: Any, dim: Any = None) -> Any:
    return t.of(input)._moved(lambda x: np.repeat(x, repeats, dim))


def _pieces(at: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    n, given = at.shape[dim], split_size_or_sections
    ends = range(given, n, given) if isinstance(given, int) else np.cumsum(given)[:-1]
    return tuple(np.split(at, ends, dim))


def _chunks(at: Any, chunks: int, dim: int = 0) -> Any:
    return _pieces(at, -(-at.shape[dim] // chunks), dim)


def _flat(at: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = start_dim % max(at.ndim, 1), end_dim % max(at.ndim, 1)
    return at.reshape(*at.shape[:first], -1, *at.shape[last + 1 :])


def _unflat(at: Any, dim: int, sizes: Any) -> Any:
    dim %= at.ndim
    return at.reshape(*at.shape[:dim], *sizes, *at.shape[dim + 1 :])


def _expanded(at: Any, *sizes: Any) -> Any:
    wanted = _listed(sizes)
    own = (1,) * (len(wanted) - at.ndim) + at.shape
    shape = [o if n == -1 else n for n, o in zip(wanted, own, strict=True)]
    return np.broadcast_to(at, shape)


def _tiled(at: Any, *sizes: Any) -> Any:
    return np.tile(at, _listed(sizes))


def _squeezed(at: Any, dim: Any = None) -> Any:
    dims = range(at.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    return np.squeeze(at, tuple(d for d in dims if at.shape[d] == 1))


def _padded(t: Traced, input: Any, pad: Any, mode: str = "constant", value: Any = 0.0) -> Any:
    if mode != "constant" or min(pad) < 0:
        t.refuse("torch.pad with these arguments")
    x = t.of(input)
    sides = [(0, 0)] * (x.ndim - len(pad) // 2) + [*zip(pad[::2], pad[1::2], strict=True)][::-1]
    shape = [n + a + b for n, (a, b) in zip(x.shape, sides, strict=True)]
    found = t.of(np.full(shape, value))
    found[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, sides, strict=True))] = x
    return found


def _converted(t: Traced, input: Any, *args: Any, **options: Any) -> Any:
    """Convert to a type that is among the arguments, beside devices and flags."""
    for one in (*args, *options.values()):
        if hasattr(one, "is_floating_point"):
            return _cast(t, input, one)
    return t.of(input)


def _cast(t: Traced, input: Any, dtype: Any) -> Any:
    name = str(dtype).removeprefix("torch.")
    if name == "bool":
        return t.operate("not_equal", t.of(input), t.of(0.0))
    _noted(t, dtype)
    return t.of(input) if name == "float32" else t.of(input)._moved(np.copy)


def _made(number: float) -> Row:
    return lambda t, input, *sizes, **options: t.of(
        np.full(_listed(sizes) if sizes else t.of(input).shape, number)
    )


def _named(name: str) -> Row:
    return lambda t, input: _cast(t, input, name)


def _size(t: Traced, input: Any, dim: Any = None) -> Any:
    return t.of(input).shape if dim is None else t.of(input).shape[dim]


def _unary(name: str) -> Row:
    return lambda t, input: t.of(input).function(name)


def _ufunc(name: str) -> Row:
    return lambda t, input: UFUNCS[name](t, t.of(input))


def _binary(op: str) -> Row:
    return lambda t, input, other: t.operate(op, t.of(input), t.of(other))


def _raised(t: Traced, input: Any, exponent: Any) -> Any:
    return t.operate("power", t.of(input), t.of(exponent))


def _reverse(row: Row) -> Row:
    return lambda t, input, other: row(t, other, input)


def _matmul(t: Traced, input: Any, other: Any) -> Any:
    return UFUNCS["matmul"](t, input, other)


_TYPED = frozenset({"to", "type", "dropout"})  # of which `dtype` is more than a note
_IGNORED = frozenset(
    {"_stacklevel", "device", "memory_format", "non_blocking", "requires_grad", "layout", "copy"}
)
_DIVIDED: Final = _binary("divide")
ROWS: Mapping[str, Row] = {
    **dict.fromkeys(("add", "radd"), _sum_of(1)),
    **dict.fromkeys(("sub", "subtract"), _sum_of(-1)),
    **dict.fromkeys(("mul", "multiply", "rmul"), _binary("multiply")),
    **dict.fromkeys(("div", "divide", "true_divide", "truediv"), _DIVIDED),
    **dict.fromkeys(("rdiv", "rtruediv"), _reverse(_DIVIDED)),
    **{"rsub": _reverse(_sum_of(-1)), "pow": _raised, "float_power": _raised},
    **{"rpow": _reverse(_raised), "neg": _ufunc("negative"), "negative": _ufunc("negative")},
    **{"addcmul": lambda t, input, a, b, *, value=1: t.of(input) + t.of(a) * t.of(b) * value},
    **dict.fromkeys(("maximum", "fmax"), _binary("maximum")),
    **dict.fromkeys(("minimum", "fmin"), _binary("minimum")),
    "eq": _binary("equal"),
    **dict.fromkeys(("ne", "not_equal"), _binary("not_equal")),
    **dict.fromkeys(("gt", "greater"), _binary("greater")),
    **dict.fromkeys(("ge", "greater_equal"), _binary("greater_equal")),
    **dict.fromkeys(("lt", "less"), _binary("less")),
    **dict.fromkeys(("le", "less_equal"), _binary("less_equal")),
    **dict.fromkeys(("logical_and", "bitwise_and", "and", "rand"), _binary("logical_and")),
    **dict.fromkeys(("logical_or", "bitwise_or", "or", "ror"), _binary("logical_or")),
    **dict.fromkeys(("logical_not", "bitwise_not", "invert"), _ufunc("logical_not")),
    **{name: _unary(name) for name in ("exp", "log", "sqrt", "rsqrt", "square", "reciprocal")},
    **{name: _unary(name) for name in ("tanh", "sigmoid", "silu", "relu", "mish", "erf", "sin")},
    **{name: _unary(name) for name in ("abs", "sign")},
    **{"absolute": _unary("abs"), "expit": _unary("sigmoid"), "sgn": _unary("sign")},
    **{"atan": _unary("arctan"), "arctan": _unary("arctan"), "pos": _unary("copy")},
    **{name: _ufunc(name) for name in ("exp2", "expm1", "log1p")},
    **{"gelu": _gelu, "softplus": _softplus, "relu6": lambda t, input: _clamp(t, input, 0, 6)},
    "hardtanh": lambda t, input, min_val=-1.0, max_val=1.0: _clamp(t, input, min_val, max_val),
    "leaky_relu": lambda t, input, negative_slope=0.01: CALLS["where"](
        t, t.of(input) > 0, t.of(input), t.of(input) * negative_slope
    ),
    **{"softmax": _softmax, "logsumexp": _logsumexp},
    "log_softmax": lambda t, input, dim: t.of(input) - _logsumexp(t, input, dim, True),
    **{"layer_norm": _layer_norm, "rms_norm": _rms_norm, "normalize": _normalized},
    **{"scaled_dot_product_attention": _attention, "dropout": _dropout},
    **{"sum": _reducing("add"), "mean": _reducing("average"), "prod": _reducing("multiply")},
    **{"amax": _reducing("maximum"), "amin": _reducing("minimum")},
    **{"max": _extreme("maximum"), "min": _extreme("minimum"), "var": _var},
    "std": lambda t, *args, **options: _var(t, *args, **options).function("sqrt"),
    "var_mean": lambda t, input, dim=None, unbiased=True, keepdim=False, *, correction=None: (
        _var(t, input, dim, unbiased, keepdim, correction=correction),
        t.of(input).reduced("average", _axes(dim), keepdim),
    ),
    **{"norm": _norm, "cumsum": lambda t, input, dim: CALLS["cumsum"](t, input, dim)},
    "vector_norm": lambda t, x, ord=2, dim=None, keepdim=False: _norm(t, x, ord, dim, keepdim),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), _matmul),
    **{"rmatmul": _reverse(_matmul), "addmm": _product_and, "baddbmm": _product_and},
    **{"linear": _linear, "einsum": CALLS["einsum"]},
    "outer": lambda t, input, vec2: CALLS["outer"](t, input, vec2),
    **{"clamp": _clamp, "clip": _clamp, "masked_fill": _masked},
    "clamp_min": lambda t, input, min: _clamp(t, input, min),
    "clamp_max": lambda t, input, max: _clamp(t, input, None, max),
    "where": lambda t, condition, input, other: CALLS["where"](t, condition, input, other),
    "tril": lambda t, input, diagonal=0: CALLS["tril"](t, input, diagonal),
    "triu": lambda t, input, diagonal=0: CALLS["triu"](t, input, diagonal),
    **{"zeros_like": _made(0.0), "ones_like": _made(1.0), "empty_like": _made(0.0)},
    **{"new_zeros": _made(0.0), "new_ones": _made(1.0), "new_empty": _made(0.0)},
    "full_like": lambda t, input, fill_value: t.of(np.full(t.of(input).shape, fill_value)),
    "new_full": lambda t, input, size, fill_value: t.of(np.full(size, fill_value)),
    "fill": lambda t, input, value: t.of(value),
    "zero": lambda t, input: t.of(0.0),
    "copy": lambda t, input, src: t.of(src),
    # what only moves elements
    **dict.fromkeys(
        ("transpose", "swapaxes", "swapdims"),
        _moving(lambda at, dim0, dim1: np.swapaxes(at, dim0, dim1)),
    ),
    "permute": _moving(lambda at, *dims: at.transpose(_listed(dims))),
    "t": _moving(lambda at: at.T),
    **dict.fromkeys(("reshape", "view"), _moving(lambda at, *shape: at.reshape(_listed(shape)))),
    **dict.fromkeys(("view_as", "reshape_as"), _shaped_as),
    "unsqueeze": _moving(lambda at, dim: np.expand_dims(at, dim)),
    **{"squeeze": _moving(_squeezed), "flatten": _moving(_flat), "unflatten": _moving(_unflat)},
    "ravel": _moving(lambda at: at.reshape(-1)),
    **{"expand": _moving(_expanded), "broadcast_to": _moving(_expanded)},
    "expand_as": lambda t, input, other: t.of(input)._moved(lambda x: _expanded(x, *other.shape)),
    **{"repeat": _moving(_tiled), "tile": _moving(_tiled), "repeat_interleave": _repeated},
    **dict.fromkeys(("cat", "concat", "concatenate"), _joining(np.concatenate)),
    **{"stack": _joining(np.stack), "split": _moving(_pieces), "chunk": _moving(_chunks)},
    "unbind": _moving(lambda at, dim=0: tuple(np.moveaxis(at, dim, 0))),
    "narrow": _moving(
        lambda at, dim, start, length: np.moveaxis(
            np.moveaxis(at, dim, 0)[start : start + length], 0, dim
        )
    ),
    "select": _moving(lambda at, dim, index: np.moveaxis(at, dim, 0)[index]),
    "index_select": _moving(lambda at, dim, index: np.take(at, index, dim)),
    "embedding": lambda t, ids, weight, norm_type=2.0, scale_grad_by_freq=False, sparse=False: t.of(
        weight
    )[_index(t, ids)],
    "getitem": lambda t, input, key: t.of(input)[_index(t, key)],
    "flip": _moving(lambda at, *dims: np.flip(at, _listed(dims))),
    "roll": _moving(lambda at, shifts, dims=None: np.roll(at, shifts, dims)),
    **dict.fromkeys(
        ("movedim", "moveaxis"),
        _moving(lambda at, source, destination: np.moveaxis(at, source, destination)),
    ),
    "diagonal": _moving(lambda at, offset=0, dim1=0, dim2=1: np.diagonal(at, offset, dim1, dim2)),
    "pad": _padded,
    "clone": _moving(lambda at: np.copy(at)),
    **dict.fromkeys(("contiguous", "detach", "cpu"), _moving(lambda at: at)),
    # types and shapes
    **{"to": _converted, "type": _converted, "float": _named("float32"), "half": _named("float16")},
    **{"double": _named("float64"), "bfloat16": _named("bfloat16"), "bool": _named("bool")},
    "type_as": lambda t, input, other: t.of(input),
    **{"size": _size, "dim": lambda t, input: t.of(input).ndim},
    **dict.fromkeys(("numel", "nelement"), lambda t, input: t.of(input).size),
    "is_floating_point": lambda t, input: True,
    "numpy": lambda t, input: t.of(input),
}
_ATTRIBUTES: Mapping[str, Callable[[Traced], Any]] = {
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "T": lambda x: x.T,
    "mT": lambda x: x._moved(lambda at: np.swapaxes(at, -1, -2)),
    "data": lambda x: x,
    "dtype": lambda x: sys.modules["torch"].float32,
    "device": lambda x: sys.modules["torch"].device("cpu"),
    **dict.fromkeys(("requires_grad", "is_cuda"), lambda x: False),
}


# ---- a function as a whole ----------------------------------------------------------------------


class Arrays:
    """What a function of NumPy takes and gives."""

    name = "numpy"

    def given(self, array: NDArray[Any]) -> Any:
        return array

    def traced(self, array: Traced) -> Any:
        return array

    def elements(self, found: Any, first: Traced) -> Traced:
        return first.of(found)

    def called(self, call: Callable[[], Any]) -> Any:
        return call()

    def followed(self, call: Callable[[], Any], first: Traced) -> Any:
        return followed(call, first)

    def cause(self, call: Callable[[], Any]) -> Cause:
        return cause_in_function(call)


class Tensors(Arrays):
    """What a function of torch takes and gives."""

    name = "torch"

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch

    def given(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.array(array))

    def traced(self, array: Traced) -> Any:
        return Tensor(array)

    def elements(self, found: Any, first: Traced) -> Traced:
        return first.of(_plain(found))

    def called(self, call: Callable[[], Any]) -> Any:
        with self._torch.no_grad():
            return call()

    def followed(self, call: Callable[[], Any], first: Traced) -> Any:
        """Call a function; if it stores elements into tensors that it makes, make them elements."""
        try:
            return followed(call, first)
        except Stored:
            with self._every(partial(self._made, first)):
                return followed(call, first)

    def cause(self, call: Callable[[], Any]) -> Cause:
        """Return which line of the function makes infinity or NaN of numbers."""

        def checked(function: Any, args: Any, options: Any) -> Any:
            found = function(*args, **options)
            if not _is_finite([found]) and _is_finite([*args, *options.values()]):
                what = "NaN" if np.isnan(array_of(found)).any() else "infinity"
                raise FloatingPointError(f"torch.{function.__name__} makes {what} of numbers")
            return found

        def watched() -> None:
            with self._every(checked):
                self.called(call)

        return cause_in_function(watched)

    def _made(self, first: Traced, function: Any, args: Any, options: Any) -> Any:
        found = function(*args, **options)
        is_new = function.__name__ in _FACTORIES and found.dtype.is_floating_point
        return Tensor(first.of(array_of(found))) if is_new else found

    def _every(self, carry_out: Callable[..., Any]) -> AbstractContextManager[Any]:
        """Return a context in which every call of torch is carried out by a function."""

        def dispatch(
            mode: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return carry_out(function, args, kwargs or {})

        base = self._torch.overrides.TorchFunctionMode
        every: Any = type("Every", (base,), {"__torch_function__": dispatch})
        found: AbstractContextManager[Any] = every()
        return found


_FACTORIES = frozenset({"zeros", "ones", "empty", "full", "eye", "zeros_like", "empty_like"})


def _is_finite(values: Iterable[Any]) -> bool:
    return all(
        _is_finite(value)
        if isinstance(value, list | tuple)
        else isfinite(value)
        if isinstance(value, float)
        else not (_is_torch(value) and hasattr(value, "detach"))
        or not value.dtype.is_floating_point
        or bool(np.isfinite(array_of(value)).all())
        for value in values
    )


def libraries(function: Any) -> list[Arrays]:
    """Return what a function may take, what is likelier first.

    That is tensors if torch is imported, and the function is a module of it, or its code or that of
    functions which it calls mentions it, or, if it mentions neither, torch is among the names of
    its file.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return [Arrays()]
    met = set(_mentioned(function, set()))
    own = getattr(function, "__globals__", {}).values()
    is_torch = "torch" in met or ("numpy" not in met and any(x is torch for x in own))
    both = [Tensors(torch), Arrays()]
    return both if is_torch else both[::-1]


def _mentioned(value: Any, seen: set[int]) -> Iterator[str]:
    """Return the names of libraries that a function's code, and what it calls, mentions."""
    if id(value) in seen:
        return
    seen.add(id(value))
    value = value.func if isinstance(value, partial) else value
    value = value.__func__ if isinstance(value, MethodType) else value
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    root = str(name).partition(".")[0]
    if root in ("torch", "numpy"):
        yield root
    elif isinstance(value, FunctionType):
        names = {*_names(value.__code__)}
        yield from (n for n in names if n in ("torch", "numpy"))  # imported in the function
        for name in names & value.__globals__.keys():
            inner = value.__globals__[name]
            yield from _mentioned(inner, seen)
            if isinstance(inner, ModuleType) and not inner.__name__.startswith(("torch", "numpy")):
                for each in names & vars(inner).keys():
                    yield from _mentioned(vars(inner)[each], seen)
        for cell in value.__closure__ or ():
            yield from _mentioned(cell.cell_contents, seen)
    elif _is_torch(value):
        yield "torch"
    elif callable(value):
        yield from _mentioned(type(value).__call__, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
