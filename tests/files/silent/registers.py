# test: compile
# args: a=float32[128,64] n=int32[1,1]
"""Registers are set before they are read."""
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    out = nl.ndarray((16, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((16, 64), dtype=a.dtype, buffer=nl.sbuf)
    c = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=c, src=n)
    given = nisa.register_alloc(4)
    loaded = nisa.register_alloc()
    nisa.register_load(loaded, c)
    ranked = ncc.rank_id()
    nisa.register_store(dst=c, src=ranked)  # the instruction computes it
    never = nisa.register_alloc()
    late = nisa.register_alloc()
    for i, r in enumerate((given, loaded)):
        rows = a.ap(pattern=[[64, 4], [1, 64]], scalar_offset=r, indirect_dim=0)
        nisa.dma_copy(dst=t[4 * i : 4 * i + 4], src=rows)
    for i, r in enumerate((never, late)):
        rows = a.ap(pattern=[[64, 4], [1, 64]], scalar_offset=r, indirect_dim=0)
        # error@+1[NKI0224]: dma_copy reads a register that nothing has set
        nisa.dma_copy(dst=t[8 + 4 * i : 12 + 4 * i], src=rows)
    nisa.register_move(late, given)
    # error@+1[NKI0224]: register_move reads a register that nothing has set
    nisa.register_move(given, never)

    def body(i):
        nisa.register_move(never, i)

    nl.fori_loop(0, loaded, body)
    nisa.register_move(given, never)  # set, if the loop runs: a run tells
    nisa.dma_copy(dst=out, src=t)
    return out
