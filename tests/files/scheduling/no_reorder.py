# test: check
# args: a=float32[128,64] b=float32[128,64]
# nki: 0.6
# emit: ir
"""A region holds for what is called inside, and static loops; one within another is the outer."""
import nki
import nki.isa as nisa
import nki.language as nl


def act(tile):
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.sbuf)
    nisa.activation(dst=out, data=tile, op=nl.exp)
    with nl.no_reorder():
        nisa.activation(dst=out, data=out, op=nl.exp)
    return out


@nki.jit
def kernel(a, b):
    tiles = [nl.load(a), nl.load(b)]
    with nl.no_reorder():
        for i in nl.static_range(2):  # warning[deprecated]: is deprecated
            tiles[i] = act(tiles[i])
    for i in nl.dynamic_range(2):  # warning[deprecated]: is deprecated
        with nl.no_reorder():
            nisa.tensor_tensor(dst=tiles[0], data1=tiles[0], data2=tiles[1], op=nl.add)
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, tiles[0])
    return out
