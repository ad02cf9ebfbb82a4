"""Kernels with published times, and how they are run in the simulator.

No figure was fitted to these times. The kernels are written for this project, with the structure
that the source describes. A case may run at a shape that is `times` smaller: its outermost loop
repeats, and a run of twice the shape shows how much longer the first iteration takes than the
others.
"""

from typing import NamedTuple

OPTIMISATION = "kernel optimisation tutorial"
MAMBA = "fused Mamba tutorial"
# The program that was timed is the one that is written; or its compiler moved, merged, repeated
# or spilled: that of NKI Beta 1, and today's where the profile shows more traffic than the source
# transfers.
LITERAL, TRANSFORMED = "literal", "transformed"


class Case(NamedTuple):
    """A kernel with its published time `us` and its `shape`.

    `args` are the arguments that are run, and `twice` those for two iterations of the loop that
    runs `times`. All cases may spill, as on the device.
    """

    source: str
    version: str
    shape: str
    us: float
    how: str
    module: str
    kernel: str
    target: str
    args: dict[str, str]
    twice: dict[str, str]
    times: int = 1
    sweep: str = ""


def _product(
    version: str, us: float, kernel: str, m: int, n: int, how: str = LITERAL, wider: bool = False
) -> Case:
    """The outermost loop runs over rows or, with `wider`, over columns."""
    times = 4096 * 8192 // (m * n)
    twice = _factors(m, 2 * n) if wider else _factors(2 * m, n)
    shape, module = "8192 x 4096 x 8192 float32", "products"
    args = _factors(m, n)
    return Case(OPTIMISATION, version, shape, us, how, module, kernel, "trn2", args, twice, times)


def _factors(m: int, n: int) -> dict[str, str]:
    return {"turned": f"float32[8192,{m}]", "rhs": f"float32[8192,{n}]"}


def _scan(version: str, channels: int, seq: int, us: float, sweep: str = "") -> Case:
    """The outermost loop runs over channels, except in version 1, which runs at its full shape."""
    kernel = {"v1": "by_state", "v2": "by_channel", "v3": "by_tile"}[version]
    run = channels if version == "v1" else 256
    shape = f"{channels} channels, {seq} steps, 16 states, float32"
    how, times = TRANSFORMED, channels // run
    args, twice = _scanned(run, seq), _scanned(2 * run, seq)
    return Case(MAMBA, version, shape, us, how, "scans", kernel, "trn1", args, twice, times, sweep)


def _scanned(run: int, seq: int) -> dict[str, str]:
    tile = f"float32[{run},{seq}]"
    rows = {"grown": f"float32[16,{seq}]", "seen": f"float32[16,{seq}]"}
    return {"delta": tile, "u": tile, "rates": f"float32[{run},16]", **rows}


# From 5,120 steps on there is no room for the tiles of version 2 in SBUF; the device spilled from
# 1,024 on.
SWEEP_2 = {512: 1600, 1024: 4400, 2048: 8900, 3072: 13_100, 4096: 17_600}
SWEEP_2 |= {5120: 23_700, 6144: 27_500, 7168: 41_300, 8192: 52_200}
SWEEP_3 = {512: 1600, 1024: 3300, 2048: 6600, 3072: 10_100, 4096: 13_300}
SWEEP_3 |= {5120: 17_300, 6144: 19_600, 7168: 24_200, 8192: 27_800}
CASES = (
    _product("v2", 39_894.938, "tiled", 256, 4096),
    _product("v3", 28_197.982, "hoisted", 256, 8192),
    # 42.55 and 8.96 % of the bandwidth of which version 3 uses 43.87 % for 8.86 GB: these are 8.66
    # and 1.82 GB, where the sources transfer 4.56 and 1.48.
    _product("v4", 28_414.015, "blocked", 256, 8192, TRANSFORMED),
    _product("v5", 28_301.971, "blocked_all", 4096, 1024, TRANSFORMED, wider=True),
    _scan("v1", 256, 512, 172.93),
    _scan("v1", 4096, 512, 2340),
    *(_scan("v2", 4096, seq, us, "v2") for seq, us in SWEEP_2.items()),
    *(_scan("v3", 4096, seq, us, "v3") for seq, us in SWEEP_3.items()),
)
