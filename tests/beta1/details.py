"""More bodies of Beta 1 kernels, in the style of `bodies`: edges of indices, masks, shapes and
blocks. Those of DETAILS are also run by the model in NumPy.
"""

from __future__ import annotations

from tests.beta1.bodies import BLOCKS, SEVENS, each

GRID = "t = nl.zeros((2, 3, nl.par_dim(64), 32), dtype=nl.float32)\nt[1, 0] = x\nt[0, 2] = y\n"
DEEP = "q = nl.ndarray((64, 1, 2, 2, 2, 2, 2), dtype=nl.float32)\nq[...] = 7.0\n"

DETAILS = {
    "details": (
        *("r = x[i, (k + 70) % 33]", "r = x[i, (k + 70) // 1 - 60]", "r = x[i, i[2:3] * k % 48]"),
        *("r = x[i, j[..., 3:9]]", "r = x[i, k + j[:, 5:6]]", "r = x[i, 5 * j[0:1, 3:4] + k]"),
        *("r = nl.copy(x[i, k[..., 2:8:3] * 4])", "r = nl.load(a[h[3:20:4, ...], j])"),
        *("r = nl.add(x[0:2], y[0:1])", "r = nl.add(x[0:1], y[0:1])", "r = nl.add(x[0:1], 1.0)"),
        *("r = nl.add(x.reshape((64, -1, 8))[:, 3], 1.0)", "r = nl.add(x[:, 4:5], y[:, 31:32])"),
        *each(
            SEVENS,
            *(
                "r[i, j] = nl.add(x, 1.0, mask=(2 * j == 6))",
                "r[i, j] = nl.copy(x, mask=(i == 63))",
            ),
            *(
                "r[i, j] = nl.add(x, 1.0, mask=(3 * j <= 10))",
                "r[i, j] = nl.copy(x, mask=(j == 0))",
            ),
            "r[i, j] = nl.add(x, 1.0, mask=(2 * j == 7))",
            *(f"r[i, j] = nl.add(x, 1.0, mask={mask})" for mask in (True, False)),
            "r[:, 0:1] = nl.sum(x[i, j], axis=1, mask=(i < 5) | (i > 50), keepdims=True)",
            "r[i, j] = nl.add(x, 1.0, mask=(-3 * j + 20 > 0))",
            "r[i, j] = nl.add(x, 1.0, mask=(2 * i >= 31) & (-2 * j >= -31))",
            "r[i, j] = nl.add(x, 1.0, mask=(j == 4) & (j < 4))",
            "r[i, j] = nl.add(x, 1.0, mask=(j == 4) & (j >= 4))",
            "r[i, j] = nl.add(x, 1.0, mask=(i == 3) | (i == 5) | (j == 31))",
            "r[i, k + 16] = nl.add(x[i, k], y[i, 15 - k], mask=(k > 2) & (i < 50))",
        ),
        *each(
            BLOCKS,
            "t[0] = x\nt[-1] = y\nr = nl.add(t[2], t[-3])",
            "t[1, 3, :] = x[3, :]\nr = t[1]",
        ),
    ),
}
MORE_DETAILS = {
    "shapes": (
        *("r = x[5, 0 * i + j]", "r = nl.copy(x[5, 0 * h + k])", "r = x[i * 0 + 5, j]"),
        *("r = x[5, i * 0 + j, None]", "r = x.expand_dims(-1)", "r = x.expand_dims(1)"),
        *("r = x.expand_dims(-2)", "r = x.expand_dims(2)", "r = x.reshape((-1, 32))"),
        *("r = x.reshape((64, 32, -1))", "r = x.reshape((64, -1))", "r = x[:, 0:1].reshape((64,))"),
        *("r = x[0:1, 0:1].reshape((1,))", "r = x[0:1].reshape((32,))", "r = j[..., None]"),
        *each(
            GRID,
            "r = nl.copy(t.reshape((6, 64, 32))[3])",
            "r = nl.copy(t.reshape((3, 2, 64, 32))[1, 0])",
            "r = nl.copy(t.reshape((1, 6, 64, 32))[0, 5])",
            "r = nl.copy(t.view(nl.bfloat16)[1, 0])",
            "r = nl.copy(t.view(nl.int32)[0, 2, :, 3:5])",
            "r = nl.copy(t[1:2, 0])",
            "r = nl.add(x, t.view(nl.bfloat16).shape[3])",
            "r = nl.copy(t[0, 3])",
            "r = nl.copy(t.view(nl.bfloat16)[1, 0, :, 60:65])",
        ),
        *each(
            "t = nl.zeros((1, 1, nl.par_dim(64), 32), dtype=nl.float32)\n",
            "t[0, 0] = x\nr = nl.copy(t[0, 0])",
            "t[0:1, 0] = x\nr = nl.copy(t[:, 0])",
            "t[0, 1] = x\nr = x",
        ),
        *each(
            DEEP,
            "r = nl.add(q, 1.0)",
            "r = nl.add(q[:, :, :, 0:1, :, 0:1, :], 1.0)",
            "q[:, :, 0:1] = nl.add(q[:, :, 1:2], 2.0)\nr = x",
        ),
        *(
            "for n in nl.affine_range():\n    r = x",
            "for n in nl.affine_range(1, 9, 3, 2):\n    r = x",
        ),
        *("for n in nl.affine_range(9, 1):\n    r = x\nr = y", "r = nl.add(x[0:1], y[0:2])"),
        *("r = nl.add(x, y[0:2])", "r = nl.add(x[0:2], y[0:1, 0:1])", "r = nl.add(x[0:1], y)"),
        *("r = j[0:1, 3:4, 0]", "r = x[i, j[..., 3:3]]", "r = x[i, j[3:9, ...]]"),
        *("r = nl.copy(x[5, i])", "r = nl.copy(x[i, 5])", "r = nl.copy(x[5, 6])"),
        *("r = nl.full(x.reshape((64, 4, 8)).shape_2d, 2.0, nl.float32)", "r = x[i, i[0:1] * j]"),
        "r = nl.copy(x[i, nl.arange(2)[None, :] * nl.arange(2)[None, :]])",
        "r = nl.copy(x[nl.arange(2).reshape((2, 1)), j.reshape((1, 32))])",
        "r = nl.load(a.reshape((-1,))[0:64])",
        *("r = nl.copy(x[i, None, 5])", "r = nl.copy(x[:, 5])", "r = nl.copy(x[None, 5])"),
        SEVENS + "nisa.tensor_copy_predicated(dst=r, src=x, "
        "predicate=nl.greater(x, y, dtype=np.bool_))",
        SEVENS + "nisa.tensor_copy_predicated(dst=r, src=x, "
        "predicate=nl.greater(x, y, dtype=nl.uint8))",
    ),
}
