"""Bodies of Beta 1 kernels, in the style of `bodies`, whose programs are rewritten when they are
complete: tiles that overflow SBUF, tiles that are overwritten as a whole, rows that all partitions
get, and results that are used after they have been assigned. Those of WHOLE are also run by the
model in NumPy.
"""

from __future__ import annotations

from tests.beta1.bodies import PSUM, SEVENS, each

LARGE = "t = [nl.full((1, 8192), {}, dtype=nl.float32) for n in range({})]\n"
SUM = "q = nl.full((1, 8192), 2.0, dtype=nl.float32)\n"
ADD = "q[...] = nl.add(q, t[n])\n"
OVER = (
    "t = nl.ndarray((64, 32), dtype=nl.float32)\nr = nl.zeros((64, 32), dtype=nl.float32)\n"
    "t[...] = nl.add(x, 1.0)\nr[...] = nl.add(r, t)\n"
)
BANKS = "p = [nl.full((64, 512), 1.0 * n, dtype=nl.float32, buffer=nl.psum) for n in range({})]\n"
ROW = "q = nl.broadcast_to(x[0:1, :], shape=(64, 32))\n"

WHOLE = {
    "spills": (
        *each(
            LARGE.format("1.0 * n", 6) + SUM,
            *(
                f"for n in {order}:\n    {ADD}" + "r = nl.copy(q[:, 0:4])"
                for order in ("range(6)", "[5, 4, 3, 2, 1, 0]", "[0, 1, 2, 3, 4, 5, 0, 1, 5, 2]")
            ),
            # a tile that was loaded again is not stored again, unless it has changed
            "for n in [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]:\n    t[n][...] = nl.add(t[n], 1.0)\n"
            "    " + ADD + "r = nl.copy(q[:, 0:4])",
            "for n in [0, 1, 2, 3, 4, 5, 0, 5, 1, 4]:\n    t[n][:, 0:8] = 3.0\n"
            "    " + ADD + "r = nl.copy(q[:, 0:9])",
            "q[...] = nl.add(t[5], t[4])\nq[...] = nl.add(nl.multiply(t[3], t[2]), t[1])\n"
            "t[0][...] = nl.add(t[1], t[3])\nr = nl.add(t[0][:, 0:3], nl.add(q, t[5])[:, 0:3])",
        ),
        LARGE.format("1.0 * n", 5) + "s = [nl.full((2, 512), 0.5 * n, dtype=nl.float32) "
        "for n in range(9)]\n" + SUM + "for n in range(5):\n    " + ADD + "    "
        "q[0:1, 0:512] = nl.add(q[0:1, 0:512], s[n][0:1])\n    s[8 - n][...] = nl.add(s[n], 1.0)\n"
        "r = nl.add(s[4], s[8])",
        LARGE.format("1.0 * n", 5) + "q = nl.add(t[0], t[1])\nz = nl.add(t[2], t[3])\n"
        "r = nl.add(nl.add(q, z), t[4])[:, 0:2]",
        SUM + "for n in range(8):\n    q[...] = nl.add(q, nl.full((1, 8192), 1.0 * n, "
        "dtype=nl.float32))\nr = nl.copy(q[:, 0:2])",
        LARGE.format("1.0", 4) + "r = nl.add(nl.add(t[0], t[1]), nl.add(t[2], t[3]))[:, 0:2]",
    ),
    "versions": (
        *each(
            OVER,
            *("t[...] = nl.add(y, 1.0)", "t[:, 0:16] = nl.add(y[:, 0:16], 1.0)"),
            "t[:, 0:16] = nl.add(y[:, 0:16], 1.0)\nt[:, 16:32] = nl.add(x[:, 0:16], 2.0)",
            "t[:, 0:16] = nl.add(y[:, 0:16], 1.0)\nr[...] = nl.add(r, t)\n"
            "t[:, 16:32] = nl.add(x[:, 0:16], 2.0)",
            "t[:, 0:32:2] = nl.add(y[:, 0:16], 1.0)\nt[:, 1:32:2] = nl.add(y[:, 16:32], 1.0)",
            "t[:, 0:31:2] = nl.add(y[:, 0:16], 1.0)\nt[:, 1:30:2] = nl.add(y[:, 17:32], 1.0)",
            "t[0:32] = nl.add(y[0:32], 1.0)\nt[32:64] = nl.add(y[32:64], 2.0)",
            "t[0:63] = nl.add(y[0:63], 1.0)",
            "t.reshape((64, 4, 8))[:, 0:3, :] = nl.add(x.reshape((64, 4, 8))[:, 1:4, :], 1.0)\n"
            "t[:, 24:32] = nl.add(x[:, 0:8], 1.0)",
            "t.reshape((64, 4, 8))[:, :, 0:5] = nl.add(x.reshape((64, 4, 8))[:, :, 3:8], 1.0)\n"
            "t.reshape((64, 4, 8))[:, :, 5:8] = nl.add(y.reshape((64, 4, 8))[:, :, 1:4], 1.0)",
            "t.reshape((64, 4, 8))[:, :, 0:5] = nl.add(x.reshape((64, 4, 8))[:, :, 3:8], 1.0)\n"
            "t.reshape((64, 4, 8))[:, :, 4:7] = nl.add(y.reshape((64, 4, 8))[:, :, 1:4], 1.0)",
            *("t[i, 31 - j] = nl.add(x, y)", "t[...] = nl.add(t, y)", "r[...] = nl.add(r, x)"),
            "t[:, 0:16] = nl.add(t[:, 16:32], 1.0)\nt[:, 16:32] = nl.add(y[:, 0:16], 1.0)",
            "t[...] = nl.add(y, 1.0)\nt[:, 0:4] = nl.add(y[:, 0:4], 3.0)\nr[...] = nl.add(r, t)\n"
            "t[...] = nl.add(y, 5.0)",
            "r[...] = nl.add(x, t)\nr[...] = nl.add(y, t)\nt[...] = r",
            after="\nr[...] = nl.add(r, t)",
        ),
        OVER + "t[...] = nl.add(y, 1.0)",
        *each(
            PSUM + "p += nisa.nc_matmul(x, y)\nr = nl.copy(p)\n",
            *("p[...] = nisa.nc_matmul(y, x)", "p += nisa.nc_matmul(y, x)", "p[...] = 2.0"),
            "p[...] = nisa.nc_matmul(y, x)\np += nisa.nc_matmul(x, x)",
            after="\nr = nl.add(r, p)",
        ),
        SEVENS + "w = nl.ndarray((64, 1), dtype=nl.float32)\nfor n in nl.static_range(3):\n"
        "    w[...] = nl.sum(x[:, n : n + 4], axis=1)\n    r[...] = nl.add(r, w)",
    ),
    "rows": (
        *(
            f"t = nl.full((128, 32), 2.0, dtype=nl.float32)\nt[64:128, :] = x\n"
            f"r = nl.add(nl.broadcast_to(t[{n}:{n + 1}, :], shape=(64, 32)), y)"
            for n in (0, 1, 31, 32, 63, 64, 96)
        ),
        *(
            f"r = nl.add(nl.broadcast_to(x[32:33, :], shape=({n}, 32)), x[0:1, 0:1])"
            for n in (1, 32, 33)
        ),
        *(
            f"w = nl.full((1, {n}), 3.0, dtype=nl.float32)\nw[:, 500:532] = x[0:1, :]\n"
            f"q = nl.broadcast_to(w, shape=(64, {n}))\n{then}"
            for n in (532, 1025)
            for then in ("r = nl.add(q, 1.0)", "r = nl.add(q[:, 490:532], q[:, 480:522])")
        ),
        "w = nl.full((1, 512), 3.0, dtype=nl.float32)\n"
        "r = nl.add(nl.broadcast_to(w, shape=(64, 512)), 1.0)",
        *each(
            ROW,
            *("r = nl.add(q, q)", "r = nl.copy(q)", "r = nl.add(q[:, 3:9], 1.0)"),
            *("r = nisa.nc_matmul(q, y)", "r = nisa.nc_matmul(x, q)", "r = nl.add(y, q)"),
            *("q += 1.0\nr = nl.add(q, y)", "q[:, 0:4] = 1.0\nr = nl.add(q, y)"),
            "r = nl.multiply(nl.add(q, 1.0), q)",
            "z = nl.broadcast_to(y[0:1, :], shape=(64, 32))\nr = nl.add(q, z)",
            "z = nl.broadcast_to(y[0:1, :], shape=(64, 32))\nr = nl.add(nl.add(q, 2.0), z)",
            "s = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)\nnl.store(s, q)\n"
            "r = nl.load(s)",
        ),
        SEVENS + "z = nl.add(x, 1.0)\nr[...] = z\n" + ROW + "r[...] = nl.add(r, q)\n"
        "t = nl.add(y, z)\nr[...] = t\nr[0:32] = 2.0\nr = nl.add(r, t)",
        "r = nl.add(nl.broadcast_to(x[0:1, 0:32:2], shape=(64, 16)), 1.0)",
        "r = nl.add(nl.broadcast_to(nl.multiply(x[0:1], 2.0), shape=(64, 32)), 1.0)",
        "r = nl.add(nl.broadcast_to(nl.load(a[5:6, :]), shape=(64, 32)), 1.0)",
        SEVENS + "for n in nl.affine_range(3):\n"
        "    r[...] = nl.add(r, nl.broadcast_to(x[0:1, :], shape=(64, 32)))",
        *(
            BANKS.format(banks) + ROW + then + "for n in range(len(p)):\n"
            "    r[...] = nl.add(r, p[n][:, 0:32])"
            for banks in (6, 7, 8)
            for then in (
                "z = nl.copy(p.pop()[:, 0:32])\nr = nl.add(q, z)\n",
                "r = nl.add(q, y)\n",
                "z = nl.add(q, y)\nr = nl.multiply(z, q)\n",
            )
        ),
    ),
    "redirects": (
        PSUM + "p[0:16] = nl.add(x[0:16], 1.0)\nr = nl.copy(p)",
        "r = nl.ndarray((64, 4), dtype=nl.float32)\nr[...] = nl.sum(x.reshape((64, 4, 8)), axis=2)",
        *each(
            SEVENS + "q = nl.add(x, y)\nr[...] = q\nz = nl.load(a[i, j], mask=i > 100)\n",
            *("q[...] = z\nr = nl.add(q, r)", "q += z\nr = nl.add(q, r)"),
            "r[0:32] = 1.0\nt = nl.add(q, 1.0)\nq += z\nr = nl.add(nl.add(q, t), r)",
        ),
        *each(
            "t = nl.full((128, 32), 2.0, dtype=nl.float32)\n",
            "t[32:96] = nl.add(x, 1.0)\nr = nl.copy(t)",
            "q = nl.add(x, 1.0)\nt[63:127] = q\nr = nl.add(q, t[0:64])",
            "t[1:33] = nl.add(x[0:32], 1.0)\nr = nl.copy(t)",
            "t[64:128] = nl.add(x, 1.0)\nt[96:128] = nl.add(x[0:32], y[0:32])\nr = nl.copy(t)",
            "t[3:67] = nl.load(a)\nr = nl.copy(t)",
        ),
    ),
}
MORE_WHOLE: dict[str, tuple[str, ...]] = {
    "rows": (
        *(
            f"t = nl.copy(x, dtype=nl.{kind})\n"
            "r = nl.add(nl.broadcast_to(t[0:1, :], shape=(64, 32)), 1.0)"
            for kind in ("bfloat16", "float16", "int32")
        ),
        "r = nl.add(nl.broadcast_to(x.reshape((64, 4, 8))[0:1], shape=(64, 4, 8)), 1.0)",
        "r = nl.add(nl.broadcast_to(nisa.nc_matmul(x, y)[0:1], shape=(64, 32)), 1.0)",
        "w = nl.ndarray((64, 32), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=0))\nw[...] = x\n"
        "r = nl.add(nl.broadcast_to(w[0:1], shape=(64, 32)), 1.0)",
    ),
    "versions": (
        *each(
            OVER,
            "t.view(nl.int32)[...] = nl.copy(y, dtype=nl.int32)",
            "t.view(nl.bfloat16)[...] = nl.full((64, 64), 2.0, nl.bfloat16)",
            "t.view(nl.bfloat16)[:, 0:32] = nl.full((64, 32), 2.0, nl.bfloat16)",
            "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nt[:, nl.ds(n, 4)] = nl.copy(x[:, 0:4])",
            "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nr[:, 0:4] = nl.copy(t[:, nl.ds(n, 4)])\n"
            "n[...] = nl.load(b[0:1, 0:1], dtype=nl.int32)\n"
            "r[:, 4:8] = nl.copy(t[:, nl.ds(n, 4)])",
            after="\nr[...] = nl.add(r, t)",
        ),
        "t = nl.ndarray((64, 32), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=0))\n"
        "t[...] = nl.add(x, 1.0)\nr = nl.add(t, 1.0)\nt[...] = nl.add(y, 1.0)\nr = nl.add(r, t)",
        "w = nl.ndarray((64, 1), dtype=nl.float32)\nr = nl.zeros((64, 32), dtype=nl.float32)\n"
        "for n in nl.static_range(3):\n    r[...] = nisa.activation_reduce(np.exp, x, "
        "reduce_op=np.add, reduce_res=w)\n    r[...] = nl.add(r, w)",
    ),
    "redirects": (
        SEVENS + "for n in nl.affine_range(4):\n    q = nl.loop_reduce(nl.add(x, n), op=np.add, "
        "loop_indices=[n], dtype=nl.float32)\n    r[...] = q\nr[0:32] = 1.0\nr = nl.add(r, q)",
        *each(
            "n = nisa.memset((1, 1), 3, nl.int32)\nt = nl.zeros((64, 32), dtype=nl.float32)\n",
            *each(
                "for m in range(nki.typing.scalar(n)):\n    ",
                "q = nl.add(t, 1.0)\n    t[...] = q\n    t[...] = nl.add(t, x)\n    t += q",
                "t += nl.broadcast_to(x[0:1], shape=(64, 32))",
            ),
            "q = nl.add(x, 1.0)\nt[...] = q\nfor m in range(nki.typing.scalar(n)):\n"
            "    t[...] = nl.add(t, 2.0)\nt += q",
            after="\nr = nl.add(t, 1.0)",
        ),
        *each(
            PSUM + "n = nisa.memset((1, 1), 3, nl.int32)\n",
            *(
                f"{before}for m in range(nki.typing.scalar(n)):\n    {inside}"
                for before in (
                    *("", "p += nisa.nc_matmul(x, y)\n"),
                    "p[:, 0:8] += nisa.nc_matmul(x, y[:, 0:8])\n",
                )
                for inside in (
                    *("p += nisa.nc_matmul(x, y)", "p[:, 0:8] += nisa.nc_matmul(x, y[:, 0:8])"),
                    "r = nl.add(p, 1.0)",
                )
            ),
            after="\np += nisa.nc_matmul(y, x)\nr = nl.copy(p)",
        ),
        *each(
            "q = nl.add(x, 1.0)\n",
            *(
                f"r = nl.ndarray({shape}, dtype=nl.{kind}, buffer=nl.{buffer})\n{to} = q\n"
                "z = nl.multiply(q, 2.0)\n" + then
                for shape, kind, buffer, to in (
                    ("(64, 32)", "bfloat16", "sbuf", "r[...]"),
                    ("(64, 32)", "float32", "psum", "r[...]"),
                    ("(128, 64)", "float32", "sbuf", "r[64:128, 0:64:2]"),
                    ("(64, 1, 32)", "float32", "sbuf", "r[:, 0]"),
                )
                for then in ("r = nl.add(z, q)", f"{to} = z\nr = nl.add(z, q[:, 0:32])")
            ),
        ),
        "q = nl.load(a[i, j], mask=i < 20)\nr = nl.zeros((64, 32), nl.float32)\nr[...] = q\n"
        "r[0:32] = 2.0\nr = nl.add(r, q)",
    ),
}
