"""Kernels that follow the advice of verdicts, step by step, from what a newcomer writes."""

from typing import NamedTuple


class Step(NamedTuple):
    """A kernel, and the advice about it that the next one follows."""

    text: str
    follows: str


def moved(text: str, names: str, loop: str) -> str:
    """Move the declarations of these names into a loop."""
    lines = text.splitlines(keepends=True)
    starts = tuple(f"{name} = nl.ndarray" for name in names.split())
    declared = [line for line in lines if line.strip().startswith(starts)]
    (head,) = (line for line in lines if line.strip() == loop)
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    kept = [line for line in lines if line not in declared]
    at = kept.index(head) + 1
    return "".join([*kept[:at], *(f"{indent}{line.strip()}\n" for line in declared), *kept[at:]])


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """Replace lines, each of which is there once; an empty new line removes one."""
    for old, new in pairs:
        (line,) = (line for line in text.splitlines(keepends=True) if line.strip() == old)
        indent = line[: len(line) - len(line.lstrip())]
        lines = "".join(f"{indent}{each}\n" for each in new.splitlines())
        text = text.replace(line, lines)
    return text


# ---- RMSNorm --------------------------------------------------------------------------------

NORM = """\
def rmsnorm(x, w):
    rows, d = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)
    weight = nl.ndarray((128, d), dtype=w.dtype, buffer=nl.sbuf)
    square = nl.ndarray((128, d), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    scale = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)
    for r in range(0, rows, 128):
        nisa.dma_copy(dst=t, src=x[r : r + 128, :])
        nisa.dma_copy(dst=weight, src=w.reshape((1, d)).broadcast(0, 128))
        nisa.tensor_tensor(dst=square, data1=t, data2=t, op=nl.multiply)
        nisa.tensor_reduce(dst=total, op=nl.add, data=square, axis=1)
        nisa.tensor_scalar(
            dst=total, data=total, op0=nl.multiply, operand0=1.0 / d, op1=nl.add, operand1=1e-6
        )
        nisa.activation(dst=scale, op=nl.rsqrt, data=total)
        nisa.tensor_scalar(dst=y, data=t, op0=nl.multiply, operand0=scale)
        nisa.tensor_tensor(dst=y, data1=y, data2=weight, op=nl.multiply)
        nisa.dma_copy(dst=out[r : r + 128, :], src=y)
    return out
"""
ROWS = "for r in range(0, rows, 128):"
SQUARE = (
    "nisa.activation(\n    dst=square, op=nl.square, data=t, reduce_op=nl.add, reduce_res=total,\n"
    "    reduce_cmd=nisa.reduce_cmd.reset_reduce\n)"
)
WEIGHT = "weight = nl.ndarray((128, d), dtype=w.dtype, buffer=nl.sbuf)"
LOAD_WEIGHT = "nisa.dma_copy(dst=weight, src=w.reshape((1, d)).broadcast(0, 128))"

own_tiles = moved(NORM, "t weight square total scale y", ROWS)
one_pass = changed(
    own_tiles,
    ("nisa.tensor_tensor(dst=square, data1=t, data2=t, op=nl.multiply)", SQUARE),
    ("nisa.tensor_reduce(dst=total, op=nl.add, data=square, axis=1)", ""),
)
weight_once = changed(
    one_pass, (WEIGHT, ""), (LOAD_WEIGHT, ""), (ROWS, f"{WEIGHT}\n{LOAD_WEIGHT}\n{ROWS}")
)
NORM_STEPS = (
    Step(NORM, "buffers:"),
    Step(own_tiles, "fuse:"),
    Step(one_pass, "load-once:w"),
    Step(weight_once, ""),
)
GOOD_NORM = changed(
    weight_once,
    (
        "nisa.tensor_scalar(dst=y, data=t, op0=nl.multiply, operand0=scale)",
        "nisa.scalar_tensor_tensor(\n    dst=y, data=t, op0=nl.multiply, operand0=scale,\n"
        "    op1=nl.multiply, operand1=weight\n)",
    ),
    ("nisa.tensor_tensor(dst=y, data1=y, data2=weight, op=nl.multiply)", ""),
)

# ---- top-k gating ---------------------------------------------------------------------------

CHOICE = """\
        nisa.max8(dst=top, src=logits)
        nisa.tensor_scalar(dst=least, data=top[:, 0:1], op0=nl.multiply, operand0=-1.0)
        nisa.activation(dst=powers, op=nl.exp, data=logits, bias=least)
        nisa.tensor_scalar(
            dst=logits, data=logits, op0=nl.greater_equal, operand0=top[:, 3:4]
        )
        nisa.tensor_tensor(dst=powers, data1=powers, data2=logits, op=nl.multiply)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=powers, data=powers, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[t : t + 128, :], src=powers)
    return out
"""
GATING = f"""\
def gating(x, w):
    (tokens, d), (_, experts) = x.shape, w.shape
    out = nl.ndarray((tokens, experts), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    turned = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, experts), dtype=w.dtype, buffer=nl.sbuf)
    logits = nl.ndarray((128, experts), dtype=nl.float32, buffer=nl.sbuf)
    top = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
    least = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    powers = nl.ndarray((128, experts), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for t in range(0, tokens, 128):
        nisa.memset(dst=logits, value=0.0)
        for k in range(0, d, 128):
            nisa.dma_copy(dst=left, src=x[t : t + 128, k : k + 128])
            nisa.dma_copy(dst=right, src=w[k : k + 128, :])
            other = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=other, data=left)
            nisa.tensor_copy(dst=turned, src=other)
            product = nl.ndarray((128, experts), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=product, stationary=turned, moving=right)
            nisa.tensor_tensor(dst=logits, data1=logits, data2=product, op=nl.add)
{CHOICE}"""
TOKENS, PARTS = "for t in range(0, tokens, 128):", "for k in range(0, d, 128):"
LEFT = "left = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)"
RIGHT = "right = nl.ndarray((128, experts), dtype=w.dtype, buffer=nl.sbuf)"
PRODUCT = "product = nl.ndarray((128, experts), dtype=nl.float32, buffer=nl.psum)"
MULTIPLY = "nisa.nc_matmul(dst=product, stationary=turned, moving=right)"
KEPT = "nisa.nc_matmul(dst=product, stationary=turned, moving=right[k // 128])"

