"""More bodies like those of `bodies`: of every instruction, function, loop, index and mask."""

from __future__ import annotations

from tests.beta1.bodies import PSUM, SCRATCH, SEVENS, each

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
ISA = (
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
FUNCTIONS = (
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
    *each(
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
    "r = nl.add(nisa.nc_matmul(x, y[:, 0:16]), nisa.nc_matmul(y, x[:, 0:16]))",
    "r = nl.maximum(nisa.nc_matmul(x, y[:, 0:16]), 2.0)",
    *("r = nl.load(a.reshape(2048)[0:128])", "r = nl.copy(x.reshape((64, 4, 8), 2))"),
    *("r = nl.copy(x.reshape(64, 32))", "r = nl.copy(x.reshape(shape=(64, 4, -1)))"),
)
_LOOPS = """s = nl.ndarray((4, 64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
for n in nl.{}(4):
    """
LOOPS = (
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
    *each(
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
    *(
        f"for n in nl.{loop}(4):\n    r = nl.loop_reduce(nl.add(x, n), op=np.{op}, "
        f"loop_indices=[n], dtype=nl.float32, mask={mask})"
        for loop, op in (("affine_range", "add"), ("sequential_range", "max"))
        for mask in ("i < 32 * n", "i < 64 - 32 * n", "i > 100", "i < j + n", "j < 8 * n + 4")
    ),
    *each(
        "t = nl.zeros((64, 32), nl.float32)\n",
        "for n in nl.affine_range(4):\n    t[...] = nl.loop_reduce(nl.add(x, n), op=np.add, "
        "loop_indices=[n], dtype=nl.float32)\nr = t",
        "for n in nl.affine_range(4):\n    q = nl.loop_reduce(nl.add(x, n), op=np.add, "
        "loop_indices=[n], dtype=nl.float32)\nt[...] = q\nr = nl.add(t, q)",
        "for n in nl.affine_range(2):\n    nl.loop_reduce(x, op=np.add, loop_indices=[3])\nr = t",
        "for n in nl.affine_range(2):\n    nl.loop_reduce(x, op=np.add, loop_indices=[])\nr = t",
        "for n in nl.affine_range(2):\n    r = nl.loop_reduce(x, op=np.add, loop_indices=n)",
    ),
)

INDICES = (
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
    *(
        f"r = nisa.iota({expression}, dtype=nl.int32)"
        for expression in (
            *(
                "i * nl.arange(2)[None, :]",
                "nl.arange(2)[None, :] // 3",
                "nl.arange(2)[None, :] % 2",
            ),
            *("(nl.arange(2)[None, :] + 2) // 3", "i * nl.arange(1)[None, :]"),
        )
    ),
    "r = nisa.nc_matmul(x[i < 40][j < 9], y)",
    "r = nisa.nc_matmul(x[i < 40][i >= 9], y[j < 20][j >= 3])",
)

CALLS = {"isa": ISA, "functions": FUNCTIONS, "loops": LOOPS, "indices": INDICES}
