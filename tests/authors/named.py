"""Names of NKI that are read outside of the kernel, and compared and looked up inside."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TYPES = {nl.float32: "f", nl.bfloat16: "b"}
OPERATORS = {nl.exp: "e", nl.gelu: "g"}
ENGINES = {nisa.engine.vector: "v"}
BUFFERS = {nl.sbuf: "s", nl.psum: "p"}
CALLS = {nisa.tensor_copy: "c"}
LIST = [nl.float32, nl.exp, nisa.engine.vector, nl.sbuf, nisa.tensor_copy]


def chosen(t, op=nl.exp, by=nisa.activation):
    assert op == nl.exp and op != nl.gelu and by == nisa.activation
    by(t, op=op, data=t)


@nki.jit
def named_(a, op=nl.exp, dtype=nl.float32):
    t = nl.load(a)
    print(TYPES[nl.float32], TYPES[a.dtype], TYPES[dtype], dtype == a.dtype, a.dtype in TYPES)
    print(OPERATORS[nl.exp], OPERATORS[op], op in OPERATORS, nl.relu in OPERATORS, op == nl.exp)
    print(ENGINES[nisa.engine.vector], BUFFERS[t.buffer], BUFFERS[nl.psum], CALLS[nisa.tensor_copy])
    print([one in LIST for one in (nl.exp, nl.sbuf, a.dtype, nisa.tensor_copy, nl.gelu)])
    print(nl.exp.__name__, nisa.tensor_copy.__name__, op.__name__, LIST.index(nl.exp))
    print(a.dtype == np.float32, a.dtype == np.dtype("float32"), a.dtype == np.float16)
    print(np.float32 == a.dtype, nl.bool_ == np.bool_)
    chosen(t)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out
