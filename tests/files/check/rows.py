# test: check
# args: x=float32[256,512] w=float32[512] b=float32[1,512]
"""A row in one partition among tiles, columns among rows, and tensors in HBM: the help is followed
by tests/advice/test_examples.py.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x, w, b):
    out = nl.ndarray((256, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    row = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src=w)
    bias = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=bias, src=b)
    ones = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    tall = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tall, src=w)  # error[element-count-mismatch]: `src` has 512 elements [512] and `dst` has 65536
    one = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for i in range(2):
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i * 128 : (i + 1) * 128, :])
        nisa.tensor_tensor(dst=t, data1=t, data2=row, op=nl.multiply)  # error[partition-mismatch]: `data2` has 1 partition and `dst` has 128
        nisa.tensor_tensor(dst=t, data1=t, data2=ones, op=nl.add)  # error[partition-mismatch]: `data2` has 1 partition
        nisa.activation(dst=t, data=t, op=nl.gelu, bias=bias)  # error[operand-shape]: `bias` has 512 elements per partition, but must have exactly 1
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=tall)  # error[operand-shape]: `operand0` has 512 elements
        nisa.tensor_reduce(dst=one, op=nl.add, data=t, axis=1)
        nisa.tensor_tensor(dst=t, data1=t, data2=one, op=nl.multiply)  # error[element-count-mismatch]: `data2` has 1 element per partition and `dst` has 512
        nisa.tensor_tensor(dst=t, data1=t, data2=x[0:128, :], op=nl.add)  # error[buffer-not-allowed]: `data2` is in shared_hbm
        nisa.tensor_copy(dst=t[0:64, :], src=t)  # error[partition-mismatch]: `src` has 128 partitions and `dst` has 64
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=t)
    return out
