# test: check
# args: a=float32[128,64] b=float32[128,64]
# emit: ir
"""`with_schedule` in the file: the kernel with the schedule is the one that is compiled."""
import nki
import nki.isa as nisa
import nki.language as nl


def act(i, tile):
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.sbuf)
    nisa.activation(dst=out, data=tile, op=nl.exp, name=f"act{i}")
    return out


@nki.jit()
def kernel(a, b):
    x, y = act(0, nl.load(a)), act(1, nl.load(b))
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(x, y))
    return out


edges = []
for i in range(1, 2):
    edges.append((f"act{i}", [f"act{i - 1}"]))
scheduled = kernel.with_schedule(edges)
