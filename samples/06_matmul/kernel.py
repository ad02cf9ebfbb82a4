# /// nkic
# kernel = "matmul_fully_blocked"
# target = "trn2"
# [args]
# lhsT = "bfloat16[512, 512]"
# rhs = "bfloat16[512, 2048]"
# ///
"""Matrix product in five steps, from one instruction to blocking in all three dimensions.

TensorE contracts over partitions: nc_matmul computes stationary[K, M].T @ moving[K, N] for
K <= 128, M <= 128, N <= 512. The left matrix is passed transposed, so that
both operands have K on partitions: every kernel here takes lhsT[K, M], rhs[K, N] and returns
lhs @ rhs[M, N] in lhsT's dtype. Products accumulate in float32 in PSUM; one result tile of
128 x 512 float32 fills one of its eight banks exactly.

The arithmetic is the same in all five. They differ in how often each operand is read from HBM,
which bounds the time of a large product:

    kernel                  lhsT is read         rhs is read
    matmul_tiled            N / 512 times        M / 128 times
    matmul_hoisted          once                 M / 128 times
    matmul_blocked_free     once                 M / (128 * tiles_m) times
    matmul_fully_blocked    N / (512 * tiles_n)  M / (128 * tiles_m) times

`nkic -k NAME` picks another kernel than the one in the block above.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul_basic(lhsT, rhs):
    """Step 1: one tile. Load both operands, multiply, copy from PSUM, store."""
    K, M, N = check_operands(lhsT, rhs, 1, 1, 1)
    assert K <= nl.tile_size.pmax, f"K = {K} must fit in {nl.tile_size.pmax} partitions"
    assert M <= nl.tile_size.gemm_stationary_fmax, f"M = {M} is too wide for a stationary tile"
    assert N <= nl.tile_size.gemm_moving_fmax, f"N = {N} is too wide for a moving tile"
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)

    lhsT_tile = nl.ndarray((K, M), dtype=lhsT.dtype, buffer=nl.sbuf)
    rhs_tile = nl.ndarray((K, N), dtype=rhs.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=lhsT_tile, src=lhsT)
    nisa.dma_copy(dst=rhs_tile, src=rhs)

    psum = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=psum, stationary=lhsT_tile, moving=rhs_tile, accumulate=False)
    store_tile(out, psum)
    return out


@nki.jit
def matmul_tiled(lhsT, rhs):
    """Step 2: tiles in M, N and K. PSUM accumulates the K tiles of one result tile.

    Both operands are loaded again for every product.
    """
    TM, TN, TK = tile_sizes()
    K, M, N = check_operands(lhsT, rhs, TM, TN, TK)
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)

    for m in range(0, M, TM):
        for n in range(0, N, TN):
            psum = nl.ndarray((TM, TN), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, K, TK):
                lhsT_tile = nl.ndarray((TK, TM), dtype=lhsT.dtype, buffer=nl.sbuf)
                rhs_tile = nl.ndarray((TK, TN), dtype=rhs.dtype, buffer=nl.sbuf)
                # 128 columns of bfloat16 are rows of 256 bytes: below 512 bytes a DMA spends
                # its time on overhead. Step 4 fixes this as well.
                nisa.dma_copy(dst=lhsT_tile, src=lhsT[k : k + TK, m : m + TM])
                nisa.dma_copy(dst=rhs_tile, src=rhs[k : k + TK, n : n + TN])
                # The first product overwrites the bank; the others accumulate onto it.
                nisa.nc_matmul(dst=psum, stationary=lhsT_tile, moving=rhs_tile, accumulate=(k > 0))
            store_tile(out[m : m + TM, n : n + TN], psum)
    return out


@nki.jit
def matmul_hoisted(lhsT, rhs):
    """Step 3: hoist each load out of every loop that it does not depend on.

    A column panel of lhsT, all of K, stays in SBUF for a whole row of results.
    """
    TM, TN, TK = tile_sizes()
    _, M, N = check_operands(lhsT, rhs, TM, TN, TK)
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)

    for m in range(0, M, TM):
        lhsT_panel = load_panel(lhsT[:, m : m + TM])
        for n in range(0, N, TN):
            rhs_panel = load_panel(rhs[:, n : n + TN])
            psum = multiply_panels(lhsT_panel, rhs_panel)
            store_tile(out[m : m + TM, n : n + TN], psum)
    return out


@nki.jit
def matmul_blocked_free(lhsT, rhs, tiles_m=2, tiles_n=2):
    """Step 4: panels several tiles wide in M and N.

    A panel of rhs is now used for tiles_m rows of results, and DMA rows are tiles_m (tiles_n) times
    as long: 512 bytes of lhsT, 2 KiB of rhs and of the result.
    """
    TM, TN, TK = tile_sizes()
    BM, BN = TM * tiles_m, TN * tiles_n
    _, M, N = check_operands(lhsT, rhs, BM, BN, TK)
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)

    for m in range(0, M, BM):
        lhsT_panel = load_panel(lhsT[:, m : m + BM])
        for n in range(0, N, BN):
            rhs_panel = load_panel(rhs[:, n : n + BN])
            for tm in range(0, BM, TM):
                row = nl.ndarray((TM, BN), dtype=out.dtype, buffer=nl.sbuf)
                for tn in range(0, BN, TN):
                    psum = multiply_panels(
                        lhsT_panel[:, :, tm : tm + TM], rhs_panel[:, :, tn : tn + TN]
                    )
                    nisa.tensor_copy(dst=row[:, tn : tn + TN], src=psum)
                nisa.dma_copy(dst=out[m + tm : m + tm + TM, n : n + BN], src=row)
    return out


@nki.jit
def matmul_fully_blocked(lhsT, rhs, tiles_m=4, tiles_n=2, tiles_k=2):
    """Step 5: blocks in K as well, for a K whose panels do not fit in SBUF.

    Panels are tiles_k tiles deep, however large K is. The sums stay in PSUM until they are
    complete: a block of the result has tiles_m * tiles_n tiles, one for each of the eight banks,
    and all of them are open while the loop over K runs. A bank is free for the next block as soon
    as its own tile is copied, so TensorE does not wait for the other seven.
    """
    TM, TN, TK = tile_sizes()
    BM, BN, BK = TM * tiles_m, TN * tiles_n, TK * tiles_k
    K, M, N = check_operands(lhsT, rhs, BM, BN, BK)
    assert tiles_m * tiles_n <= 8, f"{tiles_m} * {tiles_n} tiles need more than PSUM's 8 banks"
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)

    for m in range(0, M, BM):
        for n in range(0, N, BN):
            sums = {
                (tm, tn): nl.ndarray((TM, TN), dtype=nl.float32, buffer=nl.psum)
                for tm in range(0, BM, TM)
                for tn in range(0, BN, TN)
            }
            for k in range(0, K, BK):
                lhsT_panel = load_panel(lhsT[k : k + BK, m : m + BM])
                rhs_panel = load_panel(rhs[k : k + BK, n : n + BN])
                for (tm, tn), psum in sums.items():
                    left, right = lhsT_panel[:, :, tm : tm + TM], rhs_panel[:, :, tn : tn + TN]
                    add_products(psum, left, right, accumulate=(k > 0))
            for tm in range(0, BM, TM):
                row = nl.ndarray((TM, BN), dtype=out.dtype, buffer=nl.sbuf)
                for tn in range(0, BN, TN):
                    nisa.tensor_copy(dst=row[:, tn : tn + TN], src=sums[tm, tn])
                nisa.dma_copy(dst=out[m + tm : m + tm + TM, n : n + BN], src=row)
    return out


def tile_sizes():
    """The largest nc_matmul: (M, N, K)."""
    return (
        nl.tile_size.gemm_stationary_fmax,
        nl.tile_size.gemm_moving_fmax,
        nl.tile_size.pmax,
    )


def check_operands(lhsT, rhs, block_m, block_n, block_k):
    """(K, M, N) of a product that divides into blocks of the given sizes."""
    K, M = lhsT.shape
    K_rhs, N = rhs.shape
    assert K == K_rhs, f"lhsT has K = {K} rows, rhs has {K_rhs}: they must be the same"
    assert M % block_m == 0, f"M = {M} must be a multiple of {block_m}"
    assert N % block_n == 0, f"N = {N} must be a multiple of {block_n}"
    assert K % block_k == 0, f"K = {K} must be a multiple of {block_k}"
    return K, M, N


def load_panel(block):
    """HBM block[K, cols] -> SBUF panel[128, K / 128, cols]: row t * 128 + p is panel[p, t].

    One transfer for every 128 rows: the first product can start when the first one is done.
    """
    K, cols = block.shape
    P = nl.tile_size.pmax
    panel = nl.ndarray((P, K // P, cols), dtype=block.dtype, buffer=nl.sbuf)
    for t in range(K // P):
        nisa.dma_copy(dst=panel[:, t, :], src=block[t * P : (t + 1) * P, :])
    return panel


def multiply_panels(lhsT_panel, rhs_panel):
    """A PSUM tile [M, N] = lhsT_panel[128, T, M] times rhs_panel[128, T, N], summed over T."""
    M, N = lhsT_panel.shape[2], rhs_panel.shape[2]
    psum = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
    add_products(psum, lhsT_panel, rhs_panel, accumulate=False)
    return psum


def add_products(psum, lhsT_panel, rhs_panel, accumulate):
    """Add the products of two panels onto psum; without accumulate the first one overwrites it."""
    for t in range(lhsT_panel.shape[1]):
        nisa.nc_matmul(
            dst=psum,
            stationary=lhsT_panel[:, t, :],
            moving=rhs_panel[:, t, :],
            accumulate=(accumulate or t > 0),
        )


def store_tile(out, psum):
    """Moves a finished PSUM tile to HBM by way of SBUF, rounding to out's dtype on the way."""
    tile = nl.ndarray(psum.shape, dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=psum)
    nisa.dma_copy(dst=out, src=tile)
