# test: check
# nki: 0.4
# args: a=float32[64,64]
"""Binary functions broadcast from NKI 0.5 on; what the library does inside is its own affair."""
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.softmax(x, axis=1)
    nl.store(out, y)
    nl.add(x, x[:, 0:1])  # error[NKI0346]: (64, 64) and (64, 1) are not equal; nki.language broad
    return out
