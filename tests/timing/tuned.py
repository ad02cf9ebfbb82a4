"""Kernels to tune, for `sweeps.py`: each does the same work in several ways."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copied_out(a, width):
    """Copy PSUM to SBUF, `width` columns at a time."""
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    held = nl.load(a[:, 0:128])
    moving = nl.load(a[:, 0:512])
    result = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
    for _ in range(16):
        product = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=held, moving=moving)
        for c in range(0, 512, width):
            columns = slice(c, c + width)
            nisa.tensor_copy(result[:, columns], product[:, columns], nisa.engine.vector)
    nl.store(out, result)
    return out


@nki.jit
def in_rows(a, width):
    """Load a matrix from HBM, `width` columns at a time."""
    out = nl.ndarray((128, 1), a.dtype, buffer=nl.shared_hbm)
    whole = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    for c in range(0, a.shape[1], width):
        nisa.dma_copy(dst=whole[:, c : c + width], src=a[:, c : c + width])
    largest = nl.ndarray((128, 1), a.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=whole, axis=1)
    nl.store(out, largest)
    return out


@nki.jit
def in_partitions(a, rows):
    """Compute the exponential of a matrix, `rows` partitions at a time."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for r in range(0, a.shape[0], rows):
        x = nl.load(a[r : r + rows, :])
        y = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        for _ in range(4):
            nisa.activation(dst=y, op=nl.exp, data=x)
        nl.store(out[r : r + rows, :], y)
    return out


@nki.jit
def in_buffers(a, depth):
    """Rotate loads, exponentials and stores over this number of buffers."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    buffers = [nl.ndarray((128, 512), a.dtype, buffer=nl.sbuf) for _ in range(depth)]
    for i in range(a.shape[1] // 512):
        x, columns = buffers[i % depth], nl.ds(i * 512, 512)
        nisa.dma_copy(dst=x, src=a[:, columns])
        nisa.activation(dst=x, op=nl.exp, data=x)
        nisa.dma_copy(dst=out[:, columns], src=x)
    return out


@nki.jit
def in_tiles(a, count):
    """Run two engines, one after the other, over a matrix in this number of tiles."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    width = a.shape[1] // count
    for i in range(count):
        y = nl.ndarray((128, width), a.dtype, buffer=nl.sbuf)
        z = nl.ndarray((128, width), a.dtype, buffer=nl.sbuf)
        nisa.activation(dst=y, op=nl.exp, data=x[:, nl.ds(i * width, width)])
        nisa.reciprocal(dst=z, data=y)
        nl.store(out[:, nl.ds(i * width, width)], z)
    return out


@nki.jit
def by_engine(a, engine):
    """Compute sums of two tiles, or copies of one."""
    name, tiles = engine.split(" ")
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    chosen = {"vector": nisa.engine.vector, "gpsimd": nisa.engine.gpsimd,
              "scalar": nisa.engine.scalar}[name]  # fmt: skip
    for _ in range(8):
        if tiles == "sums":
            nisa.tensor_tensor(dst=y, data1=x, data2=x, op=nl.add, engine=chosen)
        else:
            nisa.tensor_copy(dst=y, src=x, engine=chosen)
    nl.store(out, y)
    return out


@nki.jit
def products(a):
    """Compute products of 128 x 128 by 128 x 512, and copies of the moving operand."""
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    total = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
    for i in range(32):
        y = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=y, src=x)
        nisa.nc_matmul(dst=total, stationary=x[:, 0:128], moving=y, accumulate=i > 0)
    result = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    nl.store(out, result)
    return out


@nki.jit
def accumulated(a, sums):
    """Add up products in this number of tiles in turn, and copy each to SBUF."""
    out = nl.ndarray((128, 2048), nl.bfloat16, buffer=nl.shared_hbm)
    x = nl.load(a)
    tiles = [nl.ndarray((128, 2048), nl.float32, buffer=nl.psum) for _ in range(sums)]
    result = nl.ndarray((128, 2048), nl.bfloat16, buffer=nl.sbuf)
    for i in range(4):
        for c in range(0, 2048, 512):
            for k in range(8):
                nisa.nc_matmul(dst=tiles[i % sums][:, c : c + 512], stationary=x[:, 0:128],
                               moving=x, accumulate=k > 0)  # fmt: skip
        nisa.tensor_copy(dst=result, src=tiles[i % sums])
    nl.store(out, result)
    return out


