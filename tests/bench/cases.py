"""The cases of the table of runs: a kernel, its inputs, and the same in NumPy twice.

*Whole*: the shortest NumPy expressions over whole arrays. *Floor*: the tile operations of the
kernel in a plain loop, on arrays made beforehand; nothing is allocated, checked or timed there.
Both work in float32: bfloat16 inputs are given to them widened, and what the kernel rounds to
bfloat16 they do not round, so that the floor is what no runner in NumPy can be below.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Inputs = dict[str, NDArray[Any]]
Compute = Callable[[dict[str, Floats], Floats], None]
ArrayType = tuple[str, tuple[int, ...]]  # a dtype and a shape
P, CHUNK = 128, 512


class Case(NamedTuple):
    """`shapes` by name, with the element type; `result` is the shape of what comes out. `close`:
    the most that a result may differ from the floor's, absolutely.
    """

    title: str
    kernel: str
    shapes: dict[str, ArrayType]
    result: tuple[int, ...]
    whole: Compute
    floor: Callable[[dict[str, Floats]], Compute]
    close: float


def drawn(case: Case) -> Inputs:
    """Draw inputs in the storage type: bfloat16 as the upper halves of float32."""
    draw = np.random.default_rng(0)
    found: Inputs = {}
    for name, (dtype, shape) in case.shapes.items():
        values = draw.standard_normal(shape).astype(np.float32)
        if name == "identity":
            values = np.eye(*shape, dtype=np.float32)
        elif name == "weight":  # the same row for every partition
            values[:] = values[0]
        found[name] = values if dtype == "float32" else narrowed(values)
    return found


def narrowed(values: Floats) -> NDArray[np.uint16]:
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def widened(inputs: Inputs) -> dict[str, Floats]:
    return {
        name: (values.astype(np.uint32) << 16).view(np.float32)
        if values.dtype == np.uint16
        else values
        for name, values in inputs.items()
    }


def same(case: Case, who: str, found: Floats, wanted: Floats) -> None:
    """Raises `ValueError` if a result differs too much from the floor's."""
    off = float(np.abs(found - wanted).max())
    if not off <= case.close:
        raise ValueError(f"{case.title}: {who} is {off:g} off the floor, more than {case.close:g}")


def tiles(count: int, shape: tuple[int, ...] = (P, CHUNK)) -> list[Floats]:
    return [np.zeros(shape, np.float32) for _ in range(count)]


def whole_add(given: dict[str, Floats], out: Floats) -> None:
    np.add(given["a"], given["b"], out=out)


def floor_add(given: dict[str, Floats]) -> Compute:
    x, y, z = tiles(3)

    def run(given: dict[str, Floats], out: Floats) -> None:
        a, b = given["a"], given["b"]
        for m in range(0, a.shape[0], P):
            for n in range(0, a.shape[1], CHUNK):
                np.copyto(x, a[m : m + P, n : n + CHUNK])
                np.copyto(y, b[m : m + P, n : n + CHUNK])
                np.add(x, y, out=z)
                np.copyto(out[m : m + P, n : n + CHUNK], z)

    return run


def whole_matmul(given: dict[str, Floats], out: Floats) -> None:
    np.matmul(given["a"].T, given["b"], out=out)


def floor_naive(given: dict[str, Floats]) -> Compute:
    (left,), (right, product, total, tile) = tiles(1, (P, P)), tiles(4)

    def run(given: dict[str, Floats], out: Floats) -> None:
        a, b = given["a"], given["b"]
        for m in range(0, a.shape[1], P):
            for n in range(0, b.shape[1], CHUNK):
                for k in range(0, a.shape[0], P):
                    np.copyto(left, a[k : k + P, m : m + P])
                    np.copyto(right, b[k : k + P, n : n + CHUNK])
                    _accumulate(left, right, product, total, k > 0)
                np.copyto(tile, total)
                np.copyto(out[m : m + P, n : n + CHUNK], tile)

    return run


def _accumulate(left: Floats, right: Floats, product: Floats, total: Floats, more: bool) -> None:
    if more:
        np.matmul(left.T, right, out=product)
        np.add(total, product, out=total)
    else:
        np.matmul(left.T, right, out=total)


