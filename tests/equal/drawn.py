"""Random kernels of the instructions that the written pairs leave out, and changes to them.

A kernel is a list of steps. Each draws one instruction, with all its attributes, over the tiles of
the steps before, and makes a tile of 32 x 32. A change draws the attributes of one step again.
"""

from collections.abc import Callable, Sequence
from random import Random
from textwrap import dedent

SIDE = 32
TYPE = f"float32[{SIDE},{SIDE}]"
ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum")
COMPARED = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
NUMBERS = ("-2.0", "-1.0", "-0.5", "0.0", "0.25", "0.5", "1.0", "3.0")
FUNCTIONS = ("exp", "tanh", "sigmoid", "square", "abs", "sign", "relu", "copy", "arctan", "silu")
NARROW = ("bfloat16", "float16", "float8_e4m3", "float8_e5m2", "tfloat32")
WHOLE = ("int32", "int16", "int8", "uint8", "uint32")
PACKED = ("float8_e4m3fn", "float8_e5m2")
COMMANDS = ("reset_reduce", "reduce", "idle")

Drawn = Callable[[Random, str, list[str]], str]


class Steps:
    """The kinds of steps, by name."""

    def __init__(self) -> None:
        self.kinds: dict[str, Drawn] = {}

    def __call__(self, function: Drawn) -> Drawn:
        self.kinds[function.__name__] = function
        return function


step = Steps()


def tile(name: str, dtype: str = "float32", columns: int = SIDE, buffer: str = "sbuf") -> str:
    return f"{name} = nl.ndarray(({SIDE}, {columns}), dtype=nl.{dtype}, buffer=nl.{buffer})\n"


def number(r: Random) -> str:
    return r.choice(NUMBERS)


def column(r: Random, tiles: Sequence[str]) -> str:
    """Return a column of a tile, or a number."""
    at = r.randrange(SIDE)
    return r.choice((number(r), f"{r.choice(tiles)}[:, {at}:{at + 1}]"))


def flag(r: Random) -> bool:
    return r.random() < 0.5


@step
def scalar(r: Random, t: str, tiles: list[str]) -> str:
    ops = [r.choice((*ARITHMETIC, *COMPARED, *LOGICAL)) for _ in range(2)]
    second = f", op1=nl.{ops[1]}, operand1={column(r, tiles)}, reverse1={flag(r)}"
    return tile(t) + (
        f"nisa.tensor_scalar(dst={t}, data={r.choice(tiles)}, op0=nl.{ops[0]}, "
        f"operand0={column(r, tiles)}, reverse0={flag(r)}{second if flag(r) else ''})"
    )


@step
def power(r: Random, t: str, tiles: list[str]) -> str:
    exponent = r.choice(("-2.0", "-1.0", "-0.5", "0.0", "0.3", "0.5", "1.0", "1.5", "2.0", "3.0"))
    base = r.choice((f"nl.abs({r.choice(tiles)}) + 0.5", r.choice(tiles)))
    return tile(t) + (
        f"{t}_base, {t}_e = {base}, nl.full(({SIDE}, {SIDE}), {exponent}, dtype=nl.float32)\n"
        f"nisa.tensor_tensor(dst={t}, data1={t}_base, data2={t}_e, op=nl.power, "
        "engine=nisa.engine.gpsimd)"
    )


@step
def tensor(r: Random, t: str, tiles: list[str]) -> str:
    op = r.choice((*ARITHMETIC, *COMPARED, *LOGICAL))
    return tile(t) + (
        f"nisa.tensor_tensor(dst={t}, data1={r.choice(tiles)}, data2={r.choice(tiles)}, op=nl.{op})"
    )


@step
def three(r: Random, t: str, tiles: list[str]) -> str:
    ops = [r.choice(ARITHMETIC) for _ in range(2)]
    return tile(t) + (
        f"nisa.scalar_tensor_tensor(dst={t}, data={r.choice(tiles)}, op0=nl.{ops[0]}, "
        f"operand0={column(r, tiles)}, op1=nl.{ops[1]}, operand1={r.choice(tiles)}, "
        f"reverse0={flag(r)}, reverse1={flag(r)})"
    )


