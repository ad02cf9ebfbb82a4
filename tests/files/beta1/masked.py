# test: compile
# args: a=float32[200,512]
# emit: ir
"""Masks are extents, assignments write their target, and zeros in PSUM cost nothing."""
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:128, 0:512]
    tiles = nl.ndarray((2, nl.par_dim(128), 512), dtype=a.dtype)
    psum = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(2):
        inside = i * 128 + ip < 200
        tiles[i, ip, i_f] = nl.load(a[i * 128 + ip, i_f], mask=inside)
        psum += nisa.nc_matmul(tiles[i, 0:72, 0:128], tiles[i, 0:72, :])
    nl.store(out[ip, i_f], nl.copy(psum), mask=(ip >= 8))
    nl.store(out[0:8, :], 0.0)
    return out
