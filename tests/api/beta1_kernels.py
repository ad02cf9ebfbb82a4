"""Beta 1 kernels in the style of users."""

import logging

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
from neuronxcc.nki.language import par_dim
from neuronxcc.nki.typing import scalar

assert vars(logging)["OFF"] > logging.CRITICAL


@nki.jit
def added(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    i_f = nl.program_id(1) * 256 + nl.arange(256)[None, :]
    nl.store(out[ip, i_f], value=nl.load(a[ip, i_f]) + nl.load(b[ip, i_f]))
    return out


@nki.jit
def doubled_rows(a):
    rows, columns = a.shape
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:128, 0:512]
    for i in nl.affine_range((rows + 127) // 128):
        inside = (i * 128 + ip < rows) & (i_f < columns)
        tile = nl.load(a[i * 128 + ip, i_f], mask=inside)
        tile[...] = nl.multiply(tile, 2, mask=inside)
        nl.store(out[i * 128 + ip, i_f], value=tile, mask=inside)
    return out


@nki.jit
def lower_part(a):
    """Masked-out elements keep their value, in a tile and in HBM."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, i_f = nl.arange(64)[:, None], nl.arange(64)[None, :]
    tile = nl.load(a)
    kept = nl.zeros((64, 64), dtype=a.dtype)
    kept[ip, i_f] = nl.multiply(tile[ip, i_f], 3, mask=(ip >= i_f))
    nl.store(out, kept)
    nl.store(out[ip, i_f], tile[ip, i_f], mask=(ip == i_f))
    return out


@nki.jit
def product(lhs_t, rhs):
    k, m = lhs_t.shape
    _, n = rhs.shape
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((k // 128, par_dim(128), m), dtype=lhs_t.dtype)
    right = nl.ndarray((k // 128, par_dim(128), n), dtype=rhs.dtype)
    for i in nl.affine_range(k // 128):
        left[i] = nl.load(lhs_t[i * 128 : (i + 1) * 128, :])
        right[i] = nl.load(rhs[nl.ds(i * 128, 128), :])
    psum = nl.zeros((m, n), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(k // 128):
        psum += nl.matmul(left[i], right[i], transpose_x=True)
    nl.store(out, value=nl.copy(psum))
    return out


@nki.jit
def pooled(a, size):
    p, h, w = a.shape
    i0, i1, i2, i3, i4 = nl.mgrid[0:p, 0 : h // size, 0:size, 0 : w // size, 0:size]
    out = nl.ndarray((p, h // size, w // size), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    nl.store(out, nl.max(tile[i0, size * i1 + i2, size * i3 + i4], axis=[2, 4]))
    return out


@nki.jit
def summed(a):
    """Sum each of two tiles over a loop."""
    out = nl.ndarray((2, 128, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((2, par_dim(128), 32), dtype=nl.float32)
    for i in nl.affine_range(4):
        for j in nl.affine_range(2):
            tile = nl.load(a[i, j])
            total[j] = nl.loop_reduce(tile, op=np.add, loop_indices=[i], dtype=nl.float32)
    for j in nl.affine_range(2):
        nl.store(out[j], total[j])
    return out


@nki.jit
def placed(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray(
        (4, par_dim(128), 64),
        dtype=a.dtype,
        buffer=ncc.sbuf.mod_alloc(base_addr=1024, num_free_tiles=(2,)),
    )
    for i in nl.affine_range(4):
        tiles[i] = nl.load(a[i])
        tiles[i] = nisa.activation(op=nl.square, data=tiles[i])
        nl.store(out[i], tiles[i])
    return out


@nki.jit
def written(a, out):
    """Write to an argument and return nothing."""
    nl.store(
        out, value=nisa.tensor_scalar(nl.load(a), np.subtract, 1.0, op1=np.multiply, operand1=4.0)
    )


@nki.jit
def gathered(a, rows):
    out = nl.ndarray((64, 32), dtype=a.dtype, buffer=nl.shared_hbm)
    ip, i_f = nl.arange(64)[:, None], nl.arange(32)[None, :]
    index = nl.load(rows)
    nl.store(out, value=nl.load(a[index[ip, 0], i_f]))
    return out


@nki.jit
def aliased(a):
    """An assigned tile keeps its value when the assignment's target is written again."""
    out = nl.ndarray((2, 128, 16), dtype=a.dtype, buffer=nl.shared_hbm)
    target = nl.ndarray((128, 16), dtype=a.dtype)
    first = nl.add(nl.load(a), 1)
    target[...] = first
    target[...] = nl.multiply(target, 10)
    nl.store(out[0], first)
    nl.store(out[1], target)
    return out


def scaled_by(factor):
    """Return a kernel that multiplies by `factor`."""

    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a) * factor)
        return out

    return kernel


