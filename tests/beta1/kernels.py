"""Random Beta 1 kernels, and their results in the model (tests/beta1/model.py).

    python -m tests.beta1.kernels 0 1000

compiles and runs the kernels of these seeds, and prints those whose results differ. All numbers
are small integers, so that results are compared for equality.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import numpy as np

import nkic
from nkic.base.source import SourceFile
from tests.beta1.model import Model, Rejected

HEAD = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
"""


class Writer:
    """Writes the statements of one random kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.size = self.random.choice((32, 64, 64, 96, 128))  # rows and columns of a tile
        self.lines: list[str] = []
        self.depth = 1
        self.loops: list[tuple[str, int]] = []
        self.number = 0
        self.kept: list[tuple[str, int]] = []  # results that are assigned, and their columns

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self) -> str:
        self.number += 1
        return f"v{self.number}"

    def kernel(self) -> str:
        """Return the whole function. `«x|y»` is x for nkic and y for the model."""
        size = self.size
        self.line(f"out = nl.ndarray((6, {size}, {size}), dtype=nl.float32, buffer=nl.shared_hbm)")
        for n in range(3):
            self.line(f"t{n} = nl.full(({size}, {size}), {n + 2}, dtype=nl.float32)")
        self.line(f"blocks = nl.full((3, nl.par_dim({size}), {size}), 1, dtype=nl.float32)")
        for _ in range(self.random.randint(3, 8)):
            self.statement()
        for n in range(3):
            self.line(f"nl.store(out[{n}], t{n})")
        self.line("for n in nl.affine_range(3):")
        self.line("    nl.store(out[n + 3], blocks[n])")
        self.line("return out")
        return "\n".join(["def kernel(a, b):", *self.lines, ""])

    # ---- statements --------------------------------------------------------------------------

    def statement(self) -> None:
        kinds = [self.assign] * 5 + [self.update, self.product, self.fold, self.move, self.solid]
        kinds += [self.rewrite, self.assign] * (2 * bool(self.kept))
        if len(self.loops) < 2:
            kinds += [self.loop] * 3
        self.random.choice(kinds)()

    def loop(self) -> None:
        name = "ijk"[len(self.loops)]
        count = self.random.randint(1, 3)
        kind = self.random.choice(("affine", "sequential", "static"))
        self.line(f"for {name} in nl.{kind}_range({count}):")
        self.loops.append((name, count))
        self.depth += 1
        outside = list(self.kept)
        if kind != "static" and self.random.random() < 0.3:
            self.total()
        for _ in range(self.random.randint(1, 3)):
            self.statement()
        self.depth -= 1
        self.loops.pop()
        self.kept = outside

    def total(self) -> None:
        """Write a sum over the iterations of the innermost loop."""
        name, result = self.loops[-1][0], self.fresh()
        around = "".join(f"{one}, " for one, _ in self.loops[:-1])
        self.indices()
        value = self.random.choice((f"a[p + 8 * {name}, f]", self.read()))
        if value[0] == "a":
            value = f"nl.load({value})"
        target = f"blocks[{self.random.randrange(3)}, p, f]"
        key = f"«|, key=({self.number}, {around})»"
        self.line(f"{result} = nl.loop_reduce({value}, op=np.add, loop_indices=[{name}]{key})")
        self.line(f"{target} = {result}")

    def indices(self) -> None:
        """Write `p` and `f`, the indices of a statement's accesses."""
        size = self.size
        widths = [width for _, width in self.kept[-1:]] * 4
        self.width = self.random.choice((size, size, size // 2, size // 4, 5, *widths))
        if self.random.random() < 0.3:
            self.line(f"p, f = nl.mgrid[0:{size}, 0:{self.width}]")
        else:
            self.line(f"p, f = nl.arange({size})[:, None], nl.arange({self.width})[None, :]")

    def columns(self) -> str:
        """Return an index expression that covers some columns of a tile."""
        room = self.size - self.width
        forms = [f"f + {self.random.randint(0, room)}", f"{self.size - 1} - f"]
        if 2 * self.width <= self.size:
            forms += [f"2 * f + {self.random.randint(0, 1)}"]
        if not room:
            forms += ["f"] * 4
        if self.loops and room:
            name, count = self.loops[-1]
            step = room // count
            forms += [f"f + {step} * {name}", f"{name} * {step} + f"]
        return self.random.choice(forms)

    def access(self) -> str:
        """Return an access to part of a tile or block."""
        names = [f"t{n}[" for n in range(3)]
        block = str(self.random.randrange(3))
        if self.loops and self.random.random() < 0.5:
            block = self.loops[-1][0]
        return f"{self.random.choice([*names, f'blocks[{block}, '])}p, {self.columns()}]"

    def read(self) -> str:
        kept = [name for name, width in self.kept if width == self.width]
        if kept and self.random.random() < 0.5:
            name = self.random.choice(kept)
            return name if self.random.random() < 0.7 else f"{name}[p, f]"
        if self.random.random() < 0.3:
            return f"nl.multiply({self.access()}, {self.random.randint(-2, 2)})"
        return self.access()

    def mask(self) -> str:
        """Return a mask on p and f, sometimes on loop variables too; often there is none."""
        draw = self.random.random()
        if draw < 0.4:
            return ""
        return f", mask={self.condition()}"

    def condition(self, depth: int = 0) -> str:
        rows, columns = self.random.randint(0, self.size), self.random.randint(0, self.width)
        loop = f" + {self.random.choice((1, 7, 16))} * {self.loops[-1][0]}" if self.loops else ""
        if self.random.random() < 0.6:
            loop = ""
        rows = self.random.choice((32, rows)) if self.size > 32 else rows
        forms = [
            *(f"(f{loop} < {columns})", f"(p{loop} < {rows})", f"(f >= {columns // 2})"),
            *(f"(p{loop} >= f)", f"(2 * p - 3 * f{loop} > {rows - columns})", f"(p >= 32{loop})"),
            *(f"(f == {columns})", f"(p != {rows})", f"({columns} - f{loop} > 0)"),
        ]
        if depth > 1 or self.random.random() < 0.5:
            return self.random.choice(forms)
        first, second = self.condition(depth + 1), self.condition(depth + 1)
        joined = f"({first} {self.random.choice('&&&|')} {second})"
        return f"(~{joined})" if self.random.random() < 0.15 else joined

    def value(self, mask: str) -> str:
        """Return an expression with the shape of p and f."""
        n = self.random.randint(-3, 3)
        x, y = self.read(), self.read()
        op = self.random.choice(("add", "subtract", "maximum", "minimum"))
        start, step = self.random.randint(0, 20), self.random.choice((1, 1, 2))
        row = f"{step} * p + {start}" + (f" + 16 * {self.loops[-1][0]}" if self.loops else "")
        forms = [
            f"nl.load(a[{row}, {self.columns()}]{mask})",
            f"nl.load(b[{self.random.randrange(2)}, {row}, f + {start}]{mask})",
            f"nl.{op}({x}, {y}{mask})",
            f"nl.{op}({x}, {n}{mask})",
            f"nisa.tensor_tensor({x}, {y}, np.{op}{mask})",
            f"nl.where(nl.subtract({x}, {n}), {y}, {self.random.choice((x, n))}{mask})",
            f"nl.copy({x}{mask})",
            f"nisa.tensor_copy({x}{mask})",
            f"nisa.tensor_scalar({x}, np.{op}, {n}, op1=np.add, operand1=1{mask})",
            f"nisa.activation(np.abs, {x}, scale=-1.0{mask})",
            f"nisa.affine_select(pred={self.condition(2)}, on_true_tile={x}, "
            f"on_false_value={n}{mask})",
            f"nisa.iota(2 * p - f + {n}, dtype=nl.float32{mask})",
            f"nisa.memset(({self.size}, {self.width}), {n}, nl.float32)",
            f"{x} + {y}",
            f"{x} * {n} - {y}",
        ]
        return self.random.choice(forms)

    def assign(self) -> None:
        self.indices()
        value = self.value(mask := self.mask())
        if not mask and self.random.random() < 0.6:
            name = self.fresh()
            self.line(f"{name} = {value}")
            if self.random.random() < 0.5:
                self.line(f"{self.access()} = {self.read()}")
            value = name
        self.line(f"{self.access()} = {value}")
        if value.isidentifier():
            self.kept.append((value, self.width))

    def rewrite(self) -> None:
        """Write a result in place after it was assigned elsewhere, which keeps its value."""
        name, width = self.random.choice(self.kept)
        size, self.width = self.size, width
        self.line(f"p, f = nl.arange({size})[:, None], nl.arange({width})[None, :]")
        self.line(f"{name}[p, f] {self.random.choice(('=', '+='))} {self.read()}")

    def update(self) -> None:
        self.indices()
        self.line(f"{self.access()} += {self.read()}")

    def product(self) -> None:
        """Write a product of a few terms in PSUM, sometimes masked."""
        size, name = self.size, self.fresh()
        self.indices()
        width = self.width
        self.line(f"{name} = nl.zeros(({size}, {width}), dtype=nl.float32, buffer=nl.psum)")
        left, right = (f"nl.minimum(nl.maximum({self.access()}, -1), 1)" for _ in range(2))
        self.line(f"left = nl.full(({size}, {size}), 0, dtype=nl.float32)")
        self.line(f"right = nl.full(({size}, {size}), 0, dtype=nl.float32)")
        self.line(f"left[p, f] = {left}")
        self.line(f"right[p, f] = {right}")
        turns = self.random.randint(1, 2)
        self.line(f"for turn in nl.affine_range({turns}):")
        self.line(f"    q, m = nl.arange({size})[:, None], nl.arange({size})[None, :]")
        mask = ""
        if self.random.random() < 0.5:
            terms, rows = self.random.choice((32, size)), self.random.choice((32, size))
            columns = self.random.randint(1, width)
            bounds = f"(p < {terms}) & (m < {rows}) & (f < {columns})"
            mask = f", mask=«{bounds}|({terms}, {rows}, {columns})»"
        self.line(f"    {name} += nisa.nc_matmul(left[q, m], right[p, f]{mask})")
        self.line(f"{self.access()} = nl.minimum(nl.maximum({name}, -9), 9)")

    def fold(self) -> None:
        """Write a reduction along the columns into one column."""
        self.indices()
        target = self.access().replace(", f", ", 0 * f").rpartition("[")[0]
        op, column = self.random.choice(("sum", "max", "min")), self.random.randrange(self.size)
        target = f"{target}[p, {column}]" if "blocks" not in target else f"blocks[1, p, {column}]"
        if target[0] == "t":
            target = f"{target[:2]}[p[:, 0:1], {column}]"
        else:
            target = f"blocks[1, p[:, 0:1], {column}]"
        mask = self.mask()
        self.line(f"{target} = nl.{op}({self.read()}, axis=1{mask}, keepdims=True)")
        self.line(f"{target} = nl.minimum(nl.maximum({target}, -50), 50)")

    def move(self) -> None:
        """Write a transpose, or a copy under a predicate."""
        self.indices()
        if self.random.random() < 0.5:
            size = self.size
            self.line(f"p, f = nl.arange({size})[:, None], nl.arange({size})[None, :]")
            self.width = size
            names = ["t0[p, f]", "t1[p, f]", "blocks[2, p, f]"]
            source, target = self.random.sample(names, 2)
            forms = [f"nisa.nc_transpose({source})", "nl.load_transpose2d(a[p + 3, f + 2])"]
            self.line(f"{target} = {self.random.choice(forms)}")
        else:
            target, source, asked = self.access(), self.access(), self.access()
            mask = ""
            if self.random.random() < 0.3:
                mask = f", mask=(f < {self.random.randint(1, self.width)})"
            predicate = f"nl.greater({asked}, 0)"
            self.line(
                f"nisa.tensor_copy_predicated(dst={target}, src={source}, predicate={predicate}"
                f"{mask})"
            )

    def solid(self) -> None:
        """Write an operation on tiles with three dimensions."""
        size = self.size
        rows, columns = self.random.choice(((2, size // 2), (4, size // 4), (size // 2, 2)))
        self.line(f"p, x, y = nl.mgrid[0:{size}, 0:{rows}, 0:{columns}]")
        orders = [
            f"p, x * {columns} + y]",
            f"p, y * {rows} + x]",
            f"p, {size - 1} - y * {rows} - x]",
        ]
        names = ["t0[", "t1[", "t2[", "blocks[0, "]
        first, second, third = (
            self.random.choice(names) + self.random.choice(orders) for _ in range(3)
        )
        mask = self.random.choice(
            ("", f", mask=(x < {self.random.randint(1, rows)})", ", mask=(p >= x + y)")
        )
        op = self.random.choice(("add", "subtract", "maximum"))
        self.line(f"{first} = nl.{op}({second}, {third}{mask})")


def written(seed: int) -> tuple[str, str]:
    """Return the source for nkic, and the source for the model."""
    text = Writer(seed).kernel()
    parts = [piece.split("»") for piece in text.split("«")]
    ours, model = parts[0][0], parts[0][0]
    for one, rest in parts[1:]:
        first, _, second = one.partition("|")
        if "|(" in one:
            first, _, second = one.rpartition("|(")
            second = f"({second}"
        ours, model = ours + first + rest, model + second + rest
    return HEAD + ours, model


def inputs(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "a": rng.integers(-3, 4, (300, 160)).astype(np.float32),
        "b": rng.integers(-3, 4, (2, 310, 170)).astype(np.float32),
    }


def judged(seed: int) -> str:
    """Return the outcome of a seed: "equal", "passed over", or a description of the failure."""
    ours, model = written(seed)
    arrays = inputs(seed)
    try:
        wanted = Model().run(model, arrays)
    except Rejected:
        return "passed over"
    try:
        artifact = nkic.compile(SourceFile("k.py", ours), inputs=arrays)
        found = nkic.run(artifact, arrays).outputs["output_0"]
    except (nkic.CompileError, nkic.RunError) as refused:
        lines = str(refused).splitlines()
        return f"refused: {next((x for x in lines if 'error[' in x), lines[0])}"
    differing = np.argwhere(found != wanted)
    if not len(differing):
        return "equal"
    at = tuple(int(n) for n in differing[0])
    return f"WRONG: {len(differing)} elements, first {at}: {found[at]}, not {wanted[at]}"


def main() -> None:
    start, end = int(sys.argv[1]), int(sys.argv[2])
    count: Counter[str] = Counter()
    for seed in range(start, end):
        said = judged(seed)
        count[said.partition(":")[0]] += 1
        if said not in ("equal", "passed over"):
            print(seed, said, flush=True)
    print(dict(count))


if __name__ == "__main__":
    main()