def floor_hoisted(given: dict[str, Floats]) -> Compute:
    (product, total, tile), (depth, rows), width = tiles(3), given["a"].shape, given["b"].shape[1]
    lefts, rights = tiles(depth // P, (P, rows)), tiles(depth // P, (P, width))

    def run(given: dict[str, Floats], out: Floats) -> None:
        for i in range(depth // P):
            np.copyto(lefts[i], given["a"][i * P : (i + 1) * P])
            np.copyto(rights[i], given["b"][i * P : (i + 1) * P])
        for m in range(0, rows, P):
            for n in range(0, width, CHUNK):
                for i in range(depth // P):
                    left, right = lefts[i][:, m : m + P], rights[i][:, n : n + CHUNK]
                    _accumulate(left, right, product, total, i > 0)
                np.copyto(tile, total)
                np.copyto(out[m : m + P, n : n + CHUNK], tile)

    return run


def whole_softmax(given: dict[str, Floats], out: Floats) -> None:
    x = given["x"]
    np.subtract(x, x.max(1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(1, keepdims=True), out=out)


def floor_softmax(given: dict[str, Floats]) -> Compute:
    width = given["x"].shape[1]
    (data, exps, y), (least, total) = tiles(3, (P, width)), tiles(2, (P, 1))

    def run(given: dict[str, Floats], out: Floats) -> None:
        x = given["x"]
        for m in range(0, x.shape[0], P):
            np.copyto(data, x[m : m + P])
            np.maximum.reduce(data, axis=1, keepdims=True, out=least)
            np.negative(least, out=least)
            np.add(data, least, out=exps)
            np.exp(exps, out=exps)
            np.add.reduce(exps, axis=1, keepdims=True, out=total)
            np.reciprocal(total, out=total)
            np.multiply(exps, total, out=y)
            np.copyto(out[m : m + P], y)

    return run


def whole_rmsnorm(given: dict[str, Floats], out: Floats) -> None:
    x = given["x"]
    np.multiply(x, x, out=out)
    inverse = 1 / np.sqrt(out.mean(1, keepdims=True) + np.float32(1e-6))
    np.multiply(x, inverse, out=out)
    np.multiply(out, given["weight"][:1], out=out)


def floor_rmsnorm(given: dict[str, Floats]) -> Compute:
    width = given["x"].shape[1]
    (data, squares, y, weights), (total,) = tiles(4, (P, width)), tiles(1, (P, 1))
    share, least = np.float32(1 / width), np.float32(1e-6)

    def run(given: dict[str, Floats], out: Floats) -> None:
        x = given["x"]
        np.copyto(weights, given["weight"])
        for m in range(0, x.shape[0], P):
            np.copyto(data, x[m : m + P])
            np.multiply(data, data, out=squares)
            np.add.reduce(squares, axis=1, keepdims=True, out=total)
            np.multiply(total, share, out=total)
            np.add(total, least, out=total)
            np.sqrt(total, out=total)
            np.reciprocal(total, out=total)
            np.multiply(data, total, out=squares)
            np.multiply(squares, weights, out=y)
            np.copyto(out[m : m + P], y)

    return run


def whole_attention(given: dict[str, Floats], out: Floats) -> None:
    scores = given["q"].T @ given["k"]
    np.multiply(scores, np.float32(P**-0.5), out=scores)
    np.subtract(scores, scores.max(1, keepdims=True), out=scores)
    np.exp(scores, out=scores)
    total = scores.sum(1, keepdims=True)
    np.matmul(scores, given["v"], out=out)
    np.divide(out, total, out=out)


class FloorAttention:
    """The floor of attention, with its tiles."""

    def __init__(self, given: dict[str, Floats]) -> None:
        size = given["q"].shape[1]
        self.keys, self.values = tiles(size // CHUNK), tiles(size // P, (P, P))
        self.scores, self.weights = tiles(2)
        self.query, self.eye, self.turned, self.copy, self.acc, self.part, self.product = tiles(
            7, (P, P)
        )
        self.new, self.old, self.shrink, self.total, self.sum = tiles(5, (P, 1))

    def run(self, given: dict[str, Floats], out: Floats) -> None:
        np.copyto(self.eye, given["identity"])
        for c, key in enumerate(self.keys):
            np.copyto(key, given["k"][:, c * CHUNK : (c + 1) * CHUNK])
        for c, value in enumerate(self.values):
            np.copyto(value, given["v"][c * P : (c + 1) * P])
        for row in range(0, given["q"].shape[1], P):
            np.copyto(self.query, given["q"][:, row : row + P])
            for c in range(len(self.keys)):
                self.chunk(c)
            np.reciprocal(self.total, out=self.total)
            np.multiply(self.acc, self.total, out=self.product)
            np.copyto(out[row : row + P], self.product)

    def chunk(self, c: int) -> None:
        np.matmul(self.query.T, self.keys[c], out=self.scores)
        np.maximum.reduce(self.scores, axis=1, keepdims=True, out=self.new)
        np.multiply(self.new, np.float32(-(P**-0.5)), out=self.new)
        if c > 0:
            np.minimum(self.new, self.old, out=self.new)
        np.multiply(self.scores, np.float32(P**-0.5), out=self.weights)
        np.add(self.weights, self.new, out=self.weights)
        np.exp(self.weights, out=self.weights)
        np.add.reduce(self.weights, axis=1, keepdims=True, out=self.sum)
        self.weigh(c)
        self.grow(c > 0)
        np.copyto(self.old, self.new)

    def weigh(self, c: int) -> None:
        for t in range(CHUNK // P):
            np.matmul(self.weights[:, t * P : (t + 1) * P].T, self.eye, out=self.turned)
            np.copyto(self.copy, self.turned)
            value = self.values[c * (CHUNK // P) + t]
            _accumulate(self.copy, value, self.part, self.product, t > 0)

    def grow(self, more: bool) -> None:
        if not more:
            np.copyto(self.acc, self.product)
            np.copyto(self.total, self.sum)
            return
        np.subtract(self.new, self.old, out=self.shrink)
        np.exp(self.shrink, out=self.shrink)
        for total, part in ((self.acc, self.product), (self.total, self.sum)):
            np.multiply(total, self.shrink, out=total)
            np.add(total, part, out=total)


def _matmul(title: str, kernel: str, size: int, floor: Callable[..., Compute]) -> Case:
    square: ArrayType = ("bfloat16", (size, size))
    shapes = {"a": square, "b": square}
    return Case(title, kernel, shapes, (size, size), whole_matmul, floor, 2e-3)


def _attention(size: int) -> Case:
    shapes: dict[str, ArrayType] = {
        "q": ("bfloat16", (P, size)),
        "k": ("bfloat16", (P, size)),
        "v": ("bfloat16", (size, P)),
        "identity": ("bfloat16", (P, P)),
    }
    title = f"flash attention bf16, S = {size:,}, d = 128"
    floor = lambda given: FloorAttention(given).run  # noqa: E731
    return Case(title, "attention", shapes, (size, P), whole_attention, floor, 2e-2)


def _rows(
    title: str,
    kernel: str,
    shape: tuple[int, int],
    whole: Compute,
    floor: Callable[..., Compute],
    **more: ArrayType,
) -> Case:
    return Case(title, kernel, {"x": ("float32", shape), **more}, shape, whole, floor, 1e-4)


CASES = (
    Case(
        "add f32 8192×4096 in 128×512 tiles",
        "add",
        dict.fromkeys("ab", ("float32", (8192, 4096))),
        (8192, 4096),
        whole_add,
        floor_add,
        0.0,
    ),
    _matmul("matmul bf16 1024³, naive", "matmul_naive", 1024, floor_naive),
    _matmul("matmul bf16 1024³, hoisted", "matmul_hoisted", 1024, floor_hoisted),
    _matmul("matmul bf16 2048³, naive", "matmul_naive", 2048, floor_naive),
    _matmul("matmul bf16 2048³, hoisted", "matmul_hoisted", 2048, floor_hoisted),
    _rows("softmax f32 4096×1024", "softmax", (4096, 1024), whole_softmax, floor_softmax),
    _attention(1024),
    _attention(2048),
    _attention(4096),
    _rows(
        "rmsnorm f32 4096×2048",
        "rmsnorm",
        (4096, 2048),
        whole_rmsnorm,
        floor_rmsnorm,
        weight=("float32", (P, 2048)),
    ),
)
