"""Functions of NumPy and of PyTorch over the field give the elements, or the words of a refusal,
that tests/data/equal says: each by name with arguments of all kinds, others as they are written
here. PyTorch is not needed: its functions are named. NKIC_BLESS=1 writes the pages again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import pytest

from nkic.simulate.field.elements import choose, constant
from nkic.simulate.field.functions import Order, ordered
from nkic.simulate.field.tensors import ROWS, Extremes, Tensor
from nkic.simulate.field.traced import CALLS, MOVES, UFUNCS, Places, Traced, Untraceable, followed
from tests.equal.recorded import PAGES, page, sum_of_elements
from tests.harness.bless import compare_file, short_sum

LINE = re.compile(r" at test_reference_pages\.py:\d+")
SHAPES = ((4, 3, 6), (4, 3, 6), (3, 6), (6,), (6, 3), ())


class Kind:
    """A type, as PyTorch has it."""

    def __init__(self, name: str) -> None:
        self.name, self.is_floating_point = name, "float" in name

    def __str__(self) -> str:
        return f"torch.{self.name}"


class Torch:
    """The functions of PyTorch by name: `torch.sum(x)`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            tensors = [a for a in (*args, *options.values()) if isinstance(a, Tensor)]
            lists = [a for a in args if isinstance(a, list | tuple)]
            inner = [each for a in lists for each in a if isinstance(each, Tensor)]
            return (tensors + inner)[0].call(name, args, options)

        return called


def arrays() -> list[Traced]:
    """Return elements, some of them constants, of `SHAPES`."""
    state, places = np.random.default_rng(4), Places("torch")
    found = [Traced.variable(state, shape, places) for shape in SHAPES]
    for n in (1, 3):
        own = found[n].shared[0]
        numbers = constant(np.arange(own.value.size) % 5 - 1.0)
        where = np.arange(own.value.size) % 3 == 1
        found[n].shared[0] = choose(where, numbers, own)
    return found


def said(result: Any) -> str:
    """Return the text of a result."""
    if isinstance(result, Extremes):
        return f"values {said(result.values)}"
    if isinstance(result, list | tuple):
        return f"({', '.join(map(said, result))})"
    traced = result.traced if isinstance(result, Tensor) else result
    if not isinstance(traced, Traced):
        return f"{type(result).__name__} {result}"
    return f"{list(traced.shape)} {sum_of_elements(traced.elements)}".replace(", ", ",")


def outcome(call: Callable[..., Any], *args: Any) -> str:
    try:
        with np.errstate(all="ignore"):
            return said(call(*args))
    except Untraceable as error:
        return LINE.sub("", str(error))
    except Exception as error:  # of NumPy, whose words are others in other versions
        return type(error).__name__


