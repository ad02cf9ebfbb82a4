"""Bodies of Beta 1 kernels, by subject: over tiles `x` and `y` of 64 rows and 32 columns, the
tensors `a` and `b` that they were loaded from, and indices `i`, `j`, `h`, `k`, they leave `r`.

Those of MODELLED are also run by the model in NumPy; what all of them record is on the pages.
More subjects are in `calls`.
"""

from __future__ import annotations

SEVENS = "r = nl.full((64, 32), 7.0, dtype=nl.float32)\n"
SCRATCH = "s = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)\nnl.store(s, x)\n"
PSUM = "p = nl.zeros((32, 32), dtype=nl.float32, buffer=nl.psum)\n"
BLOCKS = "t = nl.zeros((3, nl.par_dim(64), 32), dtype=nl.float32)\n"


def each(before: str, *bodies: str, after: str = "") -> tuple[str, ...]:
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
        *each(
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
        *each(
            SCRATCH,
            *("nl.store(s[i, 31 - j], y)", "nl.store(s[2 * h, j], y[0:32, :])"),
            *("nl.store(s[h + 32, 2 * k], y[0:32, 0:16])", "nl.store(s[5:9], y[0:4, :])"),
            "nl.store(s[i + 60, j], y, mask=(i < 4))",
            "nl.store(s[i, j], y, mask=(j >= i))",
            "nl.store(s[i, j - 4], y, mask=(j >= 4) & (i < 9))",
            after="\nr = nl.load(s)",
        ),
        *each(
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
        *each(
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
        *each(
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
        *each(
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
        *each(
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
        *each(
            "r = nl.full((64, 1), 7.0, dtype=nl.float32)\n",
            *(f"r[...] = nl.{f}(x, axis=1, keepdims=True)" for f in ("sum", "max", "min")),
            *(
                f"r[...] = nl.{f}(x[i, j], axis=1, mask={mask}, keepdims=True)"
                for f in ("sum", "max")
                for mask in ("(i < 32)", "(j < 20)", "(j >= 3)", "(i >= j)", "(i < 20) & (j < 3)")
            ),
        ),
    ),
    "deep": each(
        "q = nl.full((64, 3, 3, 3, 3, 3), 1.0, dtype=nl.float32)\n"
        "q[:, 0:2, 1:3, 0:2, 1:3, 0:2] = x.reshape((64, 2, 2, 2, 2, 2))\n",
        "r = nl.add(q[:, 0:2, 0:2, 0:2, 0:2, 0:2], 1.0)",
        "r = nl.multiply(q[:, 1:3, 0:2, 1:3, 0:2, 1:3], q[:, 0:2, 1:3, 0:2, 1:3, 0:2])",
        "r = nl.copy(q[0:32, 0:1, 1:3, 0:2, 1:3, 0:2])",
        "r = nl.copy(q[0:1, 0:2, 1:3, 0:2, 1:3, 0:2])",
        "q[:, 1:3, 0:2, 1:3, 0:2, 1:3] = nl.add(q[:, 0:2, 1:3, 0:2, 1:3, 0:2], 2.0)\nr = q",
        "q[:, 1:3, 0:2, 1:3, 0:2, 1:3] = 5.0\nr = q",
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
        *each(
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
            "(2, nl.par_dim(32), 4, 8), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=64, "
            "num_free_tiles=(2,)))\n",
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
        *each(
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
        *each(
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
    "emit": (
        *(
            f"r = nl.full((64, 32), 7.0, dtype=nl.float32)\nq = {call}\nr[...] = q\n{then}"
            for call in ("nl.add(x, y, mask=i < 32)", "nl.add(x, y)", "nl.copy(x, mask=i < j)")
            for then in (
                *(
                    "r = nl.add(r, q)",
                    "r[...] = 1.0\nr = nl.add(q, 1.0)",
                    "r = nl.add(q[:, 3:9], 1.0)",
                ),
                *(
                    "q[...] = 2.0",
                    "q[0:32] = 2.0\nr = nl.add(q, r)",
                    "q += 1.0\nr = nl.add(r, 1.0)",
                ),
            )
        ),
        *(
            f"{PSUM}{first}\n{then}\nr = nl.copy(p)"
            for first in (
                *("p += nisa.nc_matmul(x, y, mask=k < 9)", "p += nisa.nc_matmul(x[i, j], y)"),
                *("p += nisa.nc_matmul(x[j < 9], y)", "p[0:9] += nisa.nc_matmul(x[:, 0:9], y)"),
                *("q = nisa.nc_matmul(x, y)\np += q\np += q", "p[...] = nisa.nc_matmul(x, y)"),
                *("p += nisa.nc_matmul(x[h < j], y)", "p[:, 3:9] += nisa.nc_matmul(x, y[:, 3:9])"),
            )
            for then in (
                *("p += nisa.nc_matmul(y, x)", "p += nisa.nc_matmul(x[j < 4], y)", "p += x[0:32]"),
                *("p[:, 0:5] += nisa.nc_matmul(x, y[:, 0:5])", "p *= 2.0"),
            )
        ),
    ),
    "columns": each(
        "c = nl.arange(64)\nq = nl.zeros((64,), nl.float32)\n",
        *(f"r = nl.add(q, 1.0, mask={mask})" for mask in ("c < 20", "c >= 40", "c != 3")),
        *(f"r = nisa.affine_select({test}, q, 1.0)" for test in ("c < 3", "c >= 9", "c == 4")),
        *("q[0:32] = 1.0\nr = q", "q[c] = nl.add(q, 1.0, mask=c != 3)\nr = q", "r = nl.exp(q)"),
        *("r = nl.load(a[:, 0])", "r = nl.load(a[c, 0])", "q[...] = nl.load(a[:, 3])\nr = q"),
        *("r = nl.add(q, x[:, 0:1])", "r = nl.add(x, q)", "r = nisa.tensor_scalar(x, np.add, q)"),
        *("q[c] = nl.copy(q, mask=(c < 9) | (c > 60))\nr = q", "r = q.reshape((64, 1, 1))"),
        "t = nl.zeros((2, nl.par_dim(64)), nl.float32)\nt[0] = q\nt[1] += 1.0\nr = t[1]",
    ),
}
