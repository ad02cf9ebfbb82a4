"""The table of the language server: from a change of the text to its diagnostics, elapsed time."""

import os
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from tests.lsp.editor import Editor

CHANGES = 40  # of each kind
SAMPLES = Path(__file__).parents[2] / "samples"
STEPS = """\
    t{n} = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=t{n}, data=t{last}, op0=nl.multiply, operand0=0.5)
    # Half of the last, plus its exponential
    e{n} = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(
        dst=e{n},
        op=nl.exp,
        data=t{n},
    )
    nisa.tensor_tensor(dst=t{n}, data1=t{n}, data2=e{n}, op=nl.add)
"""


def long_kernel(steps: int = 28) -> str:
    head = (
        '# /// nkic\n# [args]\n# a = "float32[128, 512]"\n# ///\nimport nki\n'
        "import nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\ndef steps(a):\n"
        "    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
        "    t0 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)\n"
        "    nisa.dma_copy(dst=t0, src=a)\n"
    )
    body = "".join(STEPS.format(n=n, last=n - 1) for n in range(1, steps + 1))
    return f"{head}{body}    nisa.dma_copy(dst=c, src=t{steps})\n    return c\n"


def latencies(editor: Editor, name: str, text: str) -> tuple[list[float], list[float]]:
    """Return the milliseconds of changes that make an error, and of those that mend it."""
    editor.open(name, text)
    taken: tuple[list[float], list[float]] = ([], [])
    wrong = "nl.ndarrayy(".join(text.rsplit("nl.ndarray(", 1))
    for number in range(2 * CHANGES):
        mended = number % 2
        new = (text if mended else wrong) + "#" * number
        before = perf_counter()
        found = editor.change(name, new)
        taken[mended].append(1000 * (perf_counter() - before))
        assert bool(found) is not bool(mended), found
    return taken


def bench_editing() -> None:
    attention = (SAMPLES / "10_attention" / "kernel.py").read_text("utf-8")
    kernels = {"steps": long_kernel(), "sample 10": attention}
    print("\n## Editor\n\nMilliseconds, median and 95th percentile.\n")
    print("| kernel | lines | debounce | an error appears | it goes |\n|---|---|---|---|---|")
    for debounce in (100, 1):
        with (
            tempfile.TemporaryDirectory() as folder,
            Editor(Path(folder), debounce=debounce) as editor,
        ):
            for name, text in kernels.items():
                both = latencies(editor, f"{name}.py", text)
                cells = [f"{median(t):.0f}, {quantiles(t, n=20)[-1]:.0f}" for t in both]
                lines = text.count("\n")
                print(f"| {name} | {lines} | {debounce} | {' | '.join(cells)} |", flush=True)
    print(f"\nLoad of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