@step
def affine(r: Random, t: str, tiles: list[str]) -> str:
    pattern = r.choice(("[[1, 32]]", "[[-1, 32]]", "[[2, 8], [1, 4]]", "[[0, 4], [-3, 8]]"))
    return tile(t) + (
        f"nisa.affine_select(dst={t}, pattern={pattern}, "
        f"channel_multiplier={r.choice((-1, 0, 1, 2))}, offset={r.choice((-9, 0, 4))}, "
        f"on_true_tile={r.choice(tiles)}, on_false_value={number(r)}, "
        f"cmp_op=nl.{r.choice(COMPARED)})"
    )


@step
def ranged(r: Random, t: str, tiles: list[str]) -> str:
    bounds = "".join(
        f"{t}_{n} = nl.ndarray(({SIDE}, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
        + r.choice(
            (
                f"nisa.memset(dst={t}_{n}, value={r.randrange(SIDE)}.0)\n",
                f"nisa.tensor_copy(dst={t}_{n}, src={r.choice(tiles)}[:, {n}:{n + 1}])\n",
                f"nisa.iota(dst={t}_{n}, pattern=[[0, 1]], channel_multiplier=1, offset={n})\n",
            )
        )
        for n in range(2)
    )
    ops = [r.choice([op for op in COMPARED if op != "not_equal"]) for _ in range(2)]
    return bounds + with_reduction(
        r,
        t,
        f"nisa.range_select(dst={t}, on_true_tile={r.choice(tiles)}, comp_op0=nl.{ops[0]}, "
        f"comp_op1=nl.{ops[1]}, bound0={t}_0, bound1={t}_1, range_start={r.choice((0, 5, -3))}",
    )


def with_reduction(r: Random, t: str, call: str, more: str = "") -> str:
    """Return a call with reduce_cmd and reduce_res, which is added to the tile."""
    command = r.choice(COMMANDS[:2])
    return (
        tile(t)
        + tile(f"{t}_r", columns=1)
        + f"{call}, reduce_res={t}_r, reduce_cmd=nisa.reduce_cmd.{command}{more})\n"
        + f"{t} = nl.maximum({t}, -9.0) + nl.maximum({t}_r, -9.0)"
    )


@step
def selected(r: Random, t: str, tiles: list[str]) -> str:
    mask = f"{t}_m = nl.{r.choice(COMPARED)}({r.choice(tiles)}, {number(r)}, dtype=nl.uint8)\n"
    return mask + with_reduction(
        r,
        t,
        f"nisa.select_reduce(dst={t}, predicate={t}_m, on_true={r.choice(tiles)}, "
        f"on_false={column(r, tiles)}, reverse_pred={flag(r)}",
    )


@step
def predicated(r: Random, t: str, tiles: list[str]) -> str:
    return (
        f"{t}_m = nl.{r.choice(COMPARED)}({r.choice(tiles)}, {number(r)}, dtype=nl.uint8)\n"
        f"{t} = nl.copy({r.choice(tiles)})\n"
        f"nisa.tensor_copy_predicated(dst={t}, src={r.choice(tiles)}, predicate={t}_m, "
        f"reverse_pred={flag(r)})"
    )


@step
def counted(r: Random, t: str, tiles: list[str]) -> str:
    """Integers that are constants, their bits, and what depends on inputs times them."""
    pattern = r.choice(("[[1, 32]]", "[[-2, 32]]", "[[3, 8], [1, 4]]"))
    op = r.choice((*BITS, "logical_shift_left", "logical_shift_right"))
    op = {"logical_shift_left": "left_shift", "logical_shift_right": "right_shift"}.get(op, op)
    return (
        tile(f"{t}_i", "int32")
        + tile(f"{t}_j", "int32")
        + (
            f"nisa.iota(dst={t}_i, pattern={pattern}, channel_multiplier={r.choice((0, 1, 5))}, "
            f"offset={r.choice((0, 40))})\n"
            f"nisa.tensor_scalar(dst={t}_j, data={t}_i, op0=nl.{op}, "
            f"operand0={r.choice((1, 2, 5))})\n"
            f"{t} = nl.copy({t}_j, dtype=nl.float32) * 0.125 * {r.choice(tiles)}"
        )
    )


