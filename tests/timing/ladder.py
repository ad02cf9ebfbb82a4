"""Shares of the tensor engine's peak that nki-autotune's notes state for its ladder of kernels.

    python -m tests.timing.ladder --autotune CHECKOUT

CHECKOUT is one of the public repository awslabs/nki-autotune. Each kernel multiplies matrices of
2048 by 2048 in bfloat16 on one core, and is compiled, not run: the compiler's estimate is the
run's time. The notes (.claude/rules/learnings.md, "Matmul MFU ladder") describe the kernel of the
second rung, which is the third's with one sum; the repository has the others.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nkic
from nkic.base.source import SourceFile
from tests.timing.__main__ import Found, rank_correlation

PEAK = 2 * 128 * 128 * 2.4  # operations in a ns: each cycle of 2.4 GHz, each of 128 x 128 products
WORK = 2 * 2048**3
HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\n"


def rungs(checkout: Path) -> Iterator[tuple[str, float, str]]:
    """Yield what each rung is, the share that is stated in percent, and its source."""
    text = (checkout / "kernel_transforms.py").read_text(encoding="utf-8")
    kernels = dict(re.findall(r"(?m)^def (kernel_\d+)(\(.*\n(?:(?: .*)?\n)*)", text))
    sources = {name: f"{HEAD}def kernel{body}" for name, body in kernels.items()}
    two = sources["kernel_15"]
    one = two.replace("(128, 2, 2048)", "(128, 1, 2048)").replace("i_d1_0 % 2", "0")
    best = checkout / "kernel_library" / "matmul" / "lhsT_rhs" / "kernel_hand_90.92mfu.py"
    yield "kernel_14: each tile loaded before its product", 16, sources["kernel_14"]
    yield "kernel_15 with one sum", 59, one
    yield "kernel_15: two sums in turn", 83, two
    yield "kernel_hand: loads in blocks", 90.9, best.read_text(encoding="utf-8")


def simulated(source: str) -> float:
    """Return the share of the peak that a kernel reaches in simulated time, in percent."""
    inputs = dict.fromkeys(("lhs_T", "rhs"), "bf16[2048,2048]")
    compiled = nkic.compile(SourceFile("rung.py", source), inputs=inputs, target="trn2")
    return 100 * WORK / PEAK / float(compiled.executable.meta["estimate_ns"])


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    found = []
    print("| kernel | stated | simulated | error |\n|---|---:|---:|---:|")
    for name, stated, source in rungs(Path(arguments[arguments.index("--autotune") + 1])):
        share = simulated(source)
        found.append(Found(stated, share, share))
        print(f"| {name} | {stated:g} % | {share:.1f} % | {found[-1].error:+.1f} % |", flush=True)
    print(f"\nrank correlation {rank_correlation(found):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
