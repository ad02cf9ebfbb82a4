"""Models of the tensor engine: products, transposes, and the microscaling formats by the OCP
definitions.
"""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from nkic.machine.operands import Row
from tests.harness.drawing import Draw
from tests.harness.model import Bits, Given, Results, Settings, Shape, model
from tests.harness.operators import apply
from tests.harness.reference import single

Array = NDArray[Any]


def _tiling(draw: Draw, settings: Settings, target_rows: tuple[int, ...], columns: int) -> None:
    """Draw a position in the array, which changes no value."""
    if draw.chance(0.6):
        return
    rows = draw.pick(target_rows)
    settings["tile_size"] = (rows, columns)
    settings["tile_position"] = (draw.pick(range(0, 128, rows)), 0)


def multiplied(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    k, m, n = draw.pick([1, 3, 32, 40, 128]), draw.pick([1, 5, 32]), draw.pick([1, 6, 40])
    settings["tile_size"] = settings["tile_position"] = ()
    _tiling(draw, settings, (64, 128), draw.pick([64, 128]))
    held: Shape = draw.pick([(k, m), (k, 1, m), (k, m, 1)])
    streamed: Shape = draw.pick([(k, n), (k, n // 2, 2) if n % 2 == 0 else (k, n)])
    if settings["perf_mode"] == "double_row":
        held, streamed = (k, 2, m), (k, 2, n)
    settings["is_transpose"] = settings["perf_mode"] == "none" and draw.chance(0.25)
    if settings["is_transpose"]:
        n, streamed = k, (k, k)
    return {"dst": (m, n), "stationary": held, "moving": streamed}


def _identity(draw: Draw, settings: Settings) -> None:
    """Return the matrix by which a transpose multiplies."""
    of = settings["moving"]
    if settings["is_transpose"] and draw.chance(0.8):
        window = of.window(of.tensor.contents)
        window[...] = np.eye(of.partitions).reshape(window.shape)


@model(
    "nc_matmul",
    multiplied,
    settings={
        "accumulate": lambda draw: draw.chance(),  # None is decided before a file is written
        "tile_size": lambda draw: (),
        "tile_position": lambda draw: (),
    },
    fill=_identity,
    silent=("is_stationary_onezero", "is_moving_onezero", "tile_position", "tile_size"),
)
def nc_matmul(given: Given) -> Results:
    left, right = given.numbers("stationary"), given.numbers("moving")
    identity = right.shape == (len(right), len(right)) and (right == np.eye(len(right))).all()
    moves = given["is_transpose"] and not given["accumulate"] and given.target != "trn1"
    if identity and moves:  # otherwise it is an ordinary product
        same = given.dtype("dst") == given.dtype("stationary")
        turned = Bits(given.elements("stationary").T)
        return {"dst": turned if same else given.rounded("dst", left.T)}
    if given["perf_mode"] == "double_row":
        # The second element of a pair belongs to rows 128 to 255 of the contraction.
        left, right = (x.reshape(len(x), 2, -1).swapaxes(0, 1) for x in (left, right))
        left, right = (x.reshape(-1, x.shape[-1]) for x in (left, right))
    return {"dst": given.rounded("dst", _added(given, _product(left, right)))}


def _product(left: Array, right: Array) -> Array:
    with np.errstate(all="ignore"):
        return single((left[:, :, None] * right[:, None, :]).sum(0))


def _added(given: Given, product: Array) -> Array:
    return apply("add", product, given.numbers("dst")) if given["accumulate"] else product


def exchanged(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    rows, columns = draw.pick([1, 3, 32, 64, 128]), draw.pick([1, 8, 24, 32, 128])
    return {"dst": (columns, rows), "data": (rows, columns)}


def _finite(draw: Draw, settings: Settings) -> None:
    """Draw finite numbers:

    NaN and infinity spread through trn1's tensor engine, which multiplies.
    """
    of = settings["data"]
    window = of.window(of.tensor.contents)
    window[...] = draw.numbers(window.shape, of.dtype, 6)


@model("nc_transpose", exchanged, fill=_finite)
def nc_transpose(given: Given) -> Results:
    found = given.elements("data").T
    return {"dst": found if given.target == "trn1" else Bits(np.ascontiguousarray(found))}


# Microscaling: one scale for 8 partitions of 4 elements.

ELEMENTS = {
    "float8_e4m3fn_x4": (ml_dtypes.float8_e4m3fn, 8, 8),  # type, bits, largest exponent
    "float8_e5m2_x4": (ml_dtypes.float8_e5m2, 8, 15),
    "float4_e2m1fn_x4": (ml_dtypes.float4_e2m1fn, 4, 2),
}


def scale_rows(groups: int) -> list[int]:
    """Return the rows of scales: four in each quadrant."""
    return [g // 4 * 32 + g % 4 for g in range(groups)]


def quantized(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions, free = 32 * draw.integer(1, 4), draw.pick([1, 3, 6])
    return {
        "dst": (partitions, free),
        "src": (partitions, 4 * free),
        "dst_scale": (partitions - 28, free),
    }


@model("quantize_mx", quantized)
def quantize_mx(given: Given) -> Results:
    """Scale 2^(floor log2 of the greatest - largest exponent + 1), elements divided by the scale.

    Without headroom, the scale is half of that, and elements saturate at the type's largest number.
    """
    kind, _, largest = ELEMENTS[given.dtype("dst")]
    top = float(ml_dtypes.finfo(kind).max)
    x = given.numbers("src")
    groups = x.reshape(len(x) // 8, 8, -1, 4)
    codes = np.empty((len(groups), groups.shape[2]), np.uint8)
    elements = np.empty(groups.shape, kind)
    for g, f in np.ndindex(*codes.shape):
        group = groups[g, :, f]
        most = np.abs(group).max()
        if not np.isfinite(most):
            codes[g, f], elements[g, :, f] = 255, np.nan
            continue
        power = int(np.frexp(most)[1]) - 1 - (largest - bool(given["headroom"])) if most else -127
        codes[g, f] = max(power, -127) + 127
        elements[g, :, f] = np.clip(group / 2.0 ** max(power, -127), -top, top).astype(kind)
    words = elements.reshape(len(x), -1, 4).view(np.uint8).astype(np.uint32)
    packed = sum(words[..., i] << 8 * i for i in range(4))
    scales = given.elements("dst_scale").view(np.uint8).copy()
    scales[scale_rows(len(groups))] = codes
    kept = given.elements("dst_scale").dtype
    return {"dst": np.asarray(packed, np.uint32), "dst_scale": Bits(scales.view(kept))}


def scaled(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    k, m, n = 32 * draw.integer(1, 4), draw.pick([2, 6, 32]), draw.pick([1, 10])
    settings["tile_size"] = settings["tile_position"] = ()
    _tiling(draw, settings, (32, 64, 128), 128)
    return {
        **{"dst": (m, n), "stationary": (k, m), "moving": (k, n)},
        **{"stationary_scale": (k - 28, m), "moving_scale": (k - 28, n)},
    }


def _scales(draw: Draw, settings: Settings) -> None:
    """Draw scales whose products float64 can represent, sometimes with a NaN among them."""
    for name in ("stationary_scale", "moving_scale"):
        of = settings[name]
        window = of.window(of.tensor.contents)
        codes = draw.rng.integers(110, 145, window.shape).astype(np.uint8)
        codes[draw.rng.random(window.shape) < draw.pick([0, 0, 0.02])] = 255
        window[...] = codes.view(window.dtype)


@model(
    "nc_matmul_mx",
    scaled,
    settings={
        "accumulate": lambda draw: draw.chance(),
        "tile_size": lambda draw: (),
        "tile_position": lambda draw: (),
    },
    fill=_scales,
    silent=("tile_position", "tile_size"),
)
def nc_matmul_mx(given: Given) -> Results:
    left, right = (_dequantized(given, name, f"{name}_scale") for name in ("stationary", "moving"))
    with np.errstate(all="ignore"):
        product = single(np.einsum("kmi,kni->mn", left, right))
    return {"dst": given.rounded("dst", _added(given, product))}


def _dequantized(given: Given, name: str, scale: str) -> Array:
    """Return elements times their scales, (partitions, columns, 4)."""
    kind, bits, _ = ELEMENTS[given.dtype(name)]
    words = given.elements(name).astype(np.uint32)
    codes = np.stack([words >> bits * i & (1 << bits) - 1 for i in range(4)], -1)
    elements = codes.astype(np.uint8).view(kind).astype(np.float64)
    rows = given.elements(scale).view(np.uint8)[scale_rows(len(words) // 8)].astype(float)
    scales = np.where(rows == 255, np.nan, 2.0 ** (rows - 127))
    return np.asarray(elements * np.repeat(scales, 8, 0)[:, :, None])