@step
def bits_of_masks(r: Random, t: str, tiles: list[str]) -> str:
    masks = "".join(
        f"{t}_{n} = nl.{r.choice(COMPARED)}({r.choice(tiles)}, {number(r)}, dtype=nl.int32)\n"
        for n in range(2)
    )
    return (
        masks
        + tile(f"{t}_i", "int32")
        + (
            f"nisa.tensor_tensor(dst={t}_i, data1={t}_0, data2={t}_1, op=nl.{r.choice(BITS)})\n"
            f"{t} = nl.copy({t}_i, dtype=nl.float32)"
        )
    )


@step
def function(r: Random, t: str, tiles: list[str]) -> str:
    call = (
        f"dst={t}, op=nl.{r.choice(FUNCTIONS)}, data={r.choice(tiles)}, "
        f"scale={column(r, tiles)}, bias={t}_b"
    )
    bias = f"{t}_b = nl.copy({r.choice(tiles)}[:, 3:4])\n"
    if flag(r):
        return bias + with_reduction(r, t, f"nisa.activation({call}, reduce_op=nl.add")
    return (
        bias
        + tile(t)
        + tile(f"{t}_r", columns=1)
        + (
            f"nisa.activation_reduce({call}, reduce_op=nl.add, reduce_res={t}_r)\n"
            f"{t} = {t} * 0.5 + {t}_r * 0.0625"
        )
    )


@step
def scalar_reduced(r: Random, t: str, tiles: list[str]) -> str:
    init = column(r, tiles)
    command = r.choice(("reset_reduce", "reduce", "load_reduce"))
    more = f", reduce_init={init}" if command == "load_reduce" else ""
    return (
        tile(t)
        + tile(f"{t}_r", columns=1)
        + (
            f"nisa.tensor_scalar_reduce(dst={t}, data={r.choice(tiles)}, "
            f"op0=nl.{r.choice(ARITHMETIC)}, operand0={column(r, tiles)}, "
            f"reduce_op=nl.{r.choice(('add', 'multiply', 'maximum', 'minimum'))}, "
            f"reduce_res={t}_r, "
            f"reduce_cmd=nisa.reduce_cmd.{command}, reduce_res_negate={flag(r)}{more})\n"
            f"{t} = {t} + {t}_r * 0.125"
        )
    )


@step
def cumulative(r: Random, t: str, tiles: list[str]) -> str:
    command = r.choice(("reset_reduce", "load_reduce"))
    more = f", imm1={column(r, tiles)}" if command == "load_reduce" else ""
    return tile(t) + (
        f"nisa.tensor_scalar_cumulative(dst={t}, src={r.choice(tiles)}, "
        f"op0=nl.{r.choice(ARITHMETIC)}, op1=nl.{r.choice(('add', 'maximum', 'minimum'))}, "
        f"imm0={column(r, tiles)}, reduce_cmd=nisa.reduce_cmd.{command}{more})"
    )


