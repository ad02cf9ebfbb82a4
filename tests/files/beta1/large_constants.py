# test: check
# args: a=float32[128,512] b=int32[128,512]
"""Constants of Beta 1 become what instructions of the same names make of them."""
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    bits = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
    h = nl.full((128, 512), 70000.0, dtype=nl.float16, buffer=nl.sbuf)  # warning[constant-overflow]: `value` is 70000.0, which becomes infinity in float16
    x = nl.load(a) + h
    x = nisa.tensor_scalar(x, nl.minimum, 1e39)  # warning[constant-overflow]: `operand0` is 1e+39
    x = nl.multiply(x, -1e39)  # warning[constant-overflow]: `operand0` is -1e+39
    nl.store(out, nl.maximum(x, -float("inf")))
    y = nisa.tensor_scalar(nl.load(b), nl.left_shift, 32)  # warning[shift-count]: `operand0` is 32
    y = nl.right_shift(y, 40)  # warning[shift-count]: `operand0` is 40
    nl.store(bits, nl.right_shift(y, 31))
    return out, bits
