"""python walk.py FOLDER N [SEED]: N kernels of random walks in nki-autotune's KernelMDP, and a task."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import nkic

nkic.install()  # nki-autotune imports nki
from nkigym import transforms
from nkigym.codegen import render
from nkigym.environment import KernelMDP
from nkigym.ops import nkigym_kernel
from nkigym.ops.load import NKILoad
from nkigym.ops.matmul import NKIMatmul
from nkigym.ops.store import NKIStore
from nkigym.ops.tensor_copy import NKITensorCopy

SIDE, STEPS = 512, 14
TASK = f"""
kernels = ["nki_f_nkigym"]
reference = {{ function = "reference.py:product" }}
outputs = {{ rtol = 2e-2 }}
case = [{{ inputs = {{ lhs_T = "bf16[{SIDE},{SIDE}]", rhs = "bf16[{SIDE},{SIDE}]" }} }}]
"""
REFERENCE = "def product(lhs_T, rhs):\n    return lhs_T.T @ rhs\n"
NAMES = ("Split", "Fuse", "Reorder", "ComputeAt", "ReverseComputeAt", "SoftwarePipeline")


@nkigym_kernel
def f_nkigym(lhs_T, rhs):
    left = NKILoad()(src=lhs_T)
    right = NKILoad()(src=rhs)
    product = NKIMatmul()(stationary=left, moving=right)
    tile = NKITensorCopy()(src=product)
    out = NKIStore()(src=tile)
    return out  # noqa: RET504 - nki-autotune reads one assignment for each operation


def walk(seed: int) -> Iterator[str]:
    """Yield the kernel after each step of endless walks of STEPS steps."""
    chance, kinds = random.Random(seed), {n: ((SIDE, SIDE), "bfloat16") for n in ("lhs_T", "rhs")}
    space = KernelMDP(f_nkigym, kinds, [getattr(transforms, name)() for name in NAMES])
    while True:
        state = space.reset()
        for _ in range(STEPS):
            state = space.step(state, chance.choice(space.legal_actions(state)))
            yield render(state)


if __name__ == "__main__":
    folder, wanted, seed = Path(sys.argv[1]), int(sys.argv[2]), int(*sys.argv[3:])
    texts: dict[str, str] = {}
    for text in walk(seed):
        texts.setdefault(text, f"candidates/{len(texts):05}.py")
        if len(texts) == wanted:
            break
    (folder / "candidates").mkdir(parents=True)
    for text, name in {TASK: "task.toml", REFERENCE: "reference.py", **texts}.items():
        (folder / name).write_text(text)