@step
def accumulated(r: Random, t: str, tiles: list[str]) -> str:
    """Instructions that go on with the accumulators of those before, whatever set them."""
    lines = [tile(t), tile(f"{t}_d"), tile(f"{t}_r", columns=1)]
    lines.append(f"{t}_m = nl.{r.choice(COMPARED)}({r.choice(tiles)}, 0.0, dtype=nl.uint8)\n")
    for command in ("reset_reduce", r.choice(COMMANDS), "reduce")[r.choice((0, 0, 1)) :]:
        data, command = r.choice(tiles), f"reduce_cmd=nisa.reduce_cmd.{command}"
        scalar_reduced = (
            f"nisa.tensor_scalar_reduce(dst={t}_d, data={data}, op0=nl.add, operand0=0.5, "
            f"reduce_op=nl.{r.choice(('add', 'maximum'))}, reduce_res={t}_r, {command})\n"
        )
        read = "" if command.endswith("idle") else f"reduce_res={t}_r, "
        choices = [
            f"nisa.select_reduce(dst={t}_d, predicate={t}_m, on_true={data}, on_false=-1.0, "
            f"{read}{command})\n"
        ]
        if "idle" not in command and not command.endswith("reset"):
            choices += [scalar_reduced] * 2
            looped = f"{t}_d[:, nl.ds(i, 8)]"
            choices.append(
                f"nl.fori_loop(0, 32, lambda i: {scalar_reduced.strip()}, step=8)\n".replace(
                    f"dst={t}_d", f"dst={looped}"
                ).replace(f"data={data}", f"data={data}[:, nl.ds(i, 8)]")
            )
        if "reset_reduce" in command:
            choices.append(
                f"nisa.tensor_scalar_cumulative(dst={t}_d, src={data}, op0=nl.multiply, "
                f"op1=nl.add, imm0=0.25, {command})\n"
            )
        lines.append(r.choice(choices))
    return "".join(lines) + f"{t} = {r.choice(tiles)} + {t}_r * 0.125"


@step
def scan(r: Random, t: str, tiles: list[str]) -> str:
    ops = [r.choice(ARITHMETIC) for _ in range(2)]
    return tile(t) + (
        f"nisa.tensor_tensor_scan(dst={t}, data0=nl.tanh({r.choice(tiles)}), "
        f"data1={r.choice(tiles)}, initial={column(r, tiles)}, op0=nl.{ops[0]}, "
        f"op1=nl.{ops[1]}, reverse0={flag(r)}, reverse1={flag(r)})"
    )


@step
def folded(r: Random, t: str, tiles: list[str]) -> str:
    op = r.choice((*ARITHMETIC, "logical_or"))
    group = r.choice((8, 32))
    data = f"{r.choice(tiles)}.reshape(({SIDE}, {SIDE // group}, {group}))"
    return tile(f"{t}_r", columns=SIDE // group) + (
        f"nisa.tensor_reduce(dst={t}_r, op=nl.{op}, data={data}, axis=2, negate={flag(r)})\n"
        f"{t} = nl.tanh({r.choice(tiles)}) + {t}_r[:, 0:1] * 0.25 - {t}_r[:, {SIDE // group - 1}:]"
    )


@step
def over_partitions(r: Random, t: str, tiles: list[str]) -> str:
    op = r.choice(("add", "maximum"))
    return (
        f"{t}_r = nl.ndarray((1, {SIDE}), dtype=nl.float32, buffer=nl.sbuf)\n"
        f"nisa.tensor_partition_reduce(dst={t}_r, op=nl.{op}, data={r.choice(tiles)})\n"
        f"{t} = nl.copy({r.choice(tiles)})\n"
        f"nisa.tensor_copy(dst={t}[0:1, :], src={t}_r)"
    )


@step
def statistics(r: Random, t: str, tiles: list[str]) -> str:
    part, at = r.choice((7, 16, 32)), r.choice((0, 1))
    return (
        tile(f"{t}_s", columns=6)
        + tile(f"{t}_a", columns=2)
        + (
            f"nisa.bn_stats(dst={t}_s, data={r.choice(tiles)}[:, 0:{part}])\n"
            f"nisa.bn_aggr(dst={t}_a, data={t}_s)\n"
            f"{t} = {r.choice(tiles)} * {t}_a[:, {at}:{at + 1}]"
            f" + {t}_s[:, {r.randrange(6)}:][:, 0:1]"
        )
    )