own_parts = moved(
    moved(GATING, "left turned right", PARTS), "logits top least powers total", TOKENS
)
whole_rows = changed(
    own_parts,
    (LEFT, ""),
    ("nisa.dma_copy(dst=left, src=x[t : t + 128, k : k + 128])", ""),
    (
        "nisa.nc_transpose(dst=other, data=left)",
        "nisa.nc_transpose(dst=other, data=left[:, k : k + 128])",
    ),
    (
        PARTS,
        f"{LEFT.replace('(128, 128)', '(128, d)')}\n"
        f"nisa.dma_copy(dst=left, src=x[t : t + 128, :])\n{PARTS}",
    ),
)
experts_once = changed(
    whole_rows,
    (RIGHT, ""),
    ("nisa.dma_copy(dst=right, src=w[k : k + 128, :])", ""),
    (MULTIPLY, KEPT),
    (
        TOKENS,
        "right = []\nfor k in range(0, w.shape[0], 128):\n"
        "    right.append(nl.ndarray((128, experts), dtype=w.dtype, buffer=nl.sbuf))\n"
        f"    nisa.dma_copy(dst=right[-1], src=w[k : k + 128, :])\n{TOKENS}",
    ),
)
in_psum = changed(
    experts_once,
    (PRODUCT, ""),
    (KEPT, f"{KEPT[:-1]}, accumulate=(k > 0))"),
    ("nisa.tensor_tensor(dst=logits, data1=logits, data2=product, op=nl.add)", ""),
    ("nisa.memset(dst=logits, value=0.0)", PRODUCT),
    (
        "nisa.max8(dst=top, src=logits)",
        "nisa.tensor_copy(dst=logits, src=product)\nnisa.max8(dst=top, src=logits)",
    ),
)
GATING_STEPS = (
    Step(GATING, "buffers:"),
    Step(own_parts, "whole-rows:"),
    Step(whole_rows, "load-once:w"),
    Step(experts_once, "accumulate:"),
    Step(in_psum, ""),
)
GOOD_GATING = f"""\
def gating(x, w):
    (tokens, d), (_, experts) = x.shape, w.shape
    out = nl.ndarray((tokens, experts), dtype=nl.float32, buffer=nl.shared_hbm)
    right = nl.ndarray((128, d // 128, experts), dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=right, src=w.reshape((d // 128, 128, experts)).permute((1, 0, 2)))
    for t in range(0, tokens, 128):
        left = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=x[t : t + 128, :])
        product = nl.ndarray((128, experts), dtype=nl.float32, buffer=nl.psum)
        for k in range(0, d, 512):
            other = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.psum)
            turned = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
            for j in range(0, 512, 128):
                nisa.nc_transpose(dst=other[:, j : j + 128], data=left[:, k + j : k + j + 128])
            nisa.tensor_copy(dst=turned, src=other)
            for j in range(0, 512, 128):
                nisa.nc_matmul(
                    dst=product,
                    stationary=turned[:, j : j + 128],
                    moving=right[:, (k + j) // 128, :],
                    accumulate=(k + j > 0),
                )
        logits = nl.ndarray((128, experts), dtype=nl.float32, buffer=nl.sbuf)
        top = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
        least = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        powers = nl.ndarray((128, experts), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=logits, src=product)
{CHOICE}"""

# ---- a product whose operands do not fit ----------------------------------------------------

# What `block:m*4,n*2` says about the sample's tiled product.
BLOCKED = """\
def matmul(lhsT, rhs):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in range(0, M, 512):
        for n in range(0, N, 1024):
            sums = {}
            for mm in range(m, m + 512, 128):
                for nn in range(n, n + 1024, 512):
                    sums[mm, nn] = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, K, 128):
                a = nl.ndarray((128, 512), dtype=lhsT.dtype, buffer=nl.sbuf)
                b = nl.ndarray((128, 1024), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=a, src=lhsT[k : k + 128, m : m + 512])
                nisa.dma_copy(dst=b, src=rhs[k : k + 128, n : n + 1024])
                for mm in range(m, m + 512, 128):
                    for nn in range(n, n + 1024, 512):
                        nisa.nc_matmul(
                            dst=sums[mm, nn],
                            stationary=a[:, mm - m : mm - m + 128],
                            moving=b[:, nn - n : nn - n + 512],
                            accumulate=(k > 0),
                        )
            for mm in range(m, m + 512, 128):
                for nn in range(n, n + 1024, 512):
                    c = nl.ndarray((128, 512), dtype=lhsT.dtype, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=c, src=sums[mm, nn])
                    nisa.dma_copy(dst=out[mm : mm + 128, nn : nn + 512], src=c)
    return out
"""
