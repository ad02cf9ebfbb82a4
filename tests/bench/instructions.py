"""One line for every row of the instruction table: the legal instance of tests/unit/instances.py,
mostly tiles of 128 x 512.

Simulated time is from the issue of the instruction to its result, on its target. Our time is
that of one more such instruction in a program, decoding and checks included. NumPy's is that of
the shortest NumPy expression with the same result, on float32 arrays of the same size; random
numbers are its PCG64. What cores or ranks do together is of all of them: two cores, four ranks.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.instructions import ROWS
from nkic.machine.operands import Register, Row
from nkic.machine.operands import Tile as FactTile
from nkic.machine.targets import TARGETS, Target
from nkic.machine.timing import timing
from nkic.simulate.numerics import quiet
from tests.harness.drawing import Draw
from tests.harness.instruction import Call, Tile, built_cores, tile
from tests.models import MODELS
from tests.unit.instances import LEGAL, facts_of

Array = NDArray[Any]
REPEATS, TIMES = 24, 5

RNG = np.random.default_rng(0)
X, Y, OUT = (RNG.standard_normal((128, 512)).astype(np.float32) for _ in range(3))
MASK, COLUMN, EIGHT = Y > 0, X[:, :1].copy(), X[:, :8].copy()
LEFT, AT = X[:, :64].copy(), RNG.integers(0, 512, (128, 8))
INDEX = np.arange(512, dtype=np.float32)


def _exp(x: Array = X) -> Array:
    return np.exp(x, out=OUT)


def _find() -> Array:
    found: Array = (X[:, None, :] == EIGHT[:, :, None]).argmax(2)
    return found


def _bn_stats() -> tuple[Array, ...]:
    parts = X[:, ::2], X[:, 1::2]
    return tuple(f(part, axis=1) for part in parts for f in (np.mean, np.var))


def _quantize() -> Array:
    groups = np.abs(X[:64]).reshape(8, 8, 128, 4)
    scale = 2.0 ** np.floor(np.log2(groups.max((1, 3), keepdims=True)))
    scaled: Array = (groups / scale).astype(np.float16)
    return scaled


NUMPY: dict[str, Callable[[], Any]] = {
    "register_alloc": lambda: None,
    "register_move": lambda: None,
    "register_load": lambda: X[0, 0].item(),
    "register_store": lambda: OUT[:1, :1].fill(1),
    "scalar_load": lambda: X[0, 0].item(),
    "scalar_store": lambda: OUT[:1, :1].fill(1),
    "scalar_compute": lambda: None,
    "dma_copy": lambda: np.copyto(OUT, X),
    "dma_transpose": lambda: X[:16, :128].T.copy(),
    "dma_compute": lambda: np.add(X, Y, out=OUT),
    "nc_matmul": lambda: LEFT.T @ X,
    "nc_matmul_mx": lambda: np.tile(LEFT, (4, 1)).T @ np.tile(X, (4, 1)),
    "quantize_mx": _quantize,
    "nc_transpose": lambda: LEFT.T.copy(),
    "tensor_copy": lambda: np.copyto(OUT, X),
    "memset": lambda: OUT.fill(1.5),
    "tensor_tensor": lambda: np.add(X, Y, out=OUT),
    "tensor_scalar": lambda: np.multiply(X, 2, out=OUT),
    "scalar_tensor_tensor": lambda: np.add(X * COLUMN, Y, out=OUT),
    "tensor_reduce": lambda: X.sum(1),
    "tensor_tensor_scan": lambda: np.add.accumulate(X, axis=1, out=OUT),
    "bn_stats": _bn_stats,
    "bn_aggr": lambda: (EIGHT.mean(1), EIGHT.var(1)),
    "reciprocal": lambda: np.reciprocal(X, out=OUT),
    "tensor_copy_predicated": lambda: np.copyto(OUT, X, where=MASK),
    "max8": lambda: np.sort(np.partition(X, -8, axis=1)[:, -8:], axis=1),
    "tensor_scalar_reduce": lambda: np.multiply(X, 2, out=OUT).sum(1),
    "tensor_scalar_cumulative": lambda: np.add.accumulate(X, axis=1, out=OUT),
    "select_reduce": lambda: np.where(MASK, X, np.float32(0)).max(1),
    "range_select": lambda: np.where((INDEX >= COLUMN) & (INDEX < 9), X, np.float32(0)).max(1),
    "nc_find_index8": _find,
    "nc_match_replace8": _find,
    "nc_stream_shuffle": lambda: np.copyto(OUT, X),
    "nc_n_gather": lambda: np.take_along_axis(X, AT, 1),
    "local_gather": lambda: np.take(X, AT[:16].T.ravel(), axis=1),
    "tensor_partition_reduce": lambda: X.sum(0),
    "topk": lambda: np.argsort(X[:, :42], axis=1, kind="stable")[:, -8:],
    "sequence_bounds": lambda: np.flatnonzero(np.diff(INDEX)),
    "nonzero_with_count": lambda: [np.flatnonzero(row) for row in X[::16]],
    "exponential": _exp,
    "activate2": lambda: np.tanh(X * 2 + COLUMN, out=OUT),
    "activation": _exp,
    "activation_reduce": lambda: _exp().sum(1),
    "dropout": lambda: np.where(RNG.random(X.shape, np.float32) < 0.5, 0, X),
    "rng": lambda: RNG.integers(0, 2**32, X.shape, np.uint32),
    "set_rng_seed": lambda: np.random.default_rng(7),
    "rand2": lambda: RNG.random(X.shape, np.float32),
    "rand_set_state": lambda: np.copyto(OUT[:, :6], X[:, :6]),
    "rand_get_state": lambda: np.copyto(OUT[:, :6], X[:, :6]),
    "iota": lambda: np.copyto(OUT, INDEX),
    "affine_select": lambda: np.where(INDEX == COLUMN, X, np.float32(0)),
    "device_print": lambda: X.copy(),
    "core_barrier": lambda: None,
    "sendrecv": lambda: (X.copy(), Y.copy()),
    "rank_id": lambda: None,
    "collective_permute_implicit_current_processing_rank_id": lambda: None,
    "all_reduce": lambda: np.stack([X + Y + X + Y] * 4),
    "reduce_scatter": lambda: X + Y + X + Y,
    "all_gather": lambda: np.stack([np.concatenate([X, Y, X, Y])] * 4),
    "all_to_all": lambda: np.stack([X, Y, X, Y]).swapaxes(0, 1).copy(),
    "all_gather_v": lambda: np.stack([np.concatenate([X, Y, X, Y])] * 4),
    "all_to_all_v": lambda: np.stack([X, Y, X, Y]).swapaxes(0, 1).copy(),
    "all_gather_v_trigger": lambda: np.stack([np.concatenate([X, Y, X, Y])] * 4),
    "all_to_all_v_trigger": lambda: np.stack([X, Y, X, Y]).swapaxes(0, 1).copy(),
    "all_gather_v_prepare": lambda: X[:3, :4].copy(),
    "all_to_all_v_prepare": lambda: X[:3, :4].copy(),
    "collective_permute": lambda: [x.copy() for x in (X, Y, X, Y)],
    "collective_permute_implicit": lambda: [x.copy() for x in (X, Y, X, Y)],
    "collective_permute_implicit_reduce": lambda: [x + Y for x in (X, Y, X, Y)],
}
RANKS = 4
ON_TWO_CORES = {"core_barrier", "sendrecv", "all_gather_v", "all_gather_v_trigger"}
COUNTS = [[1] * RANKS, [0] * RANKS, [0] * RANKS]  # one element to each rank


def target_of(row: Row) -> Target:
    """Return trn2, or the first target that has the instruction."""
    return next(t for t in TARGETS.values() if t.generation >= max(3, row.generation))


def legal(name: str) -> Call:
    """Return the legal instance, on tiles that hold numbers."""
    draw, row = Draw(0), ROWS[name]
    values = {o.name: LEGAL[name].get(o.name, o.default) for o in row.operands}
    values |= {a.name: LEGAL[name].get(a.name, a.default) for a in row.attributes}
    for key, value in values.items():
        values[key] = _made(value)
        if isinstance(values[key], Tile):
            window = values[key].window(values[key].tensor.contents)
            window[...] = draw.numbers(window.shape, values[key].dtype, 3)
    if name in MODELS and (fill := MODELS[name].fill):
        fill(draw, values)
    for counts in filter(None, map(values.get, ("metadata_tensor", "prepared"))):
        counts.window(counts.tensor.contents)[...] = np.array(COUNTS, np.uint32)
    return Call(name, values)


def calls_of(name: str) -> list[Call]:
    """Return the legal instance on each core."""
    if name not in ON_TWO_CORES:
        return [legal(name)]
    one = legal(name)
    other = one if name == "core_barrier" else legal(name)
    if name == "sendrecv":
        other.values.update(send_to_rank=0, recv_from_rank=0)
    return [one, other]


def prepared(name: str, count: int, target: str) -> Callable[[], Any]:
    """Return the run of a program with this number of the instruction."""
    build = built_cores([[call] * count for call in calls_of(name)], target)
    ranks = RANKS if ROWS[name].module == "nki.collectives" else 1
    contents = [{tensor: tensor.contents for tensor in build.own}] * ranks
    return lambda: build.run_ranks(contents)


def _made(value: Any) -> Any:
    if isinstance(value, Register):
        return f"${value.number}"
    if not isinstance(value, FactTile):
        return value
    buffer = value.buffer.value
    kind = buffer.removeprefix("shared_")
    made = tile(value.shape, dtype=value.dtype.name, buffer=kind, start=value.start)
    made.tensor.buffer = buffer
    return made


def simulated(row: Row, target: Target) -> float:
    """Return the microseconds from the issue of the instruction to its result."""
    _, facts = facts_of(row.name, target)
    found = timing(row, facts, row.choose(facts))
    return (found.start + found.hold + found.latency) / 1e6


def best(action: Callable[[], Any]) -> float:
    """Return the seconds of the fastest of a few runs."""
    taken = []
    for _ in range(TIMES):
        before = time.perf_counter()
        action()
        taken.append(time.perf_counter() - before)
    return min(taken)


def ours(name: str, target: str) -> float:
    """Return the seconds of one more of this instruction in a program."""
    one, many = (prepared(name, count, target) for count in (1, 1 + REPEATS))
    return max(0.0, best(many) - best(one)) / REPEATS


def numpys(name: str) -> float:
    with quiet():
        NUMPY[name]()
        return best(lambda: [NUMPY[name]() for _ in range(REPEATS)]) / REPEATS


def bench_instructions() -> None:
    print("\n## Instructions, µs\n")
    print("| instruction | target | simulated | nki-run | NumPy |\n|---|---|---:|---:|---:|")
    for name, row in ROWS.items():
        target = target_of(row)
        times = simulated(row, target), ours(name, target.name) * 1e6, numpys(name) * 1e6
        cells = " | ".join(f"{t:.2f}" if t < 10 else f"{t:.0f}" for t in times)
        print(f"| `{name}` | {target.name} | {cells} |")