@step
def products(r: Random, t: str, tiles: list[str]) -> str:
    """Products that are added up in PSUM, or overwrite each other."""
    cuts = sorted(r.sample(range(1, SIDE), 2))
    lines, adds = [tile(f"{t}_p", buffer="psum")], False
    for low, high in zip((0, *cuts), (*cuts, SIDE), strict=True):
        one, other = r.choice(tiles), r.choice(tiles)
        lines.append(
            f"nisa.nc_matmul(dst={t}_p, stationary={one}[0:{high - low}, :], "
            f"moving={other}[0:{high - low}, :], accumulate={adds})\n"
        )
        adds = r.random() < 0.7
    return "".join(lines) + f"{t} = nl.copy({t}_p) * 0.125"


@step
def turned(r: Random, t: str, tiles: list[str]) -> str:
    source = r.choice(tiles)
    if flag(r):
        call = f"nisa.nc_transpose(dst={t}, data={source}, engine=nisa.engine.vector)"
        return tile(t) + call
    return tile(f"{t}_p", buffer="psum") + (
        f"{t}_e = nl.shared_identity_matrix({SIDE}, dtype=nl.float32)\n"
        f"nisa.nc_matmul(dst={t}_p, stationary={source}, moving={t}_e, accumulate=False)\n"
        f"{t} = nl.copy({t}_p)"
    )


@step
def rounded(r: Random, t: str, tiles: list[str]) -> str:
    return (
        f"{t} = nl.copy(nl.copy({r.choice(tiles)}, dtype=nl.{r.choice(NARROW)}), dtype=nl.float32)"
    )


@step
def remainder(r: Random, t: str, tiles: list[str]) -> str:
    """A tile less its rounding, or that of another, or of a multiple of it."""
    source, dtype = r.choice(tiles), r.choice(NARROW[:4])  # the fifth is rounded to in all runs
    factor = r.choice(("", "", "", " * 2.0", " * 0.3", " * -1.0"))
    of = r.choice((source, source, source, r.choice(tiles)))
    return (
        f"{t}_s = nl.copy({source}{factor})\n"
        f"{t}_n = nl.copy({r.choice((of, f'{t}_s'))}, dtype=nl.{dtype})\n"
        f"{t} = {r.choice((f'{t}_s', source))} - nl.copy({t}_n, dtype=nl.float32){factor}"
    )


@step
def whole(r: Random, t: str, tiles: list[str]) -> str:
    source = r.choice((r.choice(tiles), f"nl.greater({r.choice(tiles)}, {number(r)})"))
    return f"{t} = nl.copy(nl.copy({source}, dtype=nl.{r.choice(WHOLE)}), dtype=nl.float32)"


@step
def through_hbm(r: Random, t: str, tiles: list[str]) -> str:
    dtype, source = r.choice(("float32", *NARROW[:3])), r.choice(tiles)
    pattern = r.choice(("[[32, 32], [1, 32]]", "[[1, 32], [32, 32]]", "[[32, 32], [-1, 32]]"))
    start = 31 if "-1" in pattern else 0
    return (
        tile(f"{t}_h", dtype, buffer="hbm")
        + tile(t)
        + f"nisa.dma_copy(dst={t}_h, src={source})\n"
        + f"nisa.dma_copy(dst={t}, src={t}_h.ap({pattern}, offset={start}))"
    )


@step
def added_by_dma(r: Random, t: str, tiles: list[str]) -> str:
    sources = ", ".join(r.choice(tiles) for _ in range(r.choice((1, 2, 3))))
    dtype = r.choice(("float32", "bfloat16"))
    return tile(f"{t}_n", dtype) + (
        f"nisa.dma_compute(dst={t}_n, srcs=[{sources}], reduce_op=nl.add)\n"
        f"{t} = nl.copy({t}_n, dtype=nl.float32)"
    )


@step
def filled(r: Random, t: str, tiles: list[str]) -> str:
    """A part of a tile is infinite or NaN, and then written over or left out, or not."""
    value = r.choice(("inf", "-inf", "nan"))
    end = r.choice((31, 32, 32))
    return tile(t) + (
        f'nisa.memset(dst={t}, value=float("{value}"))\n'
        f"nisa.tensor_copy(dst={t}[:, 0:{end}], src={r.choice(tiles)}[:, 0:{end}])\n"
        f"{t} = nl.{r.choice(('maximum', 'minimum', 'multiply'))}({t}, {number(r)})"
    )