# What each function is called with: x, y of three dimensions, m and n of two, v of one, s of none.
GIVEN: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("x", lambda f, x, y, m, v, n, s: f(x)),
    ("v", lambda f, x, y, m, v, n, s: f(v)),
    ("s", lambda f, x, y, m, v, n, s: f(s)),
    ("x, y", lambda f, x, y, m, v, n, s: f(x, y)),
    ("x, m", lambda f, x, y, m, v, n, s: f(x, m)),
    ("v, x", lambda f, x, y, m, v, n, s: f(v, x)),
    ("x, n", lambda f, x, y, m, v, n, s: f(x, n)),
    ("m, n", lambda f, x, y, m, v, n, s: f(m, n)),
    ("m, v", lambda f, x, y, m, v, n, s: f(m, v)),
    ("v, v", lambda f, x, y, m, v, n, s: f(v, v)),
    ("x, s", lambda f, x, y, m, v, n, s: f(x, s)),
    ("x, 2", lambda f, x, y, m, v, n, s: f(x, 2)),
    ("2.5, x", lambda f, x, y, m, v, n, s: f(2.5, x)),
    ("x, 1", lambda f, x, y, m, v, n, s: f(x, 1)),
    ("x, -1", lambda f, x, y, m, v, n, s: f(x, -1)),
    ("x, (0, 2)", lambda f, x, y, m, v, n, s: f(x, (0, 2))),
    ("x, (2, 0, 1)", lambda f, x, y, m, v, n, s: f(x, (2, 0, 1))),
    ("x, 2, 0, 1", lambda f, x, y, m, v, n, s: f(x, 2, 0, 1)),
    ("x, 0, 1", lambda f, x, y, m, v, n, s: f(x, 0, 1)),
    ("x, 1, 2", lambda f, x, y, m, v, n, s: f(x, 1, 2)),
    ("x, 1, True", lambda f, x, y, m, v, n, s: f(x, 1, True)),
    ("x, (36, 2)", lambda f, x, y, m, v, n, s: f(x, (36, 2))),
    ("x, y, y", lambda f, x, y, m, v, n, s: f(x, y, y)),
    ("x, 0.5, 2", lambda f, x, y, m, v, n, s: f(x, 0.5, 2)),
    ("[x, y]", lambda f, x, y, m, v, n, s: f([x, y])),
    ("(x, y), 1", lambda f, x, y, m, v, n, s: f((x, y), 1)),
    ("x, array", lambda f, x, y, m, v, n, s: f(x, np.arange(6) % 2 == 0)),
    ("x, rows", lambda f, x, y, m, v, n, s: f(x, np.array([2, 0]), 1)),
    ("x, axis", lambda f, x, y, m, v, n, s: f(x, axis=1)),
    ("x, dim", lambda f, x, y, m, v, n, s: f(x, dim=-2)),
    ("x, dims", lambda f, x, y, m, v, n, s: f(x, dim=[0, 2], keepdim=True)),
    ("x, keepdims", lambda f, x, y, m, v, n, s: f(x, axis=(0, -1), keepdims=True)),
    ("x, dtype", lambda f, x, y, m, v, n, s: f(x, dtype=np.dtype(np.float16))),
    ("x, whole", lambda f, x, y, m, v, n, s: f(x, dtype=np.dtype(np.int32))),
    ("x, out", lambda f, x, y, m, v, n, s: f(x, out=y)),
    ("x, unknown", lambda f, x, y, m, v, n, s: f(x, unknown=1)),
)


def by_name(function: Callable[..., Any], wrap: Callable[[Traced], Any]) -> Iterator[str]:
    for title, call in GIVEN:
        given = [wrap(each) for each in arrays()]
        yield f"  {title}: {outcome(call, function, *given)}"


def entries(names: Iterator[tuple[str, Callable[..., Any]]], wrap: Callable[[Traced], Any]) -> str:
    """Return what the page says of functions: the most frequent outcome once, then the others."""
    lines = list[str]()
    for name, function in names:
        found = [*by_name(function, wrap)]
        lines += [f"> {name}", *(line for line in found if not line.endswith(_REFUSED))]
        lines.append(f"  refused: {short_sum(' '.join(found))}")
    return page(lines)


_REFUSED = ("with these arguments", "TypeError", "IndexError", "AxisError", "ValueError")
SPACES = (np, np.lib.stride_tricks, np.linalg)


