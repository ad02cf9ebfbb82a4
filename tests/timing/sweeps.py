"""Tuning sweeps: what the vendor's guides say is faster is faster in simulated time.

python -m tests.timing.sweeps
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.specialise.request import RequestOptions

HERE = Path(__file__).parent
PRODUCT = HERE.parents[1] / "samples" / "06_matmul" / "kernel.py"
GUIDE = "performance guide"


class Way(NamedTuple):
    """One way to do the work: the options that it adds, and its name."""

    name: str
    words: RequestOptions
    path: Path = HERE / "tuned.py"

    def us(self) -> float:
        loader = Loader.beside(str(self.path))
        source = loader.main(str(self.path))
        made = compile_source(source, request_for(source, self.words, {}), loader)
        return float(made.executable.meta["estimate_ns"]) / 1000


class Sweep(NamedTuple):
    """Ways from slow to fast, by `source`.

    The last ones may take the same time: each at most `level` times that of the preceding one.
    """

    name: str
    source: str
    ways: tuple[Way, ...]
    same: int = 0
    level: float = 1.05

    def holds(self, times: Sequence[float]) -> bool:
        """Return whether the times are in the order of the source."""
        steps = list(pairwise(times))
        apart, alike = steps[: len(steps) - self.same], steps[len(steps) - self.same :]
        return all(b < a for a, b in apart) and all(b <= self.level * a for a, b in alike)


def _ways(
    kernel: str, argument: str, constant: str, values: Sequence[object], target: str = "trn2"
) -> tuple[Way, ...]:
    args = [f"a={argument}"]
    return tuple(
        Way(
            f"{constant} {value}",
            parse_options(
                kernel=kernel, target=target, args=args, consts=[f"{constant}={value!r}"]
            ),
        )
        for value in values
    )


def _types(kernel: str, shape: str, types: Sequence[str]) -> tuple[Way, ...]:
    return tuple(Way(t, parse_options(kernel=kernel, args=[f"a={t}{shape}"])) for t in types)


def _steps(kernels: Sequence[str]) -> tuple[Way, ...]:
    args = ["lhsT=bfloat16[1024, 512]", "rhs=bfloat16[1024, 2048]"]
    return tuple(Way(name, parse_options(kernel=name, args=args), PRODUCT) for name in kernels)


WIDE, SMALL = "float32[128, 8192]", "float32[128, 2048]"
SWEEPS = (
    Sweep(
        "columns of a copy out of PSUM",
        f"{GUIDE}, opt #5a",
        _ways("copied_out", "bfloat16[128, 512]", "width", (64, 128, 256, 512)),
    ),
    Sweep(
        "columns of a load, float32",
        "DMA bandwidth guide: little gain above 4 KiB",
        _ways("in_rows", SMALL, "width", (16, 64, 128, 256, 512, 1024, 2048)),
        same=1,
        level=1.1,
    ),
    Sweep(
        "partitions of a tile",
        f"{GUIDE}, opt #5b",
        _ways("in_partitions", SMALL, "rows", (32, 64, 128)),
    ),
    Sweep(
        "buffers of loads and stores",
        f"{GUIDE}, opt #4",
        _ways("in_buffers", WIDE, "depth", (1, 2, 3, 4)),
        same=2,
    ),
    Sweep(
        "tiles through two engines",
        f"{GUIDE}, opt #3",
        _ways("in_tiles", SMALL, "count", (1, 2, 4)),
    ),
    Sweep(
        "engine of a sum",
        "Trainium2 guide, table of engine widths",
        _ways("by_engine", SMALL, "engine", ("gpsimd sums", "vector sums")),
    ),
    Sweep(
        "engine of a copy in bfloat16",
        "Trainium2 guide, vector engine performance mode",
        _ways("by_engine", "bfloat16[128, 2048]", "engine", ("scalar copies", "vector copies")),
    ),
    Sweep(
        "type of a product",
        "Trainium2 guide, tensor engine: float32 at a quarter of the rate",
        _types("products", "[128, 512]", ("float32", "bfloat16")),
    ),
    Sweep(
        "sums of products in turn",
        "nki-autotune, notes: 59 and 83 % of the peak",
        _ways("accumulated", "bfloat16[128, 512]", "sums", (1, 2)),
    ),
    Sweep(
        "instructions of exp(2 a + 1)",
        f"{GUIDE}, opt #6",
        _ways("combined", SMALL, "instructions", (3, 2, 1)),
    ),
    Sweep(
        "softmax, fused or not",
        f"{GUIDE}, opt #6",
        _ways("softmax", "float32[512, 2048]", "fused", (False, True)),
    ),
    Sweep(
        "transposes on trn1",
        f"{GUIDE}, opt #10",
        _ways("turned", "bfloat16[2048, 128]", "how", ("dma", "tensor"), "trn1"),
    ),
    Sweep(
        "the operand that the array holds",
        f"{GUIDE}, opt #7",
        _ways("vector_by_matrix", "bfloat16[128, 2048]", "held", ("row", "matrix")),
    ),
    Sweep(
        "a loop on the device, or unrolled",
        "dynamic loops, register allocation",
        _ways("on_device", WIDE, "loop", (True, False)),
    ),
    Sweep(
        "who makes descriptors",
        "DGE reference: none has the lowest latency",
        _ways("described", "float32[128, 512]", "mode", ("swdge", "hwdge", "none")),
        same=1,
    ),
    Sweep(
        "descriptors beside masks",
        "DGE reference: software's compete with gpsimd's work",
        _ways("beside_gpsimd", SMALL, "mode", ("swdge", "hwdge")),
    ),
    Sweep(
        "who triggers loads, scalar is busy",
        "DGE reference: scalar hides them behind its work",
        _ways("triggered", "float32[128, 16384]", "by", ("sync", "scalar")),
        same=1,
        level=1.1,  # of 28 % that are not hidden, 6 % stay: all triggers come as early as they can
    ),
    Sweep(
        "transposes within SBUF",
        "Trainium2 guide: the tensor engine is faster",
        _ways("turned_within", "bfloat16[128, 4096]", "how", ("dma", "tensor")),
    ),
    Sweep(
        "a recurrence",
        "fused Mamba tutorial: one scan",
        _ways("recurrence", "float32[128, 256]", "how", ("columns", "scan")),
    ),
    Sweep(
        "reductions of 64 partitions",
        f"{GUIDE}, opt #5b: vectorised",
        _ways("vectorised", "bfloat16[128, 512]", "tiles", (2, 1)),
    ),
    Sweep(
        "blocks of a product",
        "matrix multiplication tutorial",
        _steps(("matmul_tiled", "matmul_hoisted", "matmul_blocked_free")),
    ),
)


def table() -> list[str]:
    rows = ["| what is tuned | claimed by | us, from slow to fast as the source says | confirmed |"]
    rows.append("|---|---|---|---|")
    for sweep in SWEEPS:
        times = [way.us() for way in sweep.ways]
        ways = zip(sweep.ways, times, strict=True)
        shown = ", ".join(f"{way.name}: {time:,.1f}" for way, time in ways)
        holds = "yes" if sweep.holds(times) else "no"
        rows.append(f"| {sweep.name} | {sweep.source} | {shown} | {holds} |")
    return rows


if __name__ == "__main__":
    print("\n".join(table()))
