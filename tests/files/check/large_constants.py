# test: check
# args: a=float32[128,64]
# target: trn3
import nki
import nki.isa as nisa
import nki.language as nl

INF = float("inf")


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    h = nl.ndarray((128, 64), dtype=nl.float16, buffer=nl.sbuf)
    nisa.memset(dst=h, value=70000.0)  # warning[constant-overflow]: memset: `value` is 70000.0, which becomes infinity in float16, whose largest finite number is 65504
    nisa.memset(dst=h, value=-65520.0)  # warning[constant-overflow]: becomes -infinity in float16
    nisa.memset(dst=h, value=65519.0)  # rounded to 65504
    nisa.memset(dst=h, value=-INF)
    e = nl.full((128, 64), 465.0, dtype=nl.float8_e4m3fn)  # warning[constant-overflow]: becomes NaN in float8_e4m3fn, whose largest finite number is 448
    nisa.memset(dst=e, value=464.0)
    b = nl.full((128, 64), -3.4028234663852886e38, dtype=nl.bfloat16)  # warning[constant-overflow]: becomes -infinity in bfloat16, whose largest finite number is 3.3895314e+38
    nisa.tensor_copy(dst=h, src=e)
    nisa.tensor_tensor(dst=h, data1=h, data2=b, op=nl.add)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.minimum, operand0=1e300)  # warning[constant-overflow]: `operand0` is 1e+300, which becomes infinity in float32, whose largest finite number is 3.4028235e+38
    nisa.tensor_scalar(dst=x, data=x, op0=nl.minimum, operand0=INF, op1=nl.add, operand1=-1e39)  # warning[constant-overflow]: `operand1`
    nisa.tensor_scalar(dst=x, data=x, op0=nl.maximum, operand0=-3.4028234663852886e38)
    nisa.tensor_scalar(dst=h, data=h, op0=nl.multiply, operand0=1e5)  # in float32
    nisa.activation(dst=x, op=nl.copy, data=x, bias=1e39)  # warning[constant-overflow]: activation: `bias`
    nisa.activation(dst=x, op=nl.copy, data=x, scale=-1e39)  # warning[constant-overflow]: activation: `scale`
    nisa.affine_select(dst=h, pattern=[[1, 64]], channel_multiplier=-1, on_true_tile=h, on_false_value=-1e5)  # warning[constant-overflow]: `on_false_value` is -100000.0, which becomes -infinity in float16
    p = nl.full((128, 64), 1, dtype=nl.uint8)
    nisa.select_reduce(dst=h, predicate=p, on_true=h, on_false=-7e4)  # warning[constant-overflow]: `on_false` is -70000.0, which becomes -infinity in float16
    nisa.select_reduce(dst=x, predicate=p, on_true=x, on_false=-7e4)
    v = nl.ndarray((128, 8), dtype=nl.float16, buffer=nl.sbuf)
    nisa.max8(dst=v, src=h)
    nisa.nc_match_replace8(dst=h, data=h, vals=v, imm=7e4)  # warning[constant-overflow]: `imm` is 70000.0, which becomes infinity in float16
    nisa.tensor_tensor(dst=x, data1=x, data2=h, op=nl.add)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
