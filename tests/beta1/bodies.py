"""Bodies of Beta 1 kernels, by subject: over tiles `x` and `y` of 64 rows and 32 columns, the
tensors `a` and `b` that they were loaded from, and indices `i`, `j`, `h`, `k`, they leave `r`.

Those of MODELLED are also run by the model in NumPy; what all of them record is on the pages.
"""

from __future__ import annotations

SEVENS = "r = nl.full((64, 32), 7.0, dtype=nl.float32)\n"
SCRATCH = "s = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)\nnl.store(s, x)\n"
PSUM = "p = nl.zeros((32, 32), dtype=nl.float32, buffer=nl.psum)\n"
BLOCKS = "t = nl.zeros((3, nl.par_dim(64), 32), dtype=nl.float32)\n"


def _each(before: str, *bodies: str, after: str = "") -> tuple[str, ...]:
    return tuple(before + body + after for body in bodies)


MODELLED = {
    "access": (
        *("r = x[i, j]", "r = x[0:32, 4:20]", "r = x[:, 0:32:3]", "r = x[i, 2 * k + 1]"),
        *("r = x[i, 31 - j]", "r = nl.add(x[:, 3:19], y[i, 15 - k])", "r = x[h + 32, j]"),
        *("r = nl.copy(x[h, 8 + k])", "r = nl.load(a[63 - i, j])", "r = nl.load(a[2 * h, k])"),
        *("r = nl.load(a[h + 32, 31 - 2 * k])", "r = nl.load(a[10:20])", "r = nl.load(a[5:64:7])"),
        "p, f = nl.mgrid[0:64, 0:8]\nr = nl.add(x[p, f], y[p, 3 * f + 1])",
        "p, f = nl.mgrid[8:40, 4:20]\nr = nl.load(a[p, f])",
        "r = nl.add(x.reshape((64, 4, 8))[:, 1:3, 2:7], 1.0)",
        "r = nl.copy(x.reshape((64, 4, 8))[i, 2, nl.arange(8)[None, :]])",
        "r = nl.copy(x[:, 4:12].reshape((64, 2, 4)))",
        "r = nl.load(a.reshape((32, 64))[3:9, 5:50])",
        "c = nl.arange(8)[None, :]\nr = nl.load(a[i, 4 * (c // 1) + 3])",
        "r = nl.load(a[8:16, :][2:5, 1:30:4])",
        "r = nl.add(x[:, 8:24][:, 3:9], y[:, 0:6])",
        "for n in nl.affine_range(4):\n    r = nl.load(a[n * 16 + nl.arange(16)[:, None], j])",
        *_each(
            SEVENS,
            *("r[i, j] = x[i, j]", "r[0:32, 0:16] = y[32:64, 16:32]", "r[i, 2 * k + 1] = x[i, k]"),
            *("r[i, 31 - j] = x", "r[h + 32, j] = x[h, j]", "r[:, 4:8] = 5.0", "r[i, k + 3] = 2.0"),
            *("r[:, 0:32:5] = x[:, 0:7]", "r[i, 2 * k] += y[i, k]", "r[0:32, 5:9] += 1.0"),
            "for n in nl.affine_range(4):\n    r[i, n * 8 + nl.arange(8)[None, :]] = "
            "nl.add(x[i, n * 8 + nl.arange(8)[None, :]], 1.0)",
            "for n in nl.sequential_range(1, 4):\n    r[:, n : n + 1] = "
            "nl.add(r[:, n - 1 : n], x[:, n : n + 1])",
            "r[i, j] = nl.load(a[i + 8, j], mask=(i < 56))",
            "r[i, j] = nl.load(a[i - 32, j], mask=(i >= 32))",
            "r[i, j] = nl.add(x[i, j + 3], 1.0, mask=(j < 29))",
            "r[i, j] = nl.add(x[i, j - 3], 1.0, mask=(j >= 3))",
            "r[i, j] = nl.multiply(x[i, j], y[i, j], mask=(i + j < 40))",
            "r.reshape((64, 4, 8))[:, 2, :] = x[:, 0:8]",
        ),
        *_each(
            SCRATCH,
            *("nl.store(s[i, 31 - j], y)", "nl.store(s[2 * h, j], y[0:32, :])"),
            *("nl.store(s[h + 32, 2 * k], y[0:32, 0:16])", "nl.store(s[5:9], y[0:4, :])"),
            "nl.store(s[i + 60, j], y, mask=(i < 4))",
            "nl.store(s[i, j], y, mask=(j >= i))",
            "nl.store(s[i, j - 4], y, mask=(j >= 4) & (i < 9))",
            after="\nr = nl.load(s)",
        ),
        *_each(
            BLOCKS,
            "for n in nl.affine_range(3):\n    t[n] = nl.add(x, 1.0 * n)\nr = nl.add(t[0], t[2])",
            "for n in range(3):\n    t[n, i, j] = nl.multiply(x[i, j], 2.0)\nr = t[1]",
            "t[1, 0:32, :] = x[0:32, :]\nr = t[1]",
            "t[2, :, 5:9] = 3.0\nr = nl.add(t[2], t[0])",
            "t[0, i, 2 * k] = y[i, k]\nr = t[0, i, k]",
            "t[2] += x\nt[2] += y\nr = t[2]",
        ),
    ),
    "emit": (
        *_each(
            SEVENS,
            *("r[...] = nl.add(x, y)", "r[0:32] = nl.multiply(x[0:32], 2.0)", "r[...] = x"),
            "q = nl.add(x, y)\nr[...] = q\nr[:, 0:4] = q[:, 4:8]",
            "q = nl.add(x, y)\nr[...] = q\nr = nl.add(r, q)",
            "q = nl.add(x, y)\nx[...] = 3.0\nr[...] = q",
            "q = nl.add(x, y)\nr[...] = q\nr += 1.0\nr = nl.add(q, r)",
            "q = nl.add(x, y)\nz = nl.add(q, 1.0)\nr[...] = q\nr = nl.add(r, z)",
            "r[:, 0:16] = nl.add(r[:, 16:32], x[:, 0:16])",
            "r[:, 0:31] = nl.add(r[:, 1:32], x[:, 0:31])",
            "r[...] = nl.subtract(x, r)",
            "r[0:32, :] = nl.add(r[32:64, :], 1.0)",
            "r[i, j] = nl.add(x, y, mask=(i < 32))\nr[i, j] = nl.add(x, r, mask=(j < 9))",
            "q = nl.add(x, y, mask=(j < 9))\nr[i, j] = q",
            "q = nl.add(x, y, mask=(j < 9))\nz = nl.copy(x)\nr[i, j] = q\nr = nl.add(r, z)",
            "r[i, j] = nl.add(x, y, mask=(i >= 40))",
            "r[i, j] = nl.add(x, y, mask=(i == j))",
            "r[i, j] = nl.add(x, y, mask=(i >= 40) & (j >= i - 40))",
            "r[i, j] = nl.copy(x, mask=(i + j >= 60))",
            "r[i, j] = nl.load(a[i, j], mask=(i >= j))",
            "r[i, j] = nl.add(x, y, mask=(i > 100))",
            "r[i, j] = nisa.activation(op=np.exp, data=x, mask=(i < 10) & (j < 10))\n"
            "r = nl.minimum(r, 1000.0)",
            "q = nl.copy(x)\nr[...] = q\nq[...] = 1.0\nr = nl.add(r, q)",
            "q = nl.copy(x)\nr[...] = q\nq += y\nr = nl.add(r, q)",
            "q = nl.copy(x)\nfor n in nl.static_range(3):\n    r[...] = nl.add(q, r)\n"
            "    q[...] = r",
            "q = nl.add(x, 1.0)\nr[:, 0:16] = q[:, 0:16]",
            "q = nl.add(x[:, 0:16], 1.0)\nr[:, 0:16] = q\nr[:, 16:32] = q",
            "r[...] = nisa.iota(i - j, dtype=nl.float32)",
            "r[i, j] = nisa.affine_select(pred=(i > j), on_true_tile=x, on_false_value=2.0)",
            "r[i, j] = nisa.affine_select(pred=(i > j) & (j > 4), on_true_tile=x, "
            "on_false_value=2.0)",
            "r[i, j] = nisa.affine_select(pred=(i == j), on_true_tile=x, on_false_value=2.0, "
            "mask=(i < 20) & (j < 12))",
            "r[i, j] = nisa.memset((64, 32), 4.0, dtype=nl.float32, mask=(i >= 32))",
        ),
        *_each(
            PSUM,
            "p += nisa.nc_matmul(x, y)\nr = nl.copy(p)",
            "p += nisa.nc_matmul(x, y)\np += nisa.nc_matmul(y, x)\nr = nl.copy(p)",
            "for n in nl.affine_range(2):\n    p += nisa.nc_matmul(x[n * 32 : n * 32 + 32], "
            "y[n * 32 : n * 32 + 32])\nr = nl.copy(p)",
            "p[...] = nisa.nc_matmul(x, y)\nr = nl.copy(p)",
            "r = nl.add(x[0:32], p)\np += nisa.nc_matmul(x, y)\nr = nl.add(r, p)",
            "p[0:16] += nisa.nc_matmul(x[:, 0:16], y)\nr = nl.copy(p)",
            "p[:, 0:16] += nisa.nc_matmul(x, y[:, 0:16])\n"
            "p[:, 16:32] += nisa.nc_matmul(x, y[:, 16:32])\nr = nl.copy(p)",
            "p += nisa.nc_matmul(x, y)\np[:, 0:8] += nisa.nc_matmul(x, y[:, 0:8])\nr = nl.copy(p)",
            "p += nisa.nc_matmul(x, y)\np += 1.0\np += nisa.nc_matmul(x, y)\nr = nl.copy(p)",
            "q = nisa.nc_matmul(x, y)\np += q\nr = nl.add(p, q)",
            "p[...] = 1.0\np += nisa.nc_matmul(x, y)\nr = nl.copy(p)",
            "p += nl.copy(x[0:32])\np += nisa.nc_matmul(x, y)\nr = nl.copy(p)",
            "p += nisa.nc_matmul(x, y)\nr = nl.copy(p)",
            "r = nl.zeros((32, 32), dtype=nl.float32)\nr += nisa.nc_matmul(x, y)\n"
            "r += nisa.nc_matmul(y, x)",
        ),
        "p = nisa.nc_transpose(x)\nr = nl.copy(p)",
        "r = nl.ndarray((32, 64), dtype=nl.float32)\nr[...] = nisa.nc_transpose(x)",
        "r = nl.ndarray((64, 32), dtype=nl.float32)\nr[0:32] = x[0:32]\nr[32:64] = y[0:32]",
        "q = nl.ndarray((64, 2, 2, 2, 2, 2), dtype=nl.float32)\nq[...] = "
        "x.reshape((64, 2, 2, 2, 2, 2))"
        "\nr = nl.add(q[:, :, 0, :, 0, :], 1.0)",
    ),
    "moving": (
        *("r = nl.load(a)", "r = nl.copy(x)", "r = nl.copy(a)", "r = nl.load_transpose2d(a)"),
        *("r = nl.load_transpose2d(a[0:32, 4:20])", "r = nisa.tensor_copy(x)"),
        *("r = nl.load(a[0:1, :])", "r = nl.load(a[:, 0:1])", "r = nl.copy(x[:, 3:4])"),
        *_each(
            SEVENS,
            "r[i, j] = nl.copy(x, mask=(i < 40))",
            "r[i, j] = nl.copy(x, mask=(i >= 40))",
            "r[i, j] = nl.copy(x, mask=(i < j))",
            "r[i, j] = nl.load(a[i, j], mask=(i < j))",
            "q = nl.load(a[i, j], mask=(i < j))\nr[i, j] = q",
            "q = nl.load(a[i, j], mask=(i < 20))\nr[i, j] = q",
            "r[5:9, :] = x[5:9, :]",
            "r[5:9, :] = 1.0",
            "r[33:64, 2:4] = x[1:32, 2:4]",
            "r[...] = r",
            "nisa.tensor_copy_predicated(dst=r, src=x, predicate=nl.greater(x, y))",
        ),
        *_each(
            SCRATCH,
            "nl.store(s, 3.0)",
            "nl.store(s[i, j], y, mask=(i < 20))",
            "nl.store(s[i, j], y, mask=(i < 20) | (j > 20))",
            "nl.store(s[0:32, :], nisa.nc_transpose(y)[:, 0:32])",
            "nl.store(s[3:5, 4:9], 1.0)",
            "s[4:8, :] = x[0:4, :]",
            "s[i, j] = nl.add(x, y)",
            after="\nr = nl.load(s)",
        ),
    ),
    "reductions": (
        *(f"r = nl.{f}(x, axis=1, keepdims=True)" for f in ("sum", "max", "min")),
        *(f"r = nl.{f}(x.reshape((64, 4, 8)), axis=2)" for f in ("sum", "max")),
        "r = nl.sum(x.reshape((64, 4, 8)), axis=2, keepdims=True)",
        *_each(
            "r = nl.full((64, 1), 7.0, dtype=nl.float32)\n",
            *(f"r[...] = nl.{f}(x, axis=1, keepdims=True)" for f in ("sum", "max", "min")),
            *(
                f"r[...] = nl.{f}(x[i, j], axis=1, mask={mask}, keepdims=True)"
                for f in ("sum", "max")
                for mask in ("(i < 32)", "(j < 20)", "(j >= 3)", "(i >= j)", "(i < 20) & (j < 3)")
            ),
        ),
    ),
}
RECORDED = {
    "creation": (
        *(
            f"r = nl.{call}"
            for call in (
                *("zeros((64, 8), nl.float32)", "ones((64, 8), nl.bfloat16)"),
                *("zeros((64, 8), np.float32, name='z')", "full((5, 3), 2.5, nl.float32)"),
                *("full((4, 3), 2.5, dtype=nl.float32, buffer=nl.hbm)", "zeros((64,), nl.float32)"),
                *("ones((4, 3), dtype='float32', buffer=nl.private_hbm)", "zeros(64, nl.float32)"),
                *("ones((64, 8), nl.float32, buffer=nl.psum)", "zeros_like(x)"),
                *("zeros((64, 8), nl.float32, buffer=nl.psum)", "zeros_like(x, dtype=nl.bfloat16)"),
                *("zeros_like(x, buffer=nl.psum)", "zeros_like(a)", "zeros((64.0, 8), nl.float32)"),
                *("zeros((0, 8), nl.float32)", "zeros((64, 1.5), nl.float32)"),
                *("zeros((64, True), nl.float32)", "zeros(('a', 8), nl.float32)"),
                *("zeros((nl.par_dim(64), 8), nl.float32)", "zeros((64, 1), nl.float32)"),
                *("zeros((1, nl.par_dim(64), 8), nl.float32)[0]", "zeros((129, 8), nl.float32)"),
                *("load(nl.shared_identity_matrix(8))", "load(nl.shared_identity_matrix(1))"),
                *("load(nl.shared_identity_matrix(0))", "shared_identity_matrix(1025)"),
                *("shared_identity_matrix(1024)[0:2, 0:3]", "shared_identity_matrix('a')"),
                "load(nl.shared_identity_matrix(8, dtype=nl.float32))",
                "load(nl.shared_constant(np.arange(6, dtype=np.float32).reshape(2, 3)))",
                "load(nl.shared_constant(np.ones((2, 3), np.float32), dtype=nl.bfloat16))",
                "load(nl.shared_constant(np.ones((2, 3), np.float32), dtype=nl.int32))",
                "load(nl.shared_constant(a))",
            )
        ),
        "r = nl.empty_like(x)\nr[...] = 1.0",
        "r = nl.empty_like(a, dtype=nl.bfloat16)\nnl.store(r, x)\nr = nl.load(r)",
        "t = nl.zeros((2, nl.par_dim(64), 8), nl.float32)\nq = nl.zeros_like(t)\nr = q[1]",
        "t = nl.zeros((2, nl.par_dim(64), 8), nl.float32)\nq = nl.empty_like(t, nl.bfloat16)\n"
        "q[0] = 1.0\nr = q[0]",
        "r = nl.ndarray((32, 32), nl.float32, buffer=nl.psum, lazy_initialization=True)\n"
        "r += nisa.nc_matmul(x, y)",
        "r = nl.ndarray((64, 32), nl.float32, lazy_initialization=True)",
        *_each(
            "r = nl.ndarray(",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=64, "
            "base_partition=32, num_free_tiles=(2,)))\n",
            "(4, nl.par_dim(32), 8), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=64, "
            "num_par_tiles=(4,), num_free_tiles=(1,)))\n",
            "(4, nl.par_dim(32), 8), nl.bfloat16, buffer=ncc.sbuf.mod_alloc(base_addr=0))\n",
            "(4, nl.par_dim(32), 8), nl.float32, buffer=ncc.psum.mod_alloc(base_bank=1, "
            "base_addr=64, base_partition=0, num_bank_tiles=(2,), num_par_tiles=(2,), "
            "num_free_tiles=(2,)))\n",
            "(4, nl.par_dim(32), 8), nl.float32, buffer=ncc.psum.mod_alloc(base_bank=2, "
            "base_partition=32, num_bank_tiles=(4,), num_free_tiles=(3,)))\n",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.psum.alloc(lambda idx, pdim_size, "
            "fdim_size: (idx[0] + 1, 0, fdim_size)))\n",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.sbuf.alloc(lambda idx, pdim_size, "
            "fdim_size: (pdim_size, idx[0] * fdim_size)))\n",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.sbuf.alloc(lambda idx, pdim_size, "
            "fdim_size: (0, 0, 1)))\n",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.psum.alloc(lambda idx, pdim_size, "
            "fdim_size: (0, 1)))\n",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.sbuf.alloc(lambda idx, pdim_size, "
            "fdim_size: ('a', 1)))\n",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.sbuf.auto_alloc())\n",
            "(2, nl.par_dim(32), 8), nl.float32, buffer=ncc.psum.auto_alloc())\n",
            after="for n in range(r.shape[0]):\n    r[n] = 1.0\nr = nl.copy(r[0])",
        ),
        "r = nl.ndarray((64, 8), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=128))\n"
        "r[...] = 1.0",
        "r = nl.ndarray((64,), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=128))\nr[...] = 1.0",
        "with ncc.allocation_scope():\n    r = nl.copy(x)\nwith ncc.multi_buffer(2):\n    r += 1.0",
        "nl.device_print('x', x)\nr = x",
        "nl.device_print('x', x, mask=(i < 32))\nr = x",
        "p = nl.zeros((32, 32), nl.float32, buffer=nl.psum)\nnl.device_print('p', p)\nr = x",
    ),
    "dtypes": (
        *(f"r = nl.load(a, dtype=nl.{t})" for t in ("float32", "bfloat16", "int32")),
        *(f"r = nl.copy(x, dtype=nl.{t})" for t in ("float32", "bfloat16", "int32")),
        *(f"r = nl.load_transpose2d(a, dtype=nl.{t})" for t in ("float32", "bfloat16")),
        *(f"r = nl.static_cast(x, nl.{t})" for t in ("float32", "float16")),
        *("r = x.astype(nl.bfloat16)", "r = nl.add(x, nl.static_cast(3, nl.float32))"),
        *(
            f"r = nl.ndarray((64, 32), dtype=nl.{kind})\nr[...] = {call}"
            for kind in ("float32", "bfloat16", "float16", "int32", "uint8")
            for call in (
                *("nl.add(x, y)", "nl.load(a)", "nl.copy(x)", "nl.copy(x, dtype=nl.bfloat16)"),
                *("nl.zeros((64, 32), nl.int32)", "nl.full((64, 32), 3.0, nl.float32)", "2.5"),
                *("nisa.nc_matmul(nisa.nc_transpose(x), y[0:32, :])", "nl.greater(x, y)"),
            )
        ),
        *(
            f"r = nl.ndarray((64, 32), dtype=nl.{kind})\nr[i, j] = {call}"
            for kind in ("float32", "bfloat16")
            for call in (
                *("nl.copy(x, mask=(i < j))", "nl.add(x, y, mask=(i < j))"),
                *("nl.load(a[i, j], mask=(i < j))", "nl.copy(x, dtype=nl.bfloat16, mask=(i < j))"),
            )
        ),
    ),
    "moving": (
        *_each(
            SCRATCH,
            "nisa.dma_copy(dst=s, src=y)",
            "nisa.dma_copy(dst=s[0:32, :], src=y[32:64, :])",
            "nisa.dma_copy(dst=s, src=y[:, 0:1])",
            "nisa.dma_copy(dst=s.reshape((32, 64)), src=b)",
            "nisa.dma_copy(dst=s, src=b, mask=(i < 20))",
            "nisa.dma_copy(dst=s[i, j], src=b[i, j], mask=(i < 20))",
            "nisa.dma_copy(dst=s[i, j], src=b[i, j], mask=(i < j))",
            "nisa.dma_copy(dst=s[i, j], src=b[i, j], mask=(i > 100))",
            "nisa.dma_copy(dst=s, src=y, dst_rmw_op=np.add)",
            "nisa.dma_copy(dst=s[i, j], src=y[i, j], dst_rmw_op=np.add, mask=(i < 20))",
            "nisa.dma_copy(dst=s[i, j], src=y[i, j], dst_rmw_op=np.add, mask=(i < j))",
            "nisa.dma_copy(dst=s[0:32, 0:5], src=y[0:32, 0:6])",
            "nisa.dma_copy(dst=s, src=y, oob_mode=nisa.oob_mode.skip)",
            "nl.store(s[0:32, :], y)",
            "nl.store(s[0:32, :], y[:, 0:16])",
            "nl.store(s.reshape((32, 64)), y[0:32, :])",
            "nl.store(s[3, :], y[5, :])",
            "nl.store(s[3, 4], y[5, 6])",
            "nl.store(s[3, 4], 1.0)",
            "nl.store(s[3, :], 1.0)",
            "nl.store(s, 'a')",
            "nl.store(s[i, j], y, mask=(i > 100))",
            "nl.store(s[i + 1, j], y)",
            "nl.store(s[i - 1, j], y)",
            "nl.store(s[i, j], y[i, j + 1])",
            "nl.store(s[i, j], y[i, j + 1], mask=(j < 31))",
            "nl.store(s[i, j], y[i, j + 1], mask=(j < 32))",
            "nl.atomic_rmw(s, y, np.add)",
            "nl.atomic_rmw(s[i, j], y[i, j], np.add, mask=(i < 20))",
            "nl.store(s, nl.load(a[i, j], mask=(i > 100)))",
            "s[...] = 1.0",
            "s[i, j + 1] = y",
            "s[...] = y[:, 0:1]",
            "s[...] = y[0:32, :]",
            after="\nr = nl.load(s)",
        ),
        *("r = nl.load(a[i + 1, j])", "r = nl.load(a[i - 1, j])", "r = nl.load(a[i, j + 1])"),
        *(
            "r = nl.load(a[5, 6])",
            "r = nl.load(a[5])",
            "r = nl.load(a[5, :])",
            "r = nl.load(a[:, 6])",
        ),
        *("r = nl.load(x)", "r = nl.load(3.0)", "r = nl.load('a')", "r = nl.load(a[64, 0:4])"),
        *("r = nl.load(a.reshape((2, 32, 32)))", "r = nl.load(a.reshape((128, 16)))"),
        *("r = nl.load(a.reshape((256, 8)))", "r = nl.load(a.reshape((2048,))[0:128])"),
        *("r = nl.load(a.reshape((2048,))[0:129])", "r = nl.load_transpose2d(a[5])"),
        "r = nl.load_transpose2d(a.reshape((8, 8, 32)))",
        "r = nl.load_transpose2d(a[i, j], mask=(i < 20))",
        "r = nl.ndarray((32, 64), nl.float32)\nr[...] = 7.0\n"
        "r[0:32, 0:20] = nl.load_transpose2d(a[i, j], mask=(i < 20))[0:32, 0:20]",
        "r = nl.load_transpose2d(a[i, j], mask=(i > 100))",
        "r = nl.copy(x, engine=nisa.vector_engine)",
        "r = nisa.tensor_copy(x, engine=nisa.scalar_engine)",
        "r = nl.copy(x[i, j + 1])",
        "r = nl.copy(x[i, j + 1], mask=(j < 31))",
        *("r = nisa.dma_transpose(a)", "r = nisa.dma_transpose(a, axes=(1, 0))"),
        *("r = nisa.dma_transpose(a, dtype=nl.bfloat16)", "r = nl.copy(x, mask=(i > 100))"),
        *_each(
            SEVENS,
            "r[0:4] = x[1:5]",
            "r[...] = x[:, 0:1]",
            "r[...] = x[0:1, :]",
            "r[...] = x[0:32, :]",
            "r[...] = 'a'",
            "r[i, j + 1] = x",
            "r[i, j - 1] = x",
            "r[i, j + 1] = 1.0",
            "r[i, j + 1] = nl.add(x, y, mask=(j < 31))",
            "r[i, j + 1] = nl.add(x, y, mask=(j < 32))",
            "r[0:63, :] = x[1:64, :]",
            "r[1:64, :] = 1.0",
            "r[0:1, :] = x[3:4, :]",
            "q = nl.load(a[i, j], mask=(i > 100))\nr[...] = q\nr = nl.copy(x)",
            "r[...] = nl.load(a).reshape((64, 32, 1))[:, :, 0]",
            "r[:, 0:8] = nl.add(x, y, mask=(j < 8))",
            "r[i, 0, j] = x",
            "nisa.tensor_copy_predicated(dst=r, src=x, predicate=nl.greater(x, y), mask=(i < 20))",
            "nisa.tensor_copy_predicated(dst=r[i, j], src=x, predicate=nl.greater(x, y)[i, j], "
            "mask=(i < 32))",
            "nisa.tensor_copy_dynamic_dst(dst=r, src=x)",
            "nisa.tensor_copy_dynamic_dst(dst=r, src=x, dtype=nl.bfloat16)",
        ),
        "t = nl.zeros((2, 64, 32), nl.float32)\nt[0] = x\nr = x",
        "t = nl.zeros((2, nl.par_dim(64), 32), nl.float32)\nr = nl.copy(t)",
        "t = nl.zeros((2, nl.par_dim(64), 32), nl.float32)\nr = nl.copy(t[2])",
        "t = nl.zeros((2, nl.par_dim(64), 32), nl.float32)\nt[:] = x\nr = x",
        "t = nl.zeros((2, nl.par_dim(64), 32), nl.float32)\nt[1:2] = x\nr = t[-1]",
        "t = nl.zeros((2, 2, nl.par_dim(64), 4), nl.float32)\nt[1, 0] = x[:, 0:4]\n"
        "r = nl.copy(t.reshape((4, 64, 4))[2])",
        "t = nl.zeros((2, 2, nl.par_dim(64), 4), nl.float32)\nr = t.reshape((4, 32, 8))",
        "t = nl.zeros((2, nl.par_dim(64), 4), nl.float32)\nr = t.view(nl.int32)[1]",
        "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nr = nl.copy(x[:, n])",
        "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nr = nl.load(b[n + 1, j])",
        "n = nl.load(a[0:8, 0:1], dtype=nl.int32)\nr = nl.load(b[n, j])",
        "n = nl.load(a[0:8, 0:1], dtype=nl.int32)\n"
        "r = nl.load(b[n, j], mask=(nl.arange(8)[:, None] < 5))",
        "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nr = nl.load(b[nl.ds(n, 4), 0:8])",
        "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nr = nl.full((64, 32), 7.0, nl.float32)\n"
        "r[:, nl.ds(n, 4)] = x[:, 0:4]",
        "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nr = nl.full((64, 32), 7.0, nl.float32)\n"
        "r[:, nl.ds(n, 4)] = nl.add(x[:, 0:4], 1.0)",
    ),
}

_MASKS = ("i < 20", "i >= 40", "j < 20", "(i < 9) & (j >= 3)", "i >= j", "(i == 5) | (j < 3)")
_CALLS = (
    *("activation(op=np.exp, data=x{})", "activation(np.exp, x, bias=y[:, 0:1], scale=2.0{})"),
    *("activation(np.exp, x, scale=y[:, 1:2]{})", "tensor_tensor(x, y, np.add{})"),
    *("tensor_scalar(x, np.add, 1.0{})", "tensor_scalar(x, np.add, y[:, 0:1]{})"),
    "tensor_scalar(x, np.subtract, 1.0, reverse0=True, op1=np.multiply, operand1=y[:, 0:1]{})",
    "scalar_tensor_tensor(data=x, op0=np.add, operand0=y[:, 0:1], op1=np.add, operand1=y{})",
    *("tensor_tensor_scan(x, y, 0, np.multiply, np.add{})", "reciprocal(x{})"),
    *("tensor_tensor_scan(x, y, x[:, 0:1], np.multiply, np.add{})", "dropout(x, 0.5{})"),
    *("bn_stats(x{})", "max8(src=x{})", "nc_find_index8(data=x, vals=y[:, 0:8]{})"),
    "nc_match_replace8(data=x, vals=y[:, 0:8], imm=0.0{})",
    *("tensor_copy(x{})", "nc_transpose(x{})", "tensor_reduce(np.add, x, axis=1{})"),
    "tensor_reduce(np.max, x, axis=1, negate=True, keepdims=True{})",
    *("tensor_partition_reduce(np.add, x{})", "iota(2 * i - j + 3, dtype=nl.int32{})"),
    "affine_select(pred=i > j, on_true_tile=x, on_false_value=1.0{})",
    "affine_select(pred=(i > j) & (j != 4), on_true_tile=x, on_false_value=1.0{})",
    *("memset((64, 32), 2.0, dtype=nl.float32{})", "nc_matmul(x, y{})"),
    "range_select(on_true_tile=x, comp_op0=np.greater_equal, comp_op1=np.less, bound0=y[:, 0:1], "
    "bound1=y[:, 1:2], reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_op=np.max, "
    "reduce_res=w{})",
    "activation_reduce(np.exp, x, reduce_op=np.add, reduce_res=w{})",
    "tensor_scalar_reduce(data=x, op0=np.add, operand0=1.0, reduce_op=np.add, reduce_res=w{})",
)
_STATEMENTS = (
    "nisa.select_reduce(dst=r, predicate=nl.greater(x, y), on_true=x, on_false=2.0{})",
    "nisa.tensor_copy_predicated(dst=r, src=x, predicate=nl.greater(x, y){})",
    "nisa.tensor_copy_predicated(dst=r, src=3.0, predicate=nl.greater(x, y), reverse_pred=True{})",
    "nisa.nc_stream_shuffle(src=x, dst=r, shuffle_mask=[*range(31, -1, -1)]{})",
    "nisa.nc_stream_shuffle(src=x[0:1], dst=r, shuffle_mask=[0] * 32{})",
    "nisa.tensor_copy_dynamic_dst(dst=r, src=x{})",
    "nl.store(s, x{})",
)
_W = "w = nl.ndarray((64, 1), nl.float32)\n"
RECORDED["isa"] = (
    *(
        f"{_W if 'res=w' in call else ''}r = nisa.{call.format(more)}"
        for call in _CALLS
        for more in ("", *(f", mask={mask}" for mask in _MASKS), ", dtype=nl.bfloat16")
        if "dtype" not in call or "dtype" not in more
    ),
    *(
        SEVENS + (SCRATCH if "(s," in call else "") + call.format(f", mask={mask}" if mask else "")
        for call in _STATEMENTS
        for mask in ("", *_MASKS)
    ),
    *(
        f"r = nisa.{call}"
        for call in (
            *("nc_matmul(x, y, is_stationary_onezero=True)", "nc_matmul(x[:, 0:1], y)"),
            *(
                "nc_matmul(x, y[:, 0:1], tile_position=(0, 0), tile_size=(64, 32))",
                "nc_matmul(x, x)",
            ),
            *("nc_matmul(nisa.nc_transpose(x), nisa.nc_transpose(y))", "nc_matmul(3.0, y)"),
            *("nc_matmul(x.reshape((64, 4, 8)), y)", "nc_matmul(x, y.reshape((64, 4, 8)))"),
            *("nc_matmul(x[i < 40], y)", "nc_matmul(x[j < 9], y)", "nc_matmul(x, y[i >= 3])"),
            *("nc_matmul(x[i < 40], y[i >= 20])", "nc_matmul(x[i < 9], y[i >= 20])"),
            *("nc_matmul(x[i < j], y)", "nc_matmul(x[j < 9], y[j >= 3], mask=i < 33)"),
            *(
                "nc_matmul(x, y, mask=(i < 40))",
                "nc_matmul(x[i < 99], y)",
                "nc_matmul(x[j > 99], y)",
            ),
            *(
                "nc_matmul(x[i, k], y[i, j], mask=(k < 9))",
                "nc_matmul(x[i, k], y[i, j], mask=k < j)",
            ),
            *("nc_matmul(x[i, k], y[i, j], mask=(i < k))", "nc_transpose(x, dtype=nl.bfloat16)"),
            *("nc_transpose(x, engine=nisa.vector_engine)", "nc_transpose(x[:, 0:1])"),
            *(
                "nc_transpose(x.reshape((64, 4, 8)))",
                "nc_transpose(nl.zeros((64, 129), nl.float32))",
            ),
            *(
                "nc_transpose(nl.zeros((64, 128), nl.float32))",
                "nc_transpose(nisa.nc_transpose(x))",
            ),
            *(
                "tensor_reduce(np.add, x.reshape((64, 4, 8)), axis=1)",
                "tensor_reduce(np.add, x, 0)",
            ),
            *(
                "tensor_reduce(np.add, x.reshape((64, 4, 8)), axis=2)",
                "tensor_reduce(np.add, x, 2)",
            ),
            *(
                "tensor_reduce(np.add, x.reshape((64, 4, 8)), axis=(1, 2))",
                "tensor_reduce(np.add, x, ())",
            ),
            *(
                "tensor_reduce(np.add, x.reshape((64, 4, 8)), axis=[1])",
                "tensor_reduce(np.add, x, -1)",
            ),
            "tensor_reduce(np.add, x.reshape((64, 4, 8)), axis=1, keepdims=True)",
            "tensor_reduce(np.add, x.reshape((64, 2, 2, 8)), axis=(1, 3))",
            "tensor_reduce(np.add, x.reshape((64, 2, 2, 8)), axis=2, keepdims=True)",
            *("iota(5, dtype=nl.int32)", "iota(j, dtype=nl.int32)", "iota('a', dtype=nl.int32)"),
            *(
                "iota(i, dtype=nl.float32)",
                "affine_select(True, x, 1.0)",
                "affine_select(False, x, 1.0)",
            ),
            *("affine_select(i < 3, nisa.nc_transpose(x), 1.0)", "affine_select(3, x, 1.0)"),
            *("affine_select((i < 3) | (j > 4), x, 1.0)", "memset((64,), 2.0, nl.float32)"),
            *(
                "memset((64, 8), 2, nl.int32, engine=nisa.vector_engine)",
                "memset((64, 0), 2, nl.int32)",
            ),
            *(
                "sequence_bounds(segment_ids=x)",
                "bn_aggr(nisa.bn_stats(x))",
                "tensor_tensor(x, 3, np.add)",
            ),
            *("tensor_tensor(x, y[0:1], np.add)", "tensor_tensor(x, y[:, 0:1], np.add)"),
            *("tensor_tensor(x, nisa.nc_transpose(y)[0:32], np.add)", "tensor_tensor(x, y, 'add')"),
            *("tensor_tensor(x[0:32], nisa.nc_matmul(x, y), np.power)", "tensor_scalar(x, np.add)"),
            "tensor_tensor(nisa.nc_matmul(x, y), nisa.nc_matmul(y, x), np.add)",
            "tensor_tensor(x, y, np.add, np.add, op=np.add)",
            "local_gather(x, nl.ndarray((64, 2), nl.uint16), 1)",
            "local_gather(x, nl.zeros((64, 2), nl.uint16), 2, 8)",
            "local_gather(x, nl.zeros((64, 2), nl.uint16), mask=i < 3)",
            "dma_transpose(a.reshape((2, 4, 8, 32)))",
            "dma_transpose(a.reshape((64, 4, 8)))",
            "dma_transpose(a.reshape((64, 1, 4, 8)), axes=(3, 1, 2, 0))",
            "dma_transpose(a[i, j], mask=i < 20)",
            "dma_transpose(a[i, j], mask=i > 100)",
        )
    ),
)
_ROW, _COLUMN, _CUBE = "y[0:1, :]", "y[:, 3:4]", "x.reshape((64, 4, 8))"
RECORDED["functions"] = (
    *(
        f"r = nl.{name}({first}, {second})"
        for name in ("add", "subtract", "divide", "power", "maximum", "greater", "bitwise_and")
        for first, second in (
            *(("x", "y"), ("x", "2.0"), ("2.0", "x"), ("x", _ROW), (_ROW, "x"), ("x", _COLUMN)),
            *((_COLUMN, "x"), (_CUBE, "y[:, 0:8]"), (_CUBE, _COLUMN), ("2", "3"), ("x", "y[0:32]")),
            *(("nisa.nc_matmul(x, y)", "x[0:32]"), ("x[0:32]", "nisa.nc_matmul(x, y)")),
            ("nisa.nc_matmul(x, y)", "nisa.nc_matmul(y, x)"),
        )
    ),
    *(
        f"r = nl.{name}(x, {second}, mask={mask})"
        for name in ("add", "divide", "power", "less", "logical_or")
        for second in ("y", "2.0", _COLUMN)
        for mask in _MASKS[:5]
    ),
    *(
        f"r = nl.{name}({given})"
        for name in (
            "exp",
            "sqrt",
            "square",
            "negative",
            "logical_not",
            "gelu",
            "softplus",
            "invert",
        )
        for given in ("x", "nisa.nc_matmul(x, y)", "x, mask=i < 20", "x, mask=i < j", "3.0")
    ),
    *(
        f"r = nl.{call}"
        for call in (
            *("where(x > y, x, y)", "where(x > y, 1.0, 2.0)", "where(x > y, x[:, 0:1], y)"),
            *("where(x > y, 1.0, y)", "where(x, y, 0.0, dtype=nl.bfloat16)", "where(1, x, y)"),
            *("where(x > y, x, y, mask=i < j)", "where(x > y, x, y, mask=i < 20)"),
            *("broadcast_to(x[0:1, :], shape=(64, 32))", "broadcast_to(x[:, 0:1], shape=(64, 32))"),
            *("broadcast_to(x, shape=(64, 2, 32))", "broadcast_to(x, shape=(32, 32))"),
            *("load(a[0:1, :].broadcast_to((64, 32)))", "load(a[:, 0:1].broadcast_to((64, 4)))"),
            *("expand_dims(x, 1)", "expand_dims(x, 2)", "expand_dims(x, -1)", "expand_dims(x, 0)"),
            *(
                "copy(x.expand_dims((1, 2)))",
                "copy(x.reshape((-1, 32)))",
                "copy(x.reshape(64, 2, -1))",
            ),
            *("copy(x.reshape((32, 64)))", "copy(x.reshape((2048,)))", "copy(x.view(nl.int32))"),
            *(
                "copy(x.view(nl.bfloat16))",
                "copy(x[:, 0].reshape((64,)))",
                "copy(x[:, 0:1].reshape((64,)))",
            ),
            *(
                "copy(x.assert_shape((64, 32)))",
                "copy(x.assert_shape((64, 31)))",
                "copy(x.as_tile())",
            ),
            *("matmul(x, y)", "matmul(x, nl.transpose(y))", "matmul(x, y, transpose_x=True)"),
            *(
                "matmul(x, y[0:32, :])",
                "matmul(x, y, transpose_x=True, mask=j < 9)",
                "transpose(x)",
            ),
            *("transpose(x, dtype=nl.bfloat16)", "transpose(x, mask=i < 20)", "softmax(x, axis=1)"),
            *(
                "softmax(x, axis=-1, compute_dtype=nl.bfloat16)",
                "softmax(x, axis=0)",
                "var(x, axis=1)",
            ),
            *("rms_norm(x, y[0:1, :], axis=1, n=32)", "rms_norm(x, y, axis=1, n=32, epsilon=0.5)"),
            *(
                "mean(x, axis=1)",
                "mean(x, axis=1, dtype=nl.bfloat16)",
                "mean(x, axis=1, mask=j < 9)",
            ),
            *(
                "mean(x, axis=1, mask=i < j)",
                "mean(x.reshape((64, 4, 8)), axis=(1, 2))",
                "mean(x, 0)",
            ),
            *(
                "var(x, axis=1, mask=j < 9)",
                "all(x, axis=1)",
                "prod(x, axis=1)",
                "sum(x, axis=(1,))",
            ),
            *(
                "rand((64, 8))",
                "rand((64, 8), dtype=nl.bfloat16)",
                "dropout(x, 0.5)",
                "dropout(x, 2)",
            ),
            *("dropout(x, y[:, 0:1])", "mod(x, y)", "fmod(x, 3.0)", "mod(x, 3.0, mask=i < j)"),
            "gather_flattened(x, nl.zeros((64, 4), nl.uint32))",
        )
    ),
    *_each(
        SEVENS,
        *(
            "r += y[0:1, :]",
            "r += y[:, 0:1]",
            "r -= 1.0",
            "r *= nisa.nc_transpose(nl.transpose(x))",
        ),
        *("r[0:32] += nisa.nc_matmul(x, y)", "r /= y", "r += y[0:32]", "r **= 2.0", "r &= y"),
        *("r[i, j] += nl.add(x, y, mask=i < 20)", "r[i, j] += nl.add(x, y, mask=i < j)"),
    ),
)
_LOOPS = """s = nl.ndarray((4, 64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
for n in nl.{}(4):
    """
RECORDED["loops"] = (
    *(
        before + _LOOPS.format(loop) + body + after
        for loop in ("affine_range", "sequential_range", "static_range")
        for before, body, after in (
            ("", "nl.store(s[n], nl.add(x, n))", "\nr = x"),
            (SEVENS, "r[...] = nl.add(r, x)", ""),
            (SEVENS, "r += x", ""),
            (SEVENS, "r[:, n : n + 1] = x[:, n : n + 1]", ""),
            (SEVENS, "r[:, n + 1 : n + 2] = r[:, n : n + 1]", ""),
            (SEVENS, "r[:, n : n + 2] = nl.add(r[:, n : n + 2], 1.0)", ""),
            (SEVENS, "r[i, j] = nl.copy(x, mask=j < n)", ""),
            (SEVENS, "r[i, j] = nl.copy(x, mask=i + n < 40)", ""),
            (
                "",
                "r = nl.loop_reduce(nl.add(x, n), op=np.add, loop_indices=[n], dtype=nl.float32)",
                "",
            ),
            ("", "r = nl.loop_reduce(x, op=np.max, loop_indices=[n], dtype=nl.float32)", ""),
            (
                "",
                "r = nl.loop_reduce(x, op=np.add, loop_indices=[n], dtype=nl.float32, mask=i < 20)",
                "",
            ),
            (
                "",
                "t = nl.add(x, n)\n    nl.store(s[n], t)\n    nl.store(s[n, 0:32], t[32:64])",
                "\nr = x",
            ),
            (PSUM, "p += nisa.nc_matmul(x, y)", "\nr = nl.copy(p)"),
            (PSUM, "p[...] = nisa.nc_matmul(x, y)\n    nl.store(s[n, 0:32], p)", "\nr = x"),
            ("", "nl.store(s[n, i, j], x, mask=n * 16 + i < 50)", "\nr = x"),
            ("", "nl.store(s[0], nl.load(s[3]))", "\nr = x"),
            ("", "nl.store(s[n + 1], x)", "\nr = x"),
        )
    ),
    *_each(
        "for n in nl.affine_range(2):\n    for m in nl.affine_range(3):\n        ",
        "r = nl.loop_reduce(nl.add(x, n * m), op=np.add, loop_indices=[n, m], dtype=nl.float32)",
        "q = nl.loop_reduce(nl.add(x, n * m), op=np.add, loop_indices=[m], dtype=nl.float32)\n"
        "    r = nl.loop_reduce(q, op=np.add, loop_indices=[n], dtype=nl.float32)",
    ),
    "for n in nl.affine_range(1, 9, 3):\n    r = nl.add(x, n)",
    "for n in nl.affine_range(0):\n    r = nl.add(x, n)\nr = x",
    "t = nl.zeros((4, nl.par_dim(64), 32), nl.float32)\nfor n in nl.affine_range(4):\n"
    "    t[n] = nl.add(x, n)\nfor n in nl.affine_range(4):\n    r = nl.add(t[n], 1.0)",
    "t = nl.zeros((4, nl.par_dim(64), 32), nl.float32)\nfor n in nl.affine_range(4):\n"
    "    t[n, i, j] = nl.add(x, n, mask=(n * 16 + j < 40))\nr = nl.copy(t[3])",
)
RECORDED["indices"] = (
    *(
        f"r = nisa.iota({expression}, dtype=nl.int32)"
        for expression in (
            *(
                "i + j",
                "i - j",
                "3 * i",
                "j * 2 + i",
                "5 - i",
                "-j",
                "i * 1 + 0",
                "j[:, 3:9]",
                "j[0:1]",
            ),
            *(
                "j[:, 1:20:3]",
                "j[0, None, 2:5]",
                "i[5:9] + j",
                "i[..., None] + j",
                "i[3] + j",
                "4 * j // 2",
            ),
            *(
                "j // 32",
                "(j + 32) // 32",
                "(8 * i + 3) % 4",
                "j % 32",
                "(j + 33) % 64",
                "j // 3",
                "j % 5",
            ),
            *(
                "j // 0",
                "j % -2",
                "i * j",
                "i * 2 * j[:, 0:1]",
                "j + 1.5",
                "j[0, 40]",
                "j[0, -1:]",
                "j[0, 0, 0]",
            ),
            *(
                "nl.arange(3, 9)[None, :]",
                "nl.arange(3, 20, 5)[None, :]",
                "nl.arange(9, 3)[None, :]",
            ),
            *("nl.arange(1.5)", "nl.arange()", "nl.arange(1, 2, 3, 4)", "nl.arange(1)[:, None]"),
            *(
                "nl.arange(5)",
                "nl.mgrid[0:4, 0:8].p",
                "nl.mgrid[0:4, 2:8].x",
                "nl.mgrid[0:4, 0:8].y",
            ),
            *(
                "nl.mgrid[0:4, 0:2, 3:8].y",
                "nl.mgrid[0:4][0]",
                "nl.mgrid[4, 5]",
                "nl.mgrid[0:4:2, 0:9:3].x",
            ),
            *(
                "i + nl.arange(3)[None, :]",
                "i.reshape((64, 1, 1)) + j",
                "i.reshape((32, 2))",
                "nl.arange(64) + i",
            ),
            *(
                "j.expand_dims(0)",
                "j.expand_dims(1)",
                "j.expand_dims(-1)",
                "j + nl.arange(31)[None, :]",
            ),
        )
    ),
    *(
        f"r = nl.add(x, 1.0, mask={mask})"
        for mask in (
            *(
                "i < 0",
                "i < 1",
                "i <= 31",
                "i < 32",
                "i < 33",
                "i > 31",
                "i >= 32",
                "i > 62",
                "i >= 64",
            ),
            *(
                "j == 4",
                "j != 4",
                "i == 33",
                "(i < 40) & (i >= 32)",
                "(j > 3) & (j < 9)",
                "~(j > 3)",
            ),
            *(
                "~((i < 3) & (j < 4))",
                "(i < 3) | (i > 60)",
                "(j < 3) | (j > 5)",
                "i + j < 20",
                "j - i >= 0",
            ),
            *(
                "2 * j < 9",
                "3 * j >= 10",
                "40 - i > 8",
                "i * 32 + j < 100",
                "i - 2 * j == 3",
                "i - 2 * j != 3",
            ),
            *(
                "True",
                "False",
                "3",
                "'a'",
                "(i < 3) & True",
                "k < 9",
                "h < 9",
                "h + k < 20",
                "i < j + 100",
            ),
            *(
                "(i < 40) & (i + j < 20)",
                "(i + j < 90) & (i - j < 10)",
                "nl.arange(64) < 3",
                "x > 3",
            ),
        )
    ),
)
