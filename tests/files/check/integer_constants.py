# test: check
# args: a=uint8[128,64] b=int32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    x = nl.ndarray((128, 64), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    y = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=y, src=b)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.left_shift, operand0=8)  # warning[shift-count]: tensor_scalar: `operand0` is 8, but elements of `data` have 8 bits (uint8)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.left_shift, operand0=7)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.left_shift, operand0=64, reverse0=True)
    nisa.tensor_scalar(dst=y, data=y, op0=nl.right_shift, operand0=-1)  # warning[shift-count]: `operand0` is -1, but elements of `data` have 32 bits (int32)
    nisa.tensor_scalar(dst=y, data=y, op0=nl.bitwise_and, operand0=-1, op1=nl.right_shift, operand1=32)  # warning[shift-count]: `operand1` is 32
    nisa.tensor_scalar(dst=x, data=x, op0=nl.bitwise_and, operand0=511)  # warning[constant-overflow]: `operand0` is 511, of which the 8 bits of uint8 hold the lowest only: 255; they hold -128 to 255
    nisa.tensor_scalar(dst=x, data=x, op0=nl.bitwise_and, operand0=-129)  # warning[constant-overflow]: `operand0` is -129, of which the 8 bits of uint8 hold the lowest only: 127
    nisa.tensor_scalar(dst=x, data=x, op0=nl.bitwise_and, operand0=255, op1=nl.bitwise_or, operand1=-128)
    nisa.tensor_scalar(dst=y, data=y, op0=nl.bitwise_xor, operand0=0xFFFFFFFF)
    nisa.tensor_scalar(dst=y, data=y, op0=nl.add, operand0=y[:, 0:1], op1=nl.add, operand1=1 << 32)  # warning[constant-overflow]: `operand1` is 4294967296
    # warning@+1[NKI0531]: tensor_scalar writes `y`, which iota overwrites
    nisa.tensor_scalar(dst=y, data=y, op0=nl.minimum, operand0=1 << 32)  # in float32, which holds it
    nisa.affine_select(dst=x, pattern=[[1, 64]], channel_multiplier=-1, on_true_tile=x, on_false_value=256)  # warning[constant-overflow]: `on_false_value` is 256, which becomes 255 in uint8, which holds 0 to 255
    nisa.affine_select(dst=x, pattern=[[1, 64]], channel_multiplier=-1, on_true_tile=x, on_false_value=255)
    i = nl.ndarray((128, 64), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.iota(dst=i, pattern=[[1, 64]], channel_multiplier=1)
    nisa.iota(dst=i, pattern=[[4, 64]], channel_multiplier=1)  # warning[constant-overflow]: iota: an index is 379, which does not fit in the uint8 of `dst`, 0 to 255
    nisa.iota(dst=i, pattern=[[-1, 64]], offset=62)  # warning[constant-overflow]: an index is -1, which
    nisa.iota(dst=i, pattern=[[-1, 8], [1, 8]], offset=248)
    nisa.iota(dst=i, pattern=[[-1, 8], [1, 8]], offset=249)  # warning[constant-overflow]: an index is 256
    nisa.iota(dst=i, pattern=[[-1, 8], [1, 8]], offset=6)  # warning[constant-overflow]: an index is -1
    nisa.tensor_copy_predicated(dst=x, src=256, predicate=i)  # warning[constant-overflow]: `src` is 256, which becomes 255 in uint8
    nisa.tensor_tensor(dst=x, data1=x, data2=i, op=nl.bitwise_xor)
    nisa.iota(dst=y, pattern=[[1, 64]], offset=2147483647)  # warning[constant-overflow]: an index is 2147483710, which wraps around: indices are computed in int32
    f = nl.ndarray((128, 64), dtype=nl.float16, buffer=nl.sbuf)
    nisa.iota(dst=f, pattern=[[1, 64]], offset=65519 - 63)
    nisa.iota(dst=f, pattern=[[1, 64]], offset=65520 - 63)  # warning[constant-overflow]: does not fit in the float16
    nisa.tensor_tensor(dst=f, data1=f, data2=y, op=nl.add)
    nisa.tensor_tensor(dst=f, data1=f, data2=x, op=nl.add)
    out = nl.ndarray((128, 64), dtype=nl.float16, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=f)
    return out
