"""Kernels that the pages of instructions have beside those that are drawn: by name."""

from __future__ import annotations

from tests.equal import test_pairs as pairs
from tests.equal import test_proofs as proofs

TILE = "out = nl.ndarray((24, 32), dtype=nl.{}, buffer=nl.sbuf)\n"
REGISTER = """
    out, n = nl.copy(w), nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.{}
    count = nisa.register_alloc()
    nisa.register_load(count, n)
    nl.fori_loop(0, count, lambda i: nisa.tensor_tensor(dst=out, data1=out, data2=x, op=nl.add))
"""
SCALAR_ENGINE = """
    s, r = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf), nl.copy(w[:, 0:1])
    command = nisa.reduce_cmd
    nisa.activation(dst=s, op=nl.exp, data=x, reduce_op=nl.add, reduce_res=r,
                    reduce_cmd=command.{})
    out = s + r
    nisa.activation(dst=s, op=nl.square, data=w, scale=x[:, 0:1], bias=x[:, 1:2], reduce_op=nl.add,
                    reduce_res=r, reduce_cmd=command.{})
    out = out + s * r
"""
RELATED = """
    m = nl.max(x, axis=1, keepdims=True)
    n = nl.maximum(m, nl.max(w, axis=1, keepdims=True))
    a, b = x - n, w - n
    c = nl.exp(a * {0}) * nl.exp((m - n) * {0})
    out = nl.reciprocal(nl.sum(nl.exp(a), axis=1, keepdims=True)
                        + nl.sum(nl.exp(b), axis=1, keepdims=True)) * c
"""
NARROWED = """
    h = nl.copy({0}, dtype=nl.{1})
    g = nl.copy(h, dtype=nl.float32)
    d = x - g
    out = nl.exp(d) + nl.copy(nl.maximum(h, nl.copy(w, dtype=nl.{1})), dtype=nl.float32)
"""
INTEGERS = """
    h = nl.copy({0}, dtype=nl.{1})
    out = nl.copy(h, dtype=nl.float32) * 0.5
"""
COLUMNS = """
    m = nl.{0}(x, axis=1, keepdims=True)
    p = nl.ndarray((24, 1), dtype=nl.{1}, buffer=nl.sbuf)
    nisa.tensor_copy(dst=p, src=m)
    out = (x - p) * 2.0 + (w * m - w * p)
"""
VIEWS = """
    out = nl.copy(w)
    nisa.tensor_copy(dst=out.view(nl.{0})[:, 0:{1}], src={2})
"""
MASKED = """
    out, m = nl.copy(w), nl.greater(x, {1}, dtype=nl.{0})
    nisa.tensor_copy_predicated(dst=out, src=x, predicate=m, reverse_pred={2})
"""
PRODUCTS = """
    h, g = nl.copy(x, dtype=nl.{0}), nl.copy(w, dtype=nl.{0})
    p = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=h, moving=g, accumulate=False)
    nisa.nc_matmul(dst=p, stationary=g, moving=h, accumulate={1})
    out = nl.copy(p)
"""
ROWS = """
    t, s = nl.full((64, 32), 2.0, dtype=nl.float32), nl.full((64, 32), 3.0, dtype=nl.float32)
    nisa.tensor_copy(dst=t[0:24, :], src=x)
    nisa.tensor_copy(dst=t[32:56, :], src=w)
    {}
    out = nl.copy(s)
"""
SHUFFLES = ([*range(31, -1, -1)], [255, 3, 3] + [0] * 29, [255] * 31 + [5])
GATHERED = """
    i = nl.ndarray((64, 2), dtype=nl.uint16, buffer=nl.sbuf)
    nisa.iota(dst=i, pattern=[[5, 2]], channel_multiplier={}, offset=1)
    nisa.local_gather(dst=s, src_buffer=t, index=i, num_elem_per_idx={}, num_valid_indices={})
"""
TURNED = """
    out = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_transpose(dst=out, src={})
"""
BLOCKS = """
    out = nl.ndarray((32, 8, 3), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_transpose(dst=out, src=x_hbm.reshape((3, 8, 32)))
"""
CONSTANTS = """
    eye, ones = nl.shared_identity_matrix(24, dtype=nl.float32), nl.full(
        (24, 24), {0}, dtype=nl.float32
    )
    p = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary={1}, moving=x, accumulate=False)
    q = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=q, stationary=w, moving={1}, accumulate=False)
    out = nl.copy(p)
    nisa.tensor_tensor(dst=out[0:24, 0:24], data1=out[0:24, 0:24], data2=q[0:24, :], op=nl.add)
"""

