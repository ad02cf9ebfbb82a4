# test: check
# args: a=float32[128,512]
"""Parameters of former versions, each refused at the argument."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.load(a)
    p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    r = nisa.register_alloc(0)
    nisa.tensor_copy(dst=x, src=y, mask=None)  # error[removed-name]: `mask` since NKI beta2
    nisa.tensor_copy(dst=x, src=y, dtype=nl.bfloat16)  # error[removed-name]: `dtype` since
    nisa.memset(shape=(128, 512), value=0)  # error[removed-name]: `shape` since NKI beta2
    nisa.iota(x, expr=1)  # error[removed-name]: `expr` since NKI beta2
    nisa.affine_select(x, pred=1)  # error[removed-name]: `pred` since NKI beta2
    nisa.nc_matmul(p, y, y, psumAccumulateFlag=1)  # error[removed-name]: `psumAccumulateFlag` since
    nisa.nc_matmul(p, y, y, is_moving_zero=True)  # error[removed-name]: `is_moving_zero` since
    nisa.dma_copy(x, y, dst_rmw_op=nl.add)  # error[removed-name]: `dst_rmw_op` since NKI 0.3
    nisa.dma_copy(x, y, unique_indices=True)  # error[removed-name]: `unique_indices` since NKI 0.3
    nisa.register_move(r, imm=3)  # error[removed-name]: `imm` since NKI 0.3
    nisa.affine_select(x, [[1, 512]], 0, 1, y, 0.0)  # error[argument-kind]: `on_false_value` is
    nisa.dma_compute(x, [x, y], [1.0, 1.0], nl.add)  # error[argument-kind]: `reduce_op` is a list
    nisa.memset((128, 512), 0.0, nl.float32)  # error[argument-kind]: `dst` is a tuple
    nisa.tensor_copy(x)  # error[wrong-call]: `src` is missing; the first argument is dst
    made = nisa.tensor_copy(x, y)
    nisa.tensor_copy(x, made)  # error[argument-kind]: `src` is an NkiInstruction
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, x)
    return out