@nki.jit
def combined(a, instructions):
    """Compute exp(2 a + 1) in this number of instructions."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    for _ in range(8):
        y = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
        if instructions == 1:
            one = nl.full((128, 1), 1.0, dtype=nl.float32)
            nisa.activation(dst=y, op=nl.exp, data=x, scale=2.0, bias=one)
        else:
            z = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
            if instructions == 2:
                nisa.tensor_scalar(z, x, nl.multiply, 2.0, op1=nl.add, operand1=1.0)
            else:
                w = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
                nisa.tensor_scalar(w, x, nl.multiply, 2.0)
                nisa.tensor_scalar(z, w, nl.add, 1.0)
            nisa.activation(dst=y, op=nl.exp, data=z)
        x = y
    nl.store(out, x)
    return out


@nki.jit
def softmax(a, fused):
    """Softmax of rows; if fused, the exponential sums its results."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for r in range(0, a.shape[0], 128):
        x = nl.load(a[r : r + 128, :])
        top, total, each = [nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf) for _ in range(3)]
        y = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=x, axis=1, negate=True)
        if fused:
            nisa.activation(dst=y, op=nl.exp, data=x, bias=top, reduce_op=nl.add,
                            reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # fmt: skip
        else:
            nisa.activation(dst=y, op=nl.exp, data=x, bias=top)
            nisa.tensor_reduce(dst=total, op=nl.add, data=y, axis=1)
        nisa.reciprocal(dst=each, data=total)
        z = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(z, y, nl.multiply, each)
        nl.store(out[r : r + 128, :], z)
    return out


@nki.jit
def turned(a, how):
    """Transpose blocks of 128 x 128, by DMA or by the tensor engine."""
    out = nl.ndarray((128, a.shape[0]), a.dtype, buffer=nl.shared_hbm)
    whole = nl.ndarray((128, a.shape[0]), a.dtype, buffer=nl.sbuf)
    if how == "dma":
        nisa.dma_transpose(dst=whole, src=a)
    else:
        for r in range(0, a.shape[0], 128):
            block = nl.load(a[r : r + 128, :])
            across = nl.ndarray((128, 128), a.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=across, data=block)
            nisa.tensor_copy(dst=whole[:, r : r + 128], src=across)
    nl.store(out, whole)
    return out


@nki.jit
def vector_by_matrix(a, held):
    """Multiply a row of 128 by a matrix of 128 x 2048: either operand is held in the array."""
    matrix = nl.load(a)
    row = nl.load(a[:, 0:1])
    if held == "row":
        out = nl.ndarray((1, 2048), nl.float32, buffer=nl.shared_hbm)
        result = nl.ndarray((1, 2048), nl.float32, buffer=nl.sbuf)
        for _ in range(32):
            for c in range(0, 2048, 512):
                found = nl.ndarray((1, 512), nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=found, stationary=row, moving=matrix[:, c : c + 512])
    else:
        out = nl.ndarray((128, 16), nl.float32, buffer=nl.shared_hbm)
        result = nl.ndarray((128, 16), nl.float32, buffer=nl.sbuf)
        for _ in range(32):
            found = nl.ndarray((128, 16), nl.float32, buffer=nl.psum)
            for c in range(16):
                columns = matrix[:, c * 128 : c * 128 + 128]
                nisa.nc_matmul(dst=found[:, c : c + 1], stationary=columns, moving=row)
    nisa.memset(dst=result, value=0.0)
    nl.store(out, result)
    return out


@nki.jit
def on_device(a, loop):
    """Load, exponential, store, in a loop on the device or unrolled."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)

    def body(i):
        nl.store(out[:, nl.ds(i, 512)], nl.exp(nl.load(a[:, nl.ds(i, 512)])))

    if loop:
        nl.fori_loop(0, a.shape[1], body, step=512)
    else:
        for i in range(0, a.shape[1], 512):
            body(i)
    return out


@nki.jit
def described(a, mode):
    """Run transfers one after the other, whose descriptors the given source makes."""
    modes = {"swdge": nisa.dge_mode.swdge, "hwdge": nisa.dge_mode.hwdge,
             "none": nisa.dge_mode.none}  # fmt: skip
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a, dge_mode=modes[mode])
    nisa.dma_copy(dst=out, src=x, dge_mode=modes[mode])
    return out


@nki.jit
def beside_gpsimd(a, mode):
    """Compute masks by gpsimd, which software also needs to make descriptors."""
    modes = {"swdge": nisa.dge_mode.swdge, "hwdge": nisa.dge_mode.hwdge}
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for i in range(0, a.shape[1], 256):
        x, y = [nl.ndarray((128, 256), a.dtype, buffer=nl.sbuf) for _ in range(2)]
        nisa.dma_copy(dst=x, src=a[:, nl.ds(i, 256)], dge_mode=modes[mode])
        nisa.affine_select(dst=y, pattern=[[-1, 256]], offset=0, channel_multiplier=1,
                           cmp_op=nl.greater_equal, on_true_tile=x, on_false_value=0.0)  # fmt: skip
        nisa.dma_copy(dst=out[:, nl.ds(i, 256)], src=y, dge_mode=nisa.dge_mode.hwdge)
    return out


@nki.jit
def triggered(a, by):
    """Compute exponentials of columns, each loaded by itself: triggered by a busy engine, or by
    sync.
    """
    engine = {"scalar": nisa.engine.scalar, "sync": nisa.engine.sync}[by]
    out = nl.ndarray((128, 1), nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
    for i in range(0, a.shape[1], 512):
        x, y = [nl.ndarray((128, 512), a.dtype, buffer=nl.sbuf) for _ in range(2)]
        nisa.dma_copy(dst=x, src=a[:, nl.ds(i, 512)], dge_mode=nisa.dge_mode.hwdge, engine=engine)
        for _ in range(3):
            nisa.activation(dst=y, op=nl.exp, data=x)
        nisa.tensor_reduce(dst=total, op=nl.add, data=y, axis=1)
    nl.store(out, total)
    return out


@nki.jit
def turned_within(a, how):
    """Transpose blocks in SBUF, by DMA or by the tensor engine."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    for c in range(0, a.shape[1], 128):
        if how == "dma":
            nisa.dma_transpose(dst=y[:, c : c + 128], src=x[:, c : c + 128])
        else:
            across = nl.ndarray((128, 128), a.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=across, data=x[:, c : c + 128])
            nisa.tensor_copy(dst=y[:, c : c + 128], src=across)
    nl.store(out, y)
    return out


@nki.jit
def recurrence(a, how):
    """Compute columns that are 0.5 times the preceding one, plus their own value."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    y, half = [nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf) for _ in range(2)]
    if how == "scan":
        nisa.memset(dst=half, value=0.5)
        nisa.tensor_tensor_scan(dst=y, data0=half, data1=x, initial=0.0,
                                op0=nl.multiply, op1=nl.add)  # fmt: skip
    else:
        nisa.tensor_copy(dst=y[:, 0:1], src=x[:, 0:1])
        for i in range(1, a.shape[1]):
            nisa.tensor_scalar(y[:, i : i + 1], y[:, i - 1 : i], nl.multiply, 0.5,
                               op1=nl.add, operand1=x[:, i : i + 1])  # fmt: skip
    nl.store(out, y)
    return out


@nki.jit
def vectorised(a, tiles):
    """Reduce two products of 64 partitions each: as two tiles, or as one of 128."""
    out = nl.ndarray((128, 1), nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    total = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
    for _ in range(16):
        both = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        for half in (0, 64):
            nisa.nc_matmul(dst=both[half : half + 64], stationary=x[:, 0:64], moving=x)
            if tiles == 2:
                rows = slice(half, half + 64)
                nisa.tensor_reduce(dst=total[rows], op=nl.add, data=both[rows], axis=1)
        if tiles == 1:
            nisa.tensor_reduce(dst=total, op=nl.add, data=both, axis=1)
    nl.store(out, total)
    return out
