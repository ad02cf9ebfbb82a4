"""Whole kernels whose times others published, and how they are run here.

None of these times was used to fit a figure. Kernels are of our own writing, with the structure
that the source describes. A case may run at a smaller shape and count `times`: its loops repeat.
"""

from __future__ import annotations

from typing import NamedTuple

OPTIMISATION = "kernel optimisation tutorial"
MAMBA = "fused Mamba tutorial"
# The source compiled with today's NKI, which keeps instructions as they are written; or with NKI
# Beta 1, whose compiler moved, merged and spilled.
LITERAL, TRANSFORMED = "literal", "transformed"


class Case(NamedTuple):
    """`us` is the published time, `shape` what it is of; `args` and `consts` are what is run."""

    source: str
    version: str
    shape: str
    us: float
    how: str
    module: str
    kernel: str
    target: str
    args: dict[str, str]
    times: int = 1
    sweep: str = ""


def _product(version: str, us: float, kernel: str, k: int, m: int, n: int) -> Case:
    args = {"turned": f"float32[{k},{m}]", "rhs": f"float32[{k},{n}]"}
    times = 8192 * 4096 * 8192 // (k * m * n)
    shape = "8192 x 4096 x 8192 float32"
    return Case(OPTIMISATION, version, shape, us, LITERAL, "products", kernel, "trn2", args, times)


def _scan(version: str, channels: int, seq: int, us: float, sweep: str = "") -> Case:
    kernel = {"v1": "by_state", "v2": "by_channel", "v3": "by_tile"}[version]
    run = min(channels, 1024)
    tile = f"float32[{run},{seq}]"
    rows = {"grown": f"float32[16,{seq}]", "seen": f"float32[16,{seq}]"}
    args = {"delta": tile, "u": tile, "rates": f"float32[{run},16]", **rows}
    shape = f"{channels} channels, {seq} steps, 16 states, float32"
    how, times = TRANSFORMED, channels // run
    return Case(MAMBA, version, shape, us, how, "scans", kernel, "trn1", args, times, sweep=sweep)


CASES = (
    _product("v2", 39_894.938, "tiled", 8192, 512, 4096),
    _product("v3", 28_197.982, "hoisted", 8192, 512, 4096),
    _product("v4", 28_414.015, "blocked", 8192, 512, 4096),
    _product("v5", 28_301.971, "blocked_all", 8192, 2048, 1024),
    _scan("v1", 256, 512, 172.93),
    _scan("v1", 4096, 512, 2340),
    _scan("v2", 4096, 512, 1610, "v2"),
    _scan("v2", 4096, 1024, 4400, "v2"),
    _scan("v2", 4096, 2048, 8900, "v2"),
    _scan("v2", 4096, 3072, 13_100, "v2"),
    _scan("v3", 4096, 512, 1600, "v3"),
    _scan("v3", 4096, 1024, 3300, "v3"),
    _scan("v3", 4096, 2048, 6600, "v3"),
    _scan("v3", 4096, 3072, 10_100, "v3"),
    _scan("v3", 4096, 4096, 13_300, "v3"),
)