@step
def gathered(r: Random, t: str, tiles: list[str]) -> str:
    index = f"{t}_i"
    return (
        tile(index, "uint32")
        + tile(t)
        + (
            f"nisa.iota(dst={index}, pattern=[[{r.choice((0, 1))}, 32]], "
            f"channel_multiplier={r.choice((0, 1))}, offset={r.choice((0, 2))})\n"
            f"nisa.nc_n_gather(dst={t}, data={r.choice(tiles)}, indices={index})"
        )
    )


@step
def by_rows(r: Random, t: str, tiles: list[str]) -> str:
    """Rows are gathered from HBM, or scattered into it, at the addresses in a tile."""
    into = "[[32, 32], [1, 32]]"
    at = f"{t}_h.ap({into}, vector_offset={t}_i, indirect_dim=0)"
    first = f"nisa.iota(dst={t}_i, pattern=[[0, 1]], channel_multiplier=-1, offset=31)\n"
    if flag(r):
        first = f"nisa.iota(dst={t}_i, pattern=[[0, 1]], channel_multiplier=1, offset=0)\n"
    moves = (
        f"nisa.dma_copy(dst={t}_h, src={r.choice(tiles)})\nnisa.dma_copy(dst={t}, src={at})"
        if flag(r)
        else f"nisa.dma_copy(dst={at}, src={r.choice(tiles)})\nnisa.dma_copy(dst={t}, src={t}_h)"
    )
    dtypes = tile(f"{t}_h", buffer="hbm") + tile(f"{t}_i", "int32", 1) + tile(t)
    return dtypes + first + moves


@step
def looped(r: Random, t: str, tiles: list[str]) -> str:
    """A device loop with a run-time offset, and one that carries a tile."""
    source, op = r.choice(tiles), r.choice(ARITHMETIC)
    return (
        f"{t} = nl.copy({r.choice(tiles)})\n"
        f"def {t}_body(i):\n"
        f"    nisa.tensor_tensor(dst={t}[:, nl.ds(i, 4)], data1={t}[:, nl.ds(i, 4)], "
        f"data2={source}[:, 0:4], op=nl.{op})\n"
        f"nl.fori_loop({r.choice((0, 4))}, {r.choice((24, 32))}, {t}_body, step=4)"
    )


@step
def repeated(r: Random, t: str, tiles: list[str]) -> str:
    source, op = r.choice(tiles), r.choice(ARITHMETIC)
    return (
        f"{t} = nl.copy({r.choice(tiles)})\n"
        f"def {t}_body(i):\n"
        f"    nisa.tensor_tensor(dst={t}, data1={t}, data2={source}, op=nl.{op})\n"
        f"nl.fori_loop(0, {r.choice((2, 3))}, {t}_body)"
    )


@step
def shuffled(r: Random, t: str, tiles: list[str]) -> str:
    mask = [r.choice((255, r.randrange(SIDE))) for _ in range(SIDE)]
    return f"{t} = nl.copy({r.choice(tiles)})\n" + (
        f"nisa.nc_stream_shuffle(dst={t}, src={r.choice(tiles)}, shuffle_mask={mask})"
    )


@step
def topmost(r: Random, t: str, tiles: list[str]) -> str:
    return tile(f"{t}_m", columns=8) + (
        f"nisa.max8(dst={t}_m, src={r.choice(tiles)})\n{t} = {r.choice(tiles)} - {t}_m[:, 0:1]"
    )


