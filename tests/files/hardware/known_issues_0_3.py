# test: check
# nki: 0.3
# args: a=float32[64,64] b=float32[64,64]
"""What the release notes list as unsupported on hardware; the library's own calls are not meant."""
import nki
import nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.load(b)
    z = nl.divide(x, y)  # warning[NKI0702]: nl.divide is documented as unsupported on hardware in
    z = z / y  # warning[NKI0702]: nl.divide
    z = nl.fmod(z, y)  # warning[NKI0702]: nl.fmod
    z = nl.mod(z, y)  # warning[NKI0702]: nl.mod
    z = nl.power(z, 2.0)  # warning[NKI0702]: nl.power of a tile and a number
    z = nl.power(z, y)
    z = nl.add(z, y)
    z = nl.multiply(z, 2.0)
    z = nl.softmax(z, axis=1)
    z = nl.tan(z)
    p = nl.matmul(z, y)  # warning[NKI0702]: nl.matmul without transpose_x=True
    # warning@+1[NKI0702]: nl.copy of a tile in PSUM
    p = nl.matmul(nl.copy(p), y, transpose_x=True)
    nl.store(out, p)  # warning[NKI0702]: nl.store of a tile in PSUM is documented as unsupported
    return out
