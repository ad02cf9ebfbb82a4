# test: check
# args: a=float32[64,128] i=int32[16,1]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, i):
    t = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    rows = nl.load(i)
    one = rows[0:1]
    t.ap([[1, 128], [1, 32]])  # error[partition-dimension]: its step must be 32
    t.ap([[32, 128]])  # error[bad-pattern]: at least 2
    t.ap([[32, 128], [1, 0]])  # error[bad-pattern]: every size at least 1
    t.ap([[32, 128], [1, 32]], offset=1.0)  # error[bad-pattern]: the offset of ap must be an int,
    t.vector_select(0, rows)  # error[indirect-view]: gathered from HBM
    a.vector_select(1, rows)  # error[bad-dimension]: along dimension 0
    # error@+1[indirect-view]: the pattern has 64 rows, and vector_offset has 16 indices
    a.ap([[1, 64], [1, 8]], vector_offset=rows)
    a.vector_select(0, nl.ndarray((4, 2, 2), nl.int32, nl.sbuf))  # error[indirect-view]: two dimensions
    a.vector_select(0, rows).select(0, 3)  # error[indirect-view]: cannot be sliced
    a.vector_select(0, rows)[0:4]  # error[indirect-view]: cannot be sliced
    a.vector_select(0, rows).permute((1, 0))  # error[partition-dimension]: would move
    a.vector_select(0, rows).view(nl.uint8)  # error[indirect-view]: must come before a run-time
    a.select(0, one).select(0, one)  # error[indirect-view]: at most one
    t.select(0, one)  # error[partition-dimension]: at run time
    a.ap([[128, 16], [1, 8]], 0, one, rows)  # error[indirect-view]: not both
    a.select(0, rows)  # error[argument-kind]: one element
    return a