WRITTEN = {
    **{f"equal: {name}, {n}": body for name, both in pairs.EQUAL.items() for n, body in
       enumerate(both)},
    **{f"different: {name}": both[1] for name, both in pairs.DIFFERENT.items()},
    **{f"proofs {n}": body for n, body in enumerate(
        (*proofs.ALL, proofs.PARTS, proofs.SOME, proofs.ROUNDED, proofs.LEAST, proofs.FUNCTIONS,
         proofs.SPLIT, proofs.BEYOND, proofs.WHOLE, proofs.CANCELLED, proofs.WRONG_SIGN))},
    **{f"moved {given}": pairs.moved(**given) for given in (
        {}, {"kind": "bfloat16"}, pairs.SKIPPED, pairs.BY_INPUTS,
        {"kind": "int32", "data": pairs.MASK},
        {"src": pairs.ROWS.replace("h.ap", "h.view(nl.int32).ap")},
        {"src": "x", "dst": pairs.ROWS.replace("h.ap", "h.view(nl.int32).ap")},
    )},
    **{f"register {by}": REGISTER.format(by) for by in (
        "memset(dst=n, value=2)",
        "tensor_copy(dst=n, src=nl.greater(x[0:1, 0:1], 1e6, dtype=nl.int32))",
    )},
    **{f"scalar engine, {a}, {b}": SCALAR_ENGINE.format(a, b) for a, b in (
        ("reset_reduce", "reduce"), ("reduce", "reset_reduce"), ("idle", "reduce"),
    )},
    **{f"related by {c}": RELATED.format(c) for c in (1.0, 0.5, 0.3, -1.0)},
    **{f"{kind} of {of}": NARROWED.format(of, kind) for kind in
       ("bfloat16", "float16", "float8_e4m3", "tfloat32") for of in
       ("x", "x * 1e-4", "x * 1e-38", "w")},
    **{f"{kind} of {of}": INTEGERS.format(of, kind) for kind in
       ("int32", "uint8", "int16") for of in ("x", "nl.greater(x, w)", "nl.greater(x, w) * 3.0")},
    **{f"{op} as {kind}": COLUMNS.format(op, kind) for op in ("max", "min", "sum", "mean")
       for kind in ("float32", "bfloat16")},
    **{f"view {given}": VIEWS.format(*given) for given in (
        ("int32", 32, "nl.greater(x, w, dtype=nl.int32)"), ("bfloat16", 32, "x"),
        ("float32", 8, "x[:, 3:11]"), ("int32", 8, "x.view(nl.int32)[:, 0:8]"),
    )},
    **{f"mask {given}": MASKED.format(*given) for given in (
        ("uint8", 0.5, False), ("uint8", 0.5, True), ("uint8", 1e6, False),
    )},
    **{f"products of {kind}, {adds}": PRODUCTS.format(kind, adds) for kind in
       ("float32", "bfloat16") for adds in (True, False)},
    **{f"constant {given}": CONSTANTS.format(*given) for given in (
        (1.0, "ones"), (1.0, "eye"), (2.0, "ones"), (0.0, "ones"), (1e30, "ones"), (-1.0, "ones"),
    )},
    "transposed": TURNED.format("x"),
    "transposed from HBM": TURNED.format("x_hbm"),
    "transposed in blocks": BLOCKS,
    "powers": "out = nl.power(nl.abs(x) + 0.5, w * 0.0 + 2.0)",
    "infinite": TILE.format("float32") + "nisa.memset(dst=out, value=1e31)\n"
    "nisa.tensor_copy(dst=out[:, 0:9], src=x[:, 0:9])\nout = nl.minimum(out, 3e38) + w",
    "random": TILE.format("float32") + "nisa.rng(dst=out.view(nl.uint32))",
    "sixteen bits": TILE.format("bfloat16") + "nisa.memset(dst=out, value=0.3333)\nout = x * out",
    **{f"shuffle {n}": ROWS.format(f"nisa.nc_stream_shuffle(dst=s, src=t, shuffle_mask={mask})")
       for n, mask in enumerate(SHUFFLES)},
    **{f"gather {given}": ROWS.format(GATHERED.format(*given).strip())
       for given in ((1, 1, 32), (0, 2, 16), (3, 4, 8))},
}  # fmt: skip
