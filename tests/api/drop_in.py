"""Kernels as users write them, for nkic in place of nki."""

import dataclasses

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
from nki.isa.constants import dge_mode
from nki.typing import tensor


@dataclasses.dataclass
class Config(nl.NKIObject):
    """A kernel's settings."""

    factor: float = 1.0
    op: object = nl.multiply


@nki.jit
def add(a: tensor[128, 8], b):
    """Return a + b."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.add(nl.load(a), nl.load(b)))
    return out


@nki.jit(platform_target="trn1", show_compiler_tb=True)
def on_trn1(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.multiply(nl.load(a), int(nisa.get_nc_version())))
    return out


@nki.jit
def scaled(x, config, engine=nisa.engine.unknown):
    """Pass numbers, operators and enumerations of NKI as arguments."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x, dge_mode=dge_mode.none)
    nisa.tensor_scalar(dst=tile, data=tile, op0=config.op, operand0=config.factor, engine=engine)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def converted(x, dtype, buffer=nl.shared_hbm):
    """Return x in another element type."""
    out = nl.ndarray(x.shape, dtype=dtype, buffer=buffer)
    nisa.dma_copy(dst=out, src=x)
    return out


@nki.jit
def sum_and_difference(a, b):
    """Return two results."""
    total = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rest = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(total, value=nl.add(nl.load(a), nl.load(b)))
    nl.store(rest, value=nl.subtract(nl.load(a), nl.load(b)))
    return total, rest


@nki.jit
def into(a, b, c):
    """Store a + b into the argument c; each instance of the grid writes one tile."""
    x, y = nl.program_id(0) * 128, nl.program_id(1) * 512
    left = nl.load(a[x : x + 128, y : y + 512])
    right = nl.load(b[x : x + 128, y : y + 512])
    nl.store(c[x : x + 128, y : y + 512], value=nl.add(left, right))


@nki.jit
def per_core(x):
    """Double the rows, half of them on each core."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[0] // nl.num_programs(0)
    first = nl.program_id(0) * rows
    tile = nl.load(x[first : first + rows, :])
    nl.store(out[first : first + rows, :], value=nl.add(tile, tile))
    return out


@nki.jit
def wrong(x):
    """Use an invalid dtype."""
    return nl.ndarray(x.shape, dtype="float33", buffer=nl.shared_hbm)


def plain(a, b):
    """An undecorated function that a caller may use as a kernel."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.maximum(nl.load(a), nl.load(b)))
    return out


@nki.jit
def named(a, b):
    """Two named instructions that may run in either order."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    first, second = nl.load(a), nl.load(b)
    nisa.activation(dst=first, op=nl.exp, data=first, name="exp")
    nisa.tensor_scalar(dst=second, data=second, op0=nl.add, operand0=1.0, name="plus1")
    nisa.tensor_tensor(dst=first, data1=first, data2=second, op=nl.add)
    nl.store(out, value=first)
    return out


@nki.jit
def where_am_i(x):
    """Each instance of a two-dimensional grid writes and prints its program ids as one number."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.program_id(0), nl.program_id(1)
    tile = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(tile, value=10.0 * i + j)
    nl.device_print("ids", tile[:, 0:1])
    row = i * nl.num_programs(1) + j
    nl.store(out[row : row + 1, :], value=tile)
    return out


@nki.jit
def by_buffer(x):
    """Return x, or 2x if x is in shared HBM."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    factor = {nl.hbm: 1.0, nl.shared_hbm: 2.0}[x.buffer]
    nl.store(out, value=nl.multiply(nl.load(x), factor))
    return out


@nki.jit
def accumulated(a, b):
    """Add b to a in place, and return a."""
    nl.store(a, value=nl.add(nl.load(a), nl.load(b)))
    return a


@nki.jit
def summed_over_ranks(a):
    """Return the sum over two ranks."""
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    dst = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    nisa.dma_copy(dst=src, src=a)
    group = ncc.ReplicaGroup([[0, 1]])
    ncc.all_reduce(srcs=[src], dsts=[dst], replica_group=group, op=nl.add)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=dst)
    return out


@nki.jit
def talking(a):
    """Print at compile time and at run time."""
    print("compiled for", a.shape)
    nl.device_print("a is", a)
