"""Change a legal instance systematically, one operand or attribute at a time.

The rules' answers to the changes show every limit of every row.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Attribute, AttributeKind, Register, Row, Tile, Violation
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.rules import violations
from nkic.machine.targets import Buffer, Engine, Target
from tests.unit.instances import LEGAL, Settings, facts_of, tile

# One value on either side of every hardware limit.
POWERS = (16, 32, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
COUNTS = (*range(14), *sorted({n + by for n in POWERS for by in (-1, 0, 1)}))
HEIGHTS = tuple(n for n in COUNTS if n < 200)
STEPS = (-32769, -32768, -1, 0, 1, 2, 32767, 32768)
NUMBERS = (*range(-2, 10), 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 511, 512)
INTS = ((), (0,), (1,), (2,), (3,), (1, 2), (2, 1), (0, 1), (1, 3), (1, 0), (0, 0), (1, 2, 3),
        (2, 1, 0), (0, 2, 1), (3, 1, 2, 0), (64, 0), (32, 0), (64, 64), (64, 128), (128, 128),
        (32, 32), (31, 0), (128, 0), (0, 0, 0), (255,) * 32, tuple(range(32)))  # fmt: skip
PATTERNS = ((), ((1, 0),), ((1, 1),), ((1, 511),), ((1, 512),), ((1, 513),), ((0, 512),),
            ((2, 256), (1, 2)), ((1, 2),) * 4, ((1, 2),) * 5)  # fmt: skip
GROUPS = ((), ((),), ((0,),), ((0, 1),), ((0, 1), (2, 3)), ((0, 1, 2, 3),), ((0, 0),),
          ((0, 1), (1, 2)), ((0, 2), (1, 3)), ((0, 1), (2,)), ((1, 0),), ((0, 1, 2),), ((-1, 0),),
          ((0, 127),), ((0, 128),))  # fmt: skip


def chosen(text: str, index: str, **more: Any) -> Tile:
    """Return a tile whose elements an index tile selects, from the same partition on."""
    offsets = tile(index, start=more.get("start", 0))
    return tile(text, indexed=True, dynamic=True, offsets=offsets, **more)


COLUMNS = chosen("float32[128, 512]", "uint32[128, 32]")
# Further legal instances, for modes with rules of their own.
VARIANTS: dict[str, dict[str, Settings]] = {
    "nc_matmul": {
        "two rows at a time": {
            "stationary": tile("float8_e4m3[128, 2, 64]"),
            "moving": tile("float8_e4m3[128, 2, 512]"),
            "perf_mode": "double_row",
        },
        "in a part of the array": {
            "stationary": tile("bfloat16[64, 64]"),
            "moving": tile("bfloat16[64, 512]"),
            **{"tile_position": (64, 0), "tile_size": (64, 128)},
        },
        "as a transpose": {
            "dst": tile("bfloat16[64, 128] psum"),
            "stationary": tile("bfloat16[128, 64]"),
            "moving": tile("bfloat16[128, 128]"),
            "is_transpose": True,
        },
        "with chosen columns": {"moving": chosen("bfloat16[128, 512]", "uint32[128, 32]")},
    },
    "dma_transpose": {
        "by hardware": {"dge_mode": "hwdge", "src": tile("bfloat16[16, 128] hbm")},
        "of four dimensions": {
            "dst": tile("bfloat16[8, 2, 3, 16]"),
            "src": tile("bfloat16[16, 2, 3, 8] hbm"),
        },
        "gathering": {
            "dst": tile("bfloat16[8, 1, 3, 32]"),
            "src": tile("bfloat16[32, 1, 3, 8] hbm", indexed=True, dynamic=True),
        },
        "gathering by a tile": {
            "dst": tile("bfloat16[8, 3, 1, 32]"),
            "src": chosen("bfloat16[32, 3, 1, 8] hbm", "uint32[32, 1]"),
        },
    },
    "dma_copy": {
        "gathering": {"src": tile("float32[128, 512] hbm", indexed=True, dynamic=True)},
        "gathering by a tile": {"src": chosen("float32[128, 512] hbm", "uint32[128, 1]")},
        "by hardware": {"dge_mode": "hwdge"},
    },
    "tensor_copy": {
        "gathering": {"src": COLUMNS},
        "scattering": {"dst": COLUMNS},
        "both, from PSUM": {
            "dst": chosen("float32[32, 512]", "uint32[32, 32]", start=32),
            "src": chosen("float32[32, 512] psum", "uint32[32, 32]", start=32),
        },
    },
    "nc_transpose": {
        "by the vector engine": {"dst": tile("float32[32, 32]"), "data": tile("float32[32, 32]")},
    },
    "tensor_tensor": {
        "of bits": {
            **dict.fromkeys(("dst", "data1", "data2"), tile("int32[128, 512]")),
            "op": "bitwise_and",
        },
        "with chosen columns": {"data1": COLUMNS},
    },
}
VALUES: dict[AttributeKind, Iterable[Any]] = {
    AttributeKind.ALU: ALU,
    AttributeKind.ACTIVATION: ACTIVATIONS,
    AttributeKind.BOOL: (False, True),
    AttributeKind.INT: (*NUMBERS, -(1 << 63), (1 << 63) - 1),
    AttributeKind.INT32: (*NUMBERS, -(1 << 31), (1 << 31) - 1),
    AttributeKind.NUMBER: (None, True, -1, 0, 1, 2, -0.5, 0.0, 0.5, 1.0, 1.5, float("nan")),
    AttributeKind.PATTERN: PATTERNS,
    AttributeKind.INTS: INTS,
    AttributeKind.GROUPS: GROUPS,
    AttributeKind.NUMBERS: ((), (0,), (0.5, 1), (0, 1, 2), (0, 1, 2, 3)),
    AttributeKind.TEXT: ("", "x", "x" * 1000),
}


class Change(NamedTuple):
    """New values of some operands and attributes, identified by `what` and `value`."""

    what: str
    value: str
    changes: Settings


def tall(tile: Tile, partitions: int) -> Tile:
    """Return the tile with this number of partitions; in HBM, of elements of the first
    dimension.
    """
    if tile.buffer.on_chip:
        return tile._replace(partitions=partitions)
    (step, _), *others = tile.dims
    return tile._replace(dims=((step, partitions), *others))


def long(tile: Tile, free: int) -> Tile:
    """Return the tile with this number of elements in the last dimension, without gaps."""
    return tile._replace(dims=(*tile.dims[:-1], (1, free)))


def folded(tile: Tile, rank: int) -> Tile:
    """Return its elements in this number of free dimensions, none of which can be merged with
    another.
    """
    return tile._replace(dims=tuple((3 ** (rank - i) * 2, 2) for i in range(rank)))


def of_tile(name: str, tile: Tile) -> Iterator[Change]:
    for buffer in Buffer:
        flat = not buffer.on_chip and tile.buffer.on_chip
        dims = ((1, tile.elements),) if flat else tile.dims
        tall = tile.partitions or 1
        moved = tile._replace(buffer=buffer, dims=dims, partitions=tall if buffer.on_chip else 0)
        yield Change(f"{name} in", buffer.value, {name: moved})
    for dtype in DTYPES.values():
        yield Change(f"{name} of", dtype.name, {name: tile._replace(dtype=dtype)})
    for start in (*HEIGHTS, -1) if tile.buffer.on_chip else (0, 1):
        yield Change(f"{name} from partition", f"{start}", {name: tile._replace(start=start)})
        low = tile._replace(start=start, partitions=min(tile.partitions, 32))
        yield Change(f"{name} of 32, from partition", f"{start}", {name: low})
    for step in STEPS:
        strided = tile._replace(dims=(*tile.dims[:-1], (step, tile.dims[-1][1])))
        yield Change(f"{name} by steps of", f"{step}", {name: strided})
    for rank in range(7):
        yield Change(f"{name} with dimensions", f"{rank}", {name: folded(tile, rank)})
    if isinstance(tile.offsets, Tile):
        yield from of_index(name, tile, tile.offsets)
    yield Change(f"{name} is", "dynamic", {name: tile._replace(dynamic=True)})
    yield Change(f"{name} is", "indexed", {name: tile._replace(indexed=True)})


def of_index(name: str, tile: Tile, index: Tile) -> Iterator[Change]:
    made = {f"in {buffer.value}": index._replace(buffer=buffer) for buffer in Buffer}
    made |= {f"of {dtype.name}": index._replace(dtype=dtype) for dtype in DTYPES.values()}
    made |= {f"of {n} partitions": index._replace(partitions=n) for n in HEIGHTS}
    made |= {f"of {n} columns": index._replace(dims=((1, n),)) for n in HEIGHTS}
    made |= {f"from {n}": index._replace(start=n) for n in HEIGHTS}
    for what, other in made.items():
        yield Change(f"index of {name}", what, {name: tile._replace(offsets=other)})


def sizes(what: str, tiles: Mapping[str, Tile]) -> Iterator[Change]:
    """Return changes that make all tiles of one size smaller or larger together."""
    for n in HEIGHTS:
        yield Change(f"partitions of {what}", f"{n}", {k: tall(t, n) for k, t in tiles.items()})
    for n in COUNTS:
        yield Change(f"elements of {what}", f"{n}", {k: long(t, n) for k, t in tiles.items()})


def of_attribute(attribute: Attribute) -> Iterator[Change]:
    choices = attribute.kind is AttributeKind.CHOICE
    for value in attribute.choices if choices else VALUES[attribute.kind]:
        text = repr(value) if len(repr(value)) < 40 else f"{type(value).__name__} of {len(value)}"
        yield Change(attribute.name, text, {attribute.name: value})


def changes_of(row: Row, variant: Settings = MappingProxyType({})) -> Iterator[Change]:
    """Return changes of every operand alone, of all tiles of one size together, and of every
    attribute.
    """
    legal = {**LEGAL[row.name], **variant}
    tiles = {o.name: t for o in row.operands if type(t := legal.get(o.name)) is Tile and t.dims}
    for name, one in tiles.items():
        yield from sizes(name, {name: one})
        yield from of_tile(name, one)
    if len(tiles) > 1:
        yield from sizes("all", tiles)
        for dtype in DTYPES.values():
            same = {name: one._replace(dtype=dtype) for name, one in tiles.items()}
            yield Change("all of", dtype.name, same)
    for operand in row.operands:
        for value in (None, -1, 0.5, 3, Register(7)):
            yield Change(f"{operand.name} is", f"{value}", {operand.name: value})
    for engine in row.engines:
        yield Change("engine", engine.value, {"engine": engine})
    for attribute in row.attributes:
        yield from of_attribute(attribute)


def said_of(row: Row, target: Target, changes: Settings) -> list[Violation]:
    """Return all errors, in the order of precedence."""
    chosen = changes.get("engine")
    engine = chosen if isinstance(chosen, Engine) else None  # or the attribute of a transfer
    operands = {name: v for name, v in changes.items() if not isinstance(v, Engine)}
    return violations(*facts_of(row.name, target, engine, **operands))


def answer(found: list[Violation]) -> str:
    """Return the first error, and its operand."""
    return f"{found[0].slug} {found[0].operand}".strip() if found else "legal"