def of_numpy(names: Collection[str]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in sorted(names):
        for space in SPACES:
            if hasattr(space, name):
                yield name, getattr(space, name)
                break


@pytest.fixture(autouse=True)
def in_an_order() -> Iterator[None]:
    with ordered(Order()):
        yield


@pytest.mark.parametrize("title", ["ufuncs", "calls", "moves"])
def test_functions_of_numpy_by_name(title: str) -> None:
    table = {"ufuncs": UFUNCS, "calls": CALLS, "moves": MOVES}[title]
    compare_file(PAGES / f"numpy_{title}.txt", entries(of_numpy(table), lambda x: x))


@pytest.mark.parametrize("part", range(6))
def test_functions_of_torch_by_name(part: int) -> None:
    torch = Torch()
    names = ((name, getattr(torch, name)) for name in sorted(ROWS)[part::6])
    compare_file(PAGES / f"torch_{part}.txt", entries(names, Tensor))


WORDS = {  # functions of torch with their options
    "softmax": ("x, 0", "x, dim=-1, dtype=bfloat16", "x, dim=1, _stacklevel=3"),
    "log_softmax": ("x, 1", "m, dim=0"),
    "logsumexp": ("x, 1", "x, (0, 2)", "x, (1,), True", "x, -1, keepdim=True"),
    "layer_norm": ("x, (6,)", "x, (3, 6)", "x, (6,), v", "x, (6,), v, v", "x, (6,), None, v, 0.5",
                   "x, [3, 6], m, bias=m, eps=1e-3"),
    "rms_norm": ("x, (6,)", "x, (3, 6), m", "x, (6,), v, 0.25", "x, (6,), eps=1e-6"),
    "normalize": ("x", "x, 2, 0", "x, dim=-1, eps=0.5", "x, 3"),
    "norm": ("x", "x, 2", "x, 'fro', 1", "x, 1", "x, dim=(0, 1), keepdim=True", "x, p=2, dim=2"),
    "linalg_vector_norm": ("x", "x, 2, 1", "x, dim=0, keepdim=True", "x, 1"),
    "linalg_norm": ("x", "x, dim=1"),
    "scaled_dot_product_attention": (
        "x, y, x", "x, y, x, is_causal=True", "x, y, x, scale=0.5", "x, y, x, dropout_p=0.5",
        "x, y, x, mask", "x, y, x, attn_mask=numbers", "x, y, x, attn_mask=y[..., :3]",
        "x, y[:2], y[:2], enable_gqa=True", "x, y, m", "x, y, x, attn_mask=torch.gt(n[:3], 0.0)",
        "m, m, m, is_causal=True, scale=1.0", "x, y, x, None, 0.0, True",
    ),
    "var": ("x", "x, 1", "x, 1, False", "x, False", "x, (0, 1), True, True", "x, 1, correction=0",
            "x, -1, correction=2, keepdim=True", "x, dim=[0, 2]", "x, []"),
    "std": ("x", "x, 1, False", "x, dim=2, correction=0"),
    "var_mean": ("x", "x, 1", "x, 1, False, True", "x, dim=0, correction=0, keepdim=True"),
    "sum": ("x, []", "x, dim=None", "x, [1], True", "x, 1, dtype=float64", "x, 1, dtype=int32"),
    "mean": ("x, (0, 1)", "x, dim=-1, keepdim=True"),
    "max": ("x", "x, 1", "x, y", "x, dim=1, keepdim=True", "x, other=y", "x, 0, True", "x, 2.5",
            "x, 1, False, unknown=2", "x, other=2.0"),
    "min": ("x", "x, 1", "x, y", "x, dim=-1"),
    "clamp": ("x, 0.5, 2", "x, max=1", "x, min=y", "x, y, m", "x"),
    "clamp_min": ("x, 0.5", "x, min=0.5"), "clamp_max": ("x, 0.5", "x, max=y"),
    "hardtanh": ("x", "x, 0, 4", "x, min_val=-2.0"), "relu6": ("x",),
    "leaky_relu": ("x", "x, 0.5", "x, negative_slope=-1.0, inplace=True"),
    "gelu": ("x", "x, approximate='tanh'", "x, 'none'"),
    "softplus": ("x", "x, 2.0", "x, beta=0.5", "x, 3.0, 7.0"),
    "dropout": ("x, 0.5, False", "x, 0.5", "x, p=0.0", "x", "x, training=False"),
    "add": ("x, y, alpha=3", "x, 2.0", "x, m, alpha=-1"), "sub": ("x, y, alpha=3", "x, 2"),
    "rsub": ("x, 1", "x, y, alpha=2"), "subtract": ("x, m",),
    "addcmul": ("x, y, m", "x, y, m, value=3"),
    "addmm": ("n, n, m[:, :3]", "n, n, m[:, :3], beta=2", "n, n, m[:, :3], alpha=-0.5, beta=0"),
    "baddbmm": ("x, x[..., :3], y",), "linear": ("x, m", "x, m, v[:3]", "v, m", "x, m, bias=None"),
    "einsum": ("'bij,bkj->ikb', x, y", "'ij,jk', m, n", "'bij->jb', x", "'bij,ij,j->b', x, m, v",
               "'bij,bij,bij->b', x, y, x", "'ii->i', m", "'...i->...', x", "'i,j->ij', v, v",
               "'bij,kl->', x, n", "'bij', x", "'i,i', v, v"),
    "cat": ("[x, y], 2", "(x, y, x), dim=-1", "[x, ones], 1"), "stack": ("[x, y], 1", "(x, y), -1"),
    "split": ("x, 2, -1", "x, [1, 2], 1", "x, 4, dim=2", "x, 5", "x, (4, 2), dim=2"),
    "chunk": ("x, 2", "x, 4, 2", "x, 2, dim=1"), "unbind": ("x", "x, 1", "x, dim=-1"),
    "flatten": ("x", "x, 1", "x, 0, 1", "x, start_dim=-2", "s"),
    "unflatten": ("x, 2, (2, -1)", "x, -1, (3, 2)", "x, 0, (2, 2)"),
    "expand": ("m[:, :1], -1, 6", "v, 4, 3, 6", "m, (2, -1, -1)", "s, 2, 2"),
    "expand_as": ("m, x", "v, x"), "broadcast_to": ("m, (4, 3, 6)",),
    "repeat": ("m, 2, 1", "m, (2, 2, 3)"), "tile": ("x, (2, 1)",),
    "repeat_interleave": ("x, 2", "x, 3, 1", "x, 2, dim=-1"),
    "squeeze": ("x[:1]", "x[:1], 0", "x, 0", "x[:1, :1], (0, 1)", "x[:1, :1], dim=(0, 2)"),
    "unsqueeze": ("x, 0", "x, -1", "x, dim=2"), "permute": ("x, 2, 0, 1", "x, (1, 0, 2)"),
    "transpose": ("x, 0, 2", "x, -1, -2", "x, dim0=0, dim1=1"),
    "movedim": ("x, 0, 2", "x, (0, 1), (1, 2)"),
    "pad": ("x, (1, 2)", "x, (1, 2, 0, 1)", "x, (0, 1, 2, 0, 1, 1)", "x, (3, 0), value=2.0",
            "x, (1, -1)", "x, (1, 1), 'reflect'", "x, (1, 1), mode='constant', value=1.0"),
    "narrow": ("x, 2, 1, 3", "x, 0, 0, 2", "x, dim=1, start=1, length=1"),
    "select": ("x, 1, 2", "x, -1, 0"), "index_select": ("x, 2, rows", "x, 0, rows", "x, 0, v"),
    "embedding": ("rows, m", "mask, m", "x, m"), "getitem": ("x, (slice(1, 3), 0)", "x, x"),
    "flip": ("x, 0, 2", "x, [1]", "x, (0,)"), "roll": ("x, 1", "x, 2, 1", "x, (1, 2), (0, 2)"),
    "diagonal": ("x", "x, 1", "x, 0, 1, 2", "x, -1, dim1=0, dim2=2"),
    "tril": ("x", "x, 1", "m, diagonal=-1"), "triu": ("x", "x, 1", "m, diagonal=-1"),
    "where": ("torch.gt(x, y), x, 0.0", "mask, x, y", "x, x, y"),
    "masked_fill": ("x, mask, 2.0", "x, torch.lt(x, 0.0), -1.0", "x, mask, value=s"),
    "full_like": ("x, 3", "m, fill_value=-1.5"),
    "new_full": ("x, (2, 3), 1.5", "x, (6,), fill_value=2"),
    "zeros_like": ("x", "x, dtype=bfloat16"), "ones_like": ("m",), "empty_like": ("v",),
    "new_zeros": ("x, 2, 3", "x, (4,)"), "new_ones": ("x, 2, 3", "x, (2, 2), dtype=bfloat16"),
    "to": ("x, bfloat16", "x, float32", "x, int32", "x, boolean", "x, 'cpu'", "x, dtype=float64",
           "x, 'cpu', bfloat16, True", "x, y", "x, non_blocking=True"),
    "type": ("x, bfloat16", "x"), "float": ("x",), "half": ("x",), "double": ("x",),
    "bfloat16": ("x",),
    "bool": ("x",), "type_as": ("x, y",), "size": ("x", "x, 1", "x, dim=-1"), "dim": ("x",),
    "numel": ("x",), "pow": ("x, 2", "x, 0.5", "x, y", "2.0, v", "x, -1.5"), "rpow": ("v, 2.0",),
    "exp2": ("x",), "expm1": ("x",), "log1p": ("x",), "cumsum": ("x, 1", "x, dim=-1", "v, 0"),
    "div": ("x, y", "x, 3.0", "1, x"), "rdiv": ("x, 2.0",), "outer": ("v, v",),
    "matmul": ("x, m.T", "m, v", "v, n", "x, n", "v, v", "x, y.mT", "x, y"), "mv": ("m, v",),
    "mul_": ("x, 2.0",), "add_": ("x, y", "x[0], 1.0"), "fill_": ("x, 3.0",), "zero_": ("x[1]",),
    "copy_": ("x, m", "ones, x"), "relu": ("x", "x, inplace=True"), "__iadd__": ("x, y",),
    "__setitem__": ("x, 0, 1.0", "x, (slice(None), 1), m[:1]", "ones, 0, x[0]", "x, x, 1.0"),
    "special_expit": ("x",), "special_log_softmax": ("x, 0",), "sort": ("x",), "floor": ("x",),
    "__and__": ("torch.gt(x, 0), torch.gt(y, 0)",), "__invert__": ("torch.gt(x, 0)",),
}  # fmt: skip
METHODS = (
    *("x.shape", "x.ndim", "x.T", "m.T", "x.mT", "x.data", "x.requires_grad", "x.is_cuda"),
    *("x[0]", "x[1:, ..., None]", "x[rows]", "x[mask[:4]]", "x[x]", "x[[1, 0], 2]", "len(x)"),
    *("x + 1", "1 + x", "x - y", "1 - x", "x * 2", "2 * x", "x / y", "1 / x", "x ** 2", "2.0 ** v"),
    *("x @ n", "ones[0] @ n", "x == y", "x != y", "x < y", "x <= y", "x > y", "x >= y", "-x", "+x"),
    *(
        "abs(x)",
        "~(x > y)",
        "(x > y) & (y > 0)",
        "(x > y) | (y > 0)",
        "[*x]",
        "bool(x)",
        "float(s)",
    ),
    *("x.sum(1)", "x.max(1)[0]", "x.max(1).indices is None", "x.view(-1)", "x.foo()", "x.__foo__"),
    *("numpy.float32(2) * x", "numpy.asarray(x)", "x.numpy()", "x.t()", "m.t()"),
)


def names() -> dict[str, Any]:
    x, y, m, v, n, s = map(Tensor, arrays())
    own = {name: Kind(name) for name in ("bfloat16", "float32", "float64", "int32")}
    numbers = {"rows": np.array([2, 0, 1]), "mask": np.arange(6) % 2 == 0, "numpy": np}
    numbers |= {"ones": np.ones((4, 3, 6), np.float32), "numbers": np.arange(9.0).reshape(3, 3)}
    tensors = {"x": x, "y": y, "m": m, "v": v, "n": n, "s": s}
    return {**own, **numbers, **tensors, "boolean": Kind("bool"), "torch": Torch()}


def test_functions_of_torch_with_options() -> None:
    lines = list[str]()
    for text in (*(f"torch.{f}({given})" for f in WORDS for given in WORDS[f]), *METHODS):
        known = names()
        x = known["x"]
        found = outcome(eval, text, known)
        lines.append(f"{text}: {found}")
        kept, own = said(x), sorted(dtype for dtype, _ in x.traced.places.casts)
        lines += [f"  x is {kept}"] * (kept != said(names()["x"])) + [f"  to {own}"] * bool(own)
    compare_file(PAGES / "torch_words.txt", page(lines))


NUMPY = (
    *("x.sum()", "x.sum((0, 2))", "x.sum(axis=-1, keepdims=True)", "x.mean(1)", "x.max((1, 2))"),
    *(
        "x.prod(2)",
        "x.min(0)",
        "x.var()",
        "x.var(1, ddof=1)",
        "x.std(-1)",
        "numpy.std(x, 0, ddof=2)",
    ),
    *(
        "numpy.var(x, (0, 1), keepdims=True)",
        "numpy.var(x, 1, numpy.float32)",
        "numpy.var(x, out=x)",
    ),
    *("numpy.linalg.norm(x)", "numpy.linalg.norm(x, axis=1)", "numpy.linalg.norm(x, 2, 1)"),
    *(
        "numpy.linalg.norm(x, 1, 1)",
        "numpy.linalg.norm(x, 2)",
        "numpy.linalg.norm(v, keepdims=True)",
    ),
    *("numpy.cumsum(x)", "numpy.cumsum(x, 2)", "numpy.cumsum(x, -1)", "x.cumsum(0)"),
    *("numpy.clip(x, 0.5, None)", "numpy.clip(x, None, 2)", "numpy.clip(x, min=1, max=y)"),
    *(
        "x.clip(0, 1)",
        "numpy.where(x > 0, x, y)",
        "numpy.where(mask, x, 0)",
        "numpy.where(x, 1.0, y)",
    ),
    *("numpy.einsum('bij,bkj->ikb', x, y)", "numpy.einsum('ij,jk', m, n)", "numpy.einsum('ii', m)"),
    *(
        "numpy.einsum('bij,ij,j->b', x, m, v)",
        "numpy.einsum('i,j', v, v)",
        "numpy.einsum('ij->ji', m)",
    ),
    *("numpy.einsum('bij->', x)", "numpy.einsum('i,i', v, v)", "numpy.einsum('...i->...', x)"),
    *("numpy.einsum('bij,kl->bk', x, n)", "numpy.einsum('b i j, i j -> b', x, m)"),
    *(
        "numpy.dot(m, n)",
        "numpy.dot(v, v)",
        "numpy.dot(m, v)",
        "numpy.dot(s, x)",
        "numpy.dot(x, m)",
    ),
    *("x @ n", "v @ n", "m @ v", "v @ v", "x @ y.transpose(0, 2, 1)", "n @ x", "ones @ n", "x @ y"),
    *(
        "numpy.outer(v, m)",
        "numpy.tril(x)",
        "numpy.tril(m, 1)",
        "numpy.triu(x, -1)",
        "numpy.triu(m)",
    ),
    *("numpy.zeros_like(x)", "numpy.ones_like(m, shape=(2, 2))", "numpy.full_like(x, 3)"),
    *("numpy.zeros_like(x, dtype=numpy.int32)", "numpy.empty_like(v, numpy.float16)"),
    *("x.T", "x.transpose(1, 0, 2)", "x.transpose((2, 1, 0))", "x.transpose()", "x.reshape(-1, 2)"),
    *(
        "x.reshape((6, 12))",
        "x.flatten()",
        "x.ravel()",
        "x[0]",
        "x[..., 1]",
        "x[[2, 0]]",
        "x[:, None]",
    ),
    *("x.astype(numpy.float16)", "x.astype(numpy.float64, copy=False)", "x.astype(numpy.int8)"),
    *(
        "numpy.add.reduce(x)",
        "numpy.maximum.reduce(x, axis=1)",
        "numpy.add.reduce(x, keepdims=True)",
    ),
    *(
        "numpy.multiply.reduce(x, axis=-1)",
        "numpy.minimum.reduce(x, None)",
        "numpy.add.reduceat(v, [0])",
    ),
    *(
        "numpy.add(x, y, dtype=numpy.float32)",
        "numpy.add(x, y, out=x)",
        "numpy.add(x, y, where=mask)",
    ),
    *(
        "x ** 2",
        "x ** 0.5",
        "x ** -1",
        "2.0 ** v",
        "-x",
        "+x",
        "abs(x)",
        "x / y",
        "1 / x",
        "x // y",
    ),
    *(
        "numpy.exp2(x)",
        "numpy.expm1(x)",
        "numpy.log1p(x)",
        "numpy.logical_not(x > 0)",
        "numpy.sqrt(x)",
    ),
    *("numpy.fmax(x, y)", "numpy.fmin(x, 2)", "numpy.float_power(x, 2)", "numpy.sign(x)", "x % 2"),
    *("numpy.concatenate([x, y], 1)", "numpy.stack([x, y], -1)", "numpy.vstack([m, v])"),
    *("numpy.concatenate([x, ones])", "numpy.split(x, [1, 2], axis=1)", "numpy.array_split(v, 4)"),
    *("numpy.take(x, rows, axis=0)", "numpy.repeat(x, 2, 1)", "numpy.tile(m, (2, 1, 2))"),
    *("numpy.roll(x, 1)", "numpy.flip(x, (0, 2))", "numpy.diagonal(x, 1)", "numpy.squeeze(x[:1])"),
    *(
        "numpy.broadcast_to(m, (2, 3, 6))",
        "numpy.expand_dims(x, (0, -1))",
        "numpy.moveaxis(x, 0, 2)",
    ),
    *("numpy.take(x, x)", "numpy.take(x, indices=x)", "numpy.take_along_axis(x, idx, 2)"),
    *("numpy.size(x)", "numpy.shape(x)", "numpy.ndim(x)", "len(x)", "x.size", "x.shape", "x.dtype"),
    *("x.tolist()", "x.nothing", "x._hidden", "float(s)", "bool(s)", "numpy.asarray(x)"),
    *("numpy.sum(x, where=mask)", "numpy.sum(x, dtype=numpy.float64)", "numpy.sum(x, dtype=int)"),
    *(
        "x + 'a'",
        "x + 1j",
        "x + numpy.array(['a'])",
        "x + True",
        "numpy.add(x, [1, 2, 3, 4, 5, 6])",
    ),
)


def stores(x: Any, y: Any) -> Iterator[Any]:
    """Yield what a function makes that stores into arrays: `np` becomes a stand-in for NumPy."""
    a: Any = np.zeros((3, 6))
    a[1] = x[0, 0]
    yield a + 0
    a[:, ::2] = y[1, :, ::2]
    a[-1, 0] += 2
    yield a
    for made in (np.ones, np.empty):
        b = made((2, 3), np.float32)
        b[0] = x[0, 0, :3]
        yield b
    c = np.full((2, 2), 1.5)
    c[...] = y[0, :2, :2]
    yield c
    yield np.eye(3) + x[0, :, :3]
    yield np.array([x[0, 0, 0], y[1, 1, 1]])
    yield np.asarray(x[0], np.float16)
    yield np.array([x[0, 0], [1, 2, 3, 4, 5, 6]], dtype=np.float32)
    yield np.ascontiguousarray(y[0].T)
    yield np.array([1, 2])
    yield isinstance(a, np.ndarray)
    d = np.ndarray((2, 2), np.float32)
    d[0] = x[0, 0, :2]
    yield d
    yield np.zeros(3, np.int64)
    yield np.exp(x[0])


def test_functions_of_numpy_with_options() -> None:
    lines = list[str]()
    for text in NUMPY:
        known = {key: value for key, value in names().items() if key not in ("x", "y")}
        own = dict(zip("xymvns", arrays(), strict=True))
        known |= own | {"idx": np.zeros((4, 3, 6), np.int64)}
        lines.append(f"{text}: {outcome(eval, text, known)}")
        casts = sorted(dtype for dtype, _ in own["x"].places.casts)
        lines += [f"  to {casts}"] * bool(casts)
    x, y = arrays()[:2]
    with np.errstate(all="ignore"):
        lines += [f"stored: {said(each)}" for each in followed(lambda: [*stores(x, y)], x)]
    compare_file(PAGES / "numpy_words.txt", page(lines))
