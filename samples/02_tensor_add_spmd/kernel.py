# /// nkic
# kernel = "tensor_add_spmd"
# target = "trn2"
# grid = "4x2"
# [args]
# a = "bfloat16[600, 3072]"
# b = "bfloat16[600, 3072]"
# ///
"""Matrix addition by a grid of programs.

Every program of the grid runs this same kernel and queries its position in the grid to find its
share of the work. The programs share HBM and nothing else: each has its own SBUF, and no two may
write to the same place. (A device runs one program per physical core of a logical core,
so 1 or 2; a larger grid shows how the work divides.)
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def tensor_add_spmd(a, b):
    """a + b for matrices a, b[M, N]; the grid's axes divide M and N.

    Program (i, j) of a grid [R, C] adds rows i * M/R ... and columns j * N/C ...
    """
    assert a.shape == b.shape, f"a{a.shape} and b{b.shape} must have the same shape"
    M, N = a.shape
    R, C = nl.num_programs(0), nl.num_programs(1)
    assert M % R == 0, f"M = {M} must be a multiple of the grid's {R} rows"
    assert N % C == 0, f"N = {N} must be a multiple of the grid's {C} columns"
    rows, cols = M // R, N // C
    top, left = nl.program_id(0) * rows, nl.program_id(1) * cols

    # Every program declares the same result; shared_hbm makes it one tensor.
    c = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in range(top, top + rows, nl.tile_size.pmax):
        p = min(nl.tile_size.pmax, top + rows - m)
        add_tile(
            c[m : m + p, left : left + cols],
            a[m : m + p, left : left + cols],
            b[m : m + p, left : left + cols],
        )
    return c


def add_tile(c, a, b):
    """c = a + b for HBM blocks of at most 128 rows. Called functions become part of the kernel."""
    a_tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    b_tile = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a_tile, src=a)
    nisa.dma_copy(dst=b_tile, src=b)
    # In place: `a` is not needed after the sum. VectorE adds 16-bit tiles in SBUF at double rate.
    nisa.tensor_tensor(dst=a_tile, data1=a_tile, data2=b_tile, op=nl.add)
    nisa.dma_copy(dst=c, src=a_tile)