@nki.jit
def traced_once(a):
    """The body is traced as if once: every iteration starts from the factor 1 and adds 1."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    factor = 1
    for i in nl.affine_range(2):
        factor += 1
        nl.store(out[i], nl.load(a[i]) * factor)
    return out


@nki.jit
def selected(a):
    out = nl.ndarray((2, 64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:64, 0:64]
    tile = nl.load(a)
    causal = nisa.affine_select(pred=(ip >= i_f), on_true_tile=tile[ip, i_f], on_false_value=-9.0)
    nl.store(out[0], causal)
    nl.store(out[1], nisa.iota(2 * ip - i_f, dtype=nl.float32))
    return out


@nki.jit(mode="simulation", kernel_return=True)
def from_the_chip(a):
    """Return a tile whose elements are written one by one, at any partition."""
    found = nl.zeros((3, 4), dtype=nl.float32)
    for i in range(3):
        for j in range(4):
            found[i, j] = 10 * i + j
    rest = nl.load(a)
    rest[1:2, :] = found[2:3, :]
    return found, rest


@nki.jit
def in_part(a):
    out = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:128, 0:8]
    nl.store(out[ip, i_f], nl.load(a[ip, i_f]), mask=(ip < 100))
    return out


@nki.jit
def lower_sums(a):
    """Sum the products up to each iteration; later products are masked out entirely."""
    out = nl.ndarray((2, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = nl.ndarray((2, par_dim(128), 128), dtype=a.dtype)
    for i in nl.affine_range(2):
        tiles[i] = nl.load(a[i])
    for i in nl.affine_range(2):
        total = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(2):
            total += nisa.nc_matmul(tiles[j], tiles[j], mask=i >= j)
        nl.store(out[i], total)
    return out


@nki.jit
def counters(a):
    """Loop variables and tiles are not restored to their values before the loop, as numbers are."""
    out = nl.ndarray((2, 128, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    j, total = 7, nl.load(a)
    for i in nl.sequential_range(2):
        for j in range(3):
            total += j
        nl.store(out[i], total)
    return out


@nki.jit
def triangles(a, b):
    """Use masks that are not bounds in a matmul, reductions, a transpose, and a transposed load."""
    out = nl.ndarray((3, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.ndarray((3, 128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:128, 0:128]
    inside = ip >= i_f + 3
    left, right = nl.load(a), nl.load(b)
    tile = nl.zeros((3, par_dim(128), 128), dtype=nl.float32)
    tile[0, ip, i_f] = nisa.nc_matmul(left, right, mask=inside & (ip < 100))
    tile[1, ip, i_f] = nisa.nc_transpose(left[ip, i_f], mask=inside)
    tile[2, ip, i_f] = nl.load_transpose2d(a[ip, i_f], mask=inside)
    for n in nl.affine_range(3):
        nl.store(out[n], tile[n])
    nl.store(sums[0], nl.sum(left[ip, i_f], axis=1, keepdims=True, mask=inside | (ip < 3)))
    nl.store(sums[1], nisa.tensor_reduce(np.max, left[ip, i_f], axis=1, keepdims=True, mask=inside))
    both = nisa.tensor_partition_reduce(np.add, left[ip, i_f], mask=inside)
    nl.store(sums[2], nisa.nc_transpose(both))
    return out, sums


@nki.jit
def kept_elsewhere(a, b, chosen):
    """Masked-out elements of a result leave the assignment's target unchanged."""
    out = nl.ndarray((6, 64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.full((6, par_dim(64), 32), 7, dtype=nl.float32)
    ip, i_f = nl.mgrid[0:64, 0:32]
    first, second, where = nl.load(a), nl.load(b), nl.load(chosen)
    some = (ip >= i_f) & (ip < 60)
    rows = (ip < 50) & (i_f < 20)
    tile[0, ip, i_f] = nl.where(where[ip, i_f], first[ip, i_f], second[ip, i_f], mask=rows)
    tile[1, ip, i_f] = nl.where(where[ip, i_f], first[ip, i_f], 2.0, mask=some)
    tile[2, ip, i_f] = nl.load(a[ip, i_f], mask=some)
    tile[3, ip, i_f] = nisa.affine_select(
        pred=(ip >= 2 * i_f) & (ip < 40), on_true_tile=first[ip, i_f], on_false_value=0.0, mask=rows
    )
    tile[4, ip, i_f] = nisa.affine_select(
        pred=False, on_true_tile=first[ip, i_f], on_false_value=1.0, mask=rows
    )
    made = nl.exp(first[ip, i_f], mask=rows)
    made[60:64, :] = 3.0
    made[0:32, 20:32] = 4.0
    made[32:64, 20:32] = 4.0
    made[32:60, :] = 5.0
    tile[5] = made
    for n in nl.affine_range(6):
        nl.store(out[n], tile[n])
    return out


@nki.jit
def means(a):
    """Compute means with a bound as mask, means with another mask, and a variance."""
    out = nl.full((3, 64, 1), 7, dtype=nl.float32, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:64, 0:32]
    tile = nl.load(a)
    found = nl.full((3, par_dim(64), 1), 7, dtype=nl.float32)
    found[0] = nl.mean(tile[ip, i_f], axis=1, keepdims=True, mask=(ip < 32) & (i_f < 10))
    found[1] = nl.mean(tile[ip, i_f], axis=1, keepdims=True, mask=ip >= i_f)
    found[2] = nl.var(tile[ip, i_f], axis=1, mask=ip >= i_f)
    for n in nl.affine_range(3):
        nl.store(out[n], found[n])
    return out


@nki.jit
def searches(a):
    """Find the largest elements and their indices under a mask that is not a bound, and replace
    them in a copy of the tile.
    """
    out = nl.ndarray((2, 64, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    rest = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:64, 0:64]
    tile, seen = nl.load(a), i_f + 8 > ip
    most = nisa.max8(src=tile[ip, i_f], mask=seen)
    nl.store(out[0], most)
    nl.store(out[1], nisa.nc_find_index8(data=tile[ip, i_f], vals=most, mask=seen))
    left = nl.zeros((64, 64), dtype=nl.float32)
    left[ip, i_f] = nisa.nc_match_replace8(data=tile[ip, i_f], vals=most, imm=-5.0, mask=seen)
    nl.store(rest, left)
    return out, rest


@nki.jit
def hidden_sides(a, b):
    """Masks in subscripts hide rows and columns of a product's operands."""
    out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.zeros((64, 96), dtype=nl.float32, buffer=nl.psum)
    left, right = nl.load(a), nl.load(b)
    ip, im, i_n = nl.arange(128)[:, None], nl.arange(64)[None, :], nl.arange(96)[None, :]
    for k in nl.affine_range(2):
        sums[im.reshape((64, 1)), i_n] += nisa.nc_matmul(
            left[ip, im][im < 40], right[ip, i_n][ip + 100 * k < 150], mask=i_n < 80 + k
        )
    nl.store(out, sums)
    return out


@nki.jit
def hidden_columns(a, b):
    """Masks in subscripts hide columns of both sides of nl.matmul, beyond what the tiles have."""
    out = nl.ndarray((40, 80), dtype=nl.float32, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    ip, im, i_n = nl.arange(128)[:, None], nl.arange(64)[None, :], nl.arange(128)[None, :]
    product = nl.matmul(left[ip, im][im < 40], right[ip, i_n][i_n < 80], transpose_x=True)
    nl.store(out, product[:40, :80])
    return out


@nki.jit
def sums_in_parts(a):
    """Accumulate products into a zeroed tile, one slice of columns after the other."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a)
    sums = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
    for _ in nl.affine_range(2):
        for part in nl.affine_range(3):
            columns = tile[:, part * 16 : part * 16 + 16]
            sums[:, part * 16 : part * 16 + 16] += nisa.nc_matmul(tile, columns)
    nl.store(out, sums)
    return out


@nki.jit
def counted(a):
    """Add the number of program instances: in total, along one axis, and along two axes."""
    out = nl.ndarray((4, 3, 1, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    i, j = nl.program_id(0), nl.program_id(1)
    tile = nl.load(a)
    for n, count in enumerate((nl.num_programs(), nl.num_programs(0), nl.num_programs([0, 1]))):
        nl.store(out[2 * i + j, n], nl.add(tile, count))
    return out


@nki.jit
def as_often_as_asked(a, count):
    """A device loop uses zeros and values from before it, and accumulates sums."""
    out = nl.ndarray((2, 128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    products = nl.ndarray((64, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=nl.float32)
    sums = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
    at = nl.zeros((1, 1), dtype=nl.int32)
    kept = nl.ndarray((128, 64), dtype=nl.float32)
    before = nl.add(nl.load(a[0]), 2.0)
    kept[...] = before
    for _ in range(scalar(nl.load(count))):
        tile = nl.load(a[at[0, 0]])
        total += tile
        kept[...] = nl.add(kept, 1.0)
        sums += nisa.nc_matmul(tile, tile)
        at[...] = nl.add(at, 1)
    nl.store(out[0], total)
    nl.store(out[1], nl.subtract(kept, before))
    nl.store(products, sums)
    return out, products


@nki.jit
def a_slice_alone(a):
    """nl.ds as the only subscript is one index, not a pair."""
    out = nl.ndarray((32, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a[nl.ds(2, 64)])
    nl.store(out, tile[nl.ds(32, 32)])
    return out


@nki.jit
def forms_of_the_guides(a, batches, places):
    """Index grids over part of a tile, with flattened and separate axes; tiles of 128 x 512 over a
    tensor of 129 x 513; a batch selected at run time; blocks filled by DMA.
    """
    found = nl.ndarray((129, 513), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            ip, i_f = nl.mgrid[0:128, 0:512]
            row, column = ip + 128 * i, i_f + 512 * j
            there = (row < 129) & (column < 513)
            tile = nl.load(a[row, column], mask=there)
            nl.store(found[row, column], nisa.reciprocal(tile, mask=there), mask=there)
    part = nl.ndarray((2, 128, 8, 16), dtype=a.dtype, buffer=nl.shared_hbm)
    three = nl.load(batches[1]).reshape((128, 16, 16))
    ip, x, y = nl.mgrid[0:128, 0:8, 0:16]
    nl.store(part[0], three[ip, x, y])
    nl.store(part[1], three.reshape((128, 256))[ip, x * 16 + y])
    chosen = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.shared_hbm)
    at = nl.bitwise_and(nl.load(places), 3)
    ip, i_f = nl.mgrid[0:128, 0:256]
    nisa.dma_copy(dst=chosen[...], src=batches[at, ip, i_f])
    blocks = nl.ndarray((4, par_dim(128), 256), dtype=a.dtype, buffer=nl.sbuf)
    copied = nl.ndarray((4, 128, 256), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        nisa.dma_copy(dst=blocks[i], src=batches[i])
        nisa.dma_copy(dst=copied[i], src=blocks[i])
    return found, part, chosen, copied


def windows(size):
    """Return a kernel whose index expressions and mask are made before it."""
    i = nl.arange(size)[:, None]
    j = 2 * nl.arange(size)[None, :] + 1
    ip, i_f = nl.mgrid[0:size, 0:size]

    @nki.jit
    def kernel(a):
        out = nl.ndarray((size, size), dtype=a.dtype, buffer=nl.shared_hbm)
        lower = np.tril(np.ones((size, size), dtype=np.float32))
        lower[0] = np.float32(1.0 / size)
        odd = nl.load(a[i, j]) * nl.load(nl.shared_constant(lower))
        nl.store(out[ip, i_f], value=odd)
        return out

    return kernel


@ncc.skip_middle_end_transformations
@nki.jit
def skipping(a):
    return scaled(a)


@nki.jit
@ncc.enable_stack_allocator(log_level=10)
def stacked(a):
    return scaled(a)


@ncc.force_auto_alloc
def automatic(a):
    return scaled(a)


def scaled(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a) * 2)
    return out


@nki.jit
def numbers_in_rows(a):
    """Numbers are stored to slices of any rank."""
    out = nl.ndarray((4, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, 1.0)
    nl.store(out[1, 2:5], 2.0)
    nl.store(out[0:3, 7], np.float32(3.0))
    nl.store(out[3, 1], 4)
    i = nl.arange(8)
    nl.store(out[2, i], 5.0, mask=i < 3)
    return out


@nki.jit
def padded(a, *, scale=1.0, **options):
    left, right = options["padding"][1]
    width = a.shape[1]
    out = nl.ndarray((a.shape[0], width + left + right), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.zeros((nl.par_dim(a.shape[0]), width + left + right), dtype=a.dtype, buffer=nl.sbuf)
    t[:, left : left + width] = nl.load(a) * scale
    nl.store(out, t)
    return out


class Scaling:
    """A class of host code, with a kernel that needs nothing of it."""

    FACTOR = missing_in_kernels = object()

    @staticmethod
    @nki.jit
    def kernel(a, factor=3):
        return times(a, factor)


def launching(factor):
    """Return a function that launches a kernel, and the factor."""

    @nki.jit
    def _kernel(a):
        return times(a, factor)

    def kernel(a):
        return _kernel[1](a)

    return kernel, factor


def times(a, factor):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a) * factor)
    return out
