"""Triton-viz's interpreter of Beta 2 as a peer, where a checkout of it is given.

Only its module of simulation is loaded, without tracer and web pages. It takes the names of NKI
from `import nki`, which are nkic's here, and replaces those that it interprets.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import nkic
from tests.bench.cases import Case, Floats, same

KERNELS = Path(__file__).with_name("kernels.py")
MODULE = "triton_viz.core.simulation.nki_beta2"


class Peer:
    """The interpreter of a checkout. Raises `ImportError` if it cannot be loaded."""

    def __init__(self, checkout: Path) -> None:
        nkic.install()
        for name in ("triton_viz", "triton_viz.core", "triton_viz.core.simulation"):
            package = ModuleType(name)  # without the imports of their __init__
            package.__path__ = [str(checkout.joinpath(*name.split(".")))]
            sys.modules[name] = package
        self.module: Any = import_module(MODULE)
        self.module.nki_patch_lang()
        self.kernels: dict[str, Any] = {}
        exec(compile(KERNELS.read_text("utf-8"), str(KERNELS), "exec"), self.kernels)

    def action(self, case: Case, given: dict[str, Floats], wanted: Floats) -> Callable[[], object]:
        """Return a run of the case's kernel, all in float32, after its result was compared."""
        out = np.zeros(case.result, np.float32)
        body = self.kernels[f"{case.kernel}_into"]
        kernel = self.module.NKIBeta2InterpretedFunction(body)
        kernel.run(out, *given.values(), grid=(1,))
        same(case, "the peer", out, wanted)
        return lambda: kernel.run(out, *given.values(), grid=(1,))