@step
def microscaled(r: Random, t: str, tiles: list[str]) -> str:
    """Two tiles are quantised in groups, or one with itself, and multiplied."""
    sides = "".join(
        tile(f"{t}_{n}", f"{r.choice(PACKED)}_x4", SIDE // 4)
        + tile(f"{t}_s{n}", "uint8", SIDE // 4)
        + f"nisa.quantize_mx(dst={t}_{n}, src=nl.copy({r.choice(tiles)}, dtype=nl.bfloat16), "
        f"dst_scale={t}_s{n})\n"
        for n in range(2)
    )
    one, other = (r.choice((0, 1)) for _ in range(2))
    product = (
        f"{t}_p = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)\n"
        f"nisa.nc_matmul_mx(dst={t}_p, stationary={t}_{one}, moving={t}_{other}, "
        f"stationary_scale={t}_s{one}, moving_scale={t}_s{other})\n"
    )
    return sides + product + f"{t} = nl.copy({r.choice(tiles)})\n{t}[0:8, 0:8] = nl.copy({t}_p)"


@step
def by_core(r: Random, t: str, tiles: list[str]) -> str:
    """Each of two cores computes something else."""
    factor = f"(nl.program_id(0) * {number(r)} + {number(r)})"
    return f"{t} = nl.{r.choice(ARITHMETIC)}({r.choice(tiles)}, {factor})"


@step
def handed_over(r: Random, t: str, tiles: list[str]) -> str:
    """Two cores share a tensor of HBM, and read their own part of it or that of the other."""
    shared = f"{t}_h = nl.ndarray((2, {SIDE}, {SIDE}), dtype=nl.float32, buffer=nl.shared_hbm)\n"
    core = "nl.program_id(0)"
    part = r.choice((core, f"1 - {core}", "0", "1"))
    return (
        shared
        + tile(t)
        + (
            f"nisa.dma_copy(dst={t}_h[{core}], src={r.choice(tiles)} * ({core} + 1.0))\n"
            f"nisa.core_barrier({t}_h, (0, 1))\n"
            f"nisa.dma_copy(dst={t}, src={t}_h[{part}])"
        )
    )


@step
def sent(r: Random, t: str, tiles: list[str]) -> str:
    """Two cores send each other a tile."""
    return (
        f"{t}, {t}_o = nl.copy({r.choice(tiles)}), 1 - nl.program_id(0)\n"
        f"nisa.sendrecv(src={r.choice(tiles)}, dst={t}, send_to_rank={t}_o, "
        f"recv_from_rank={t}_o, pipe_id=0)"
    )


@step
def reduced(r: Random, t: str, tiles: list[str]) -> str:
    """A collective of the only rank."""
    tensors = "".join(tile(f"{t}_{n}", buffer="shared_hbm") for n in ("a", "b"))
    op = r.choice(("add", "maximum"))
    return (
        tensors
        + tile(t)
        + (
            f"nisa.dma_copy(dst={t}_a, src={r.choice(tiles)})\n"
            f"nki.collectives.all_reduce(srcs=[{t}_a], dsts=[{t}_b], "
            f"replica_group=nki.collectives.ReplicaGroup([[0]]), op=nl.{op})\n"
            f"nisa.dma_copy(dst={t}, src={t}_b)"
        )
    )


KINDS = step.kinds
Plan = tuple[tuple[str, int], ...]  # each step's kind, and what it draws from


def plan(random: Random) -> Plan:
    """Draw the kinds of a kernel's steps."""
    count = random.randint(1, 4)
    return tuple((random.choice([*KINDS]), random.randrange(1 << 30)) for _ in range(count))


def changed(steps: Plan, random: Random) -> Plan:
    """Draw one step again."""
    at = random.randrange(len(steps))
    return (*steps[:at], (steps[at][0], random.randrange(1 << 30)), *steps[at + 1 :])


def text(steps: Plan) -> str:
    """Return the lines of a kernel, whose output is its last tile and a little of its others."""
    tiles, lines = ["x", "w"], []
    for number_of, (kind, seed) in enumerate(steps):
        name = f"t{number_of}"
        lines.append(dedent(KINDS[kind](Random(seed), name, tiles)))
        tiles = [*tiles, name, name]
    others = "".join(f" + nl.tanh(t{n}) * 0.5" for n in range(len(steps) - 1))
    return "\n".join((*lines, f"out = {tiles[-1]} * 1.0{others}"))
