# test: check
# args: a=float32[256,64]
# grid: 2,3
"""What an instance of a launch grid knows of itself."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    assert nl.program_ndim() == 2
    assert (nl.num_programs(0), nl.num_programs(1), nl.num_programs((0, 1))) == (2, 3, 6)
    assert nl.num_programs(axes=None) == 6 and nl.num_programs([1]) == 3
    row, column = nl.program_id(0), nl.program_id(axis=1)
    assert 0 <= row < 2 and 0 <= column < 3
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    if column == 0:
        nl.store(out[row * 128 : row * 128 + 128], nl.load(a[row * 128 : row * 128 + 128]))
    return out
