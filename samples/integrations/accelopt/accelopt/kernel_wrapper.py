"""AccelOpt's `NKIKernel`, with nkic in place of a device."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import nkibench  # noqa: E402


@dataclass
class KernelProperties:
    """What AccelOpt keeps of a kernel: the fields of its own class."""

    compiled: bool = False
    correct: bool = False
    runnable: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


class NKIKernel:
    """A kernel's file and the file of its NumPy reference. Only float32 is allowed."""

    def __init__(self, program_path: str, base_numpy_path: str) -> None:
        self.program_path, self.base_numpy_path = program_path, base_numpy_path
        self.res = KernelProperties()
        self.rel_tol = 2e-5

    def profile(self, save_fields: Sequence[str] = ()) -> KernelProperties:
        """Compile, check on five seeds, and time the kernel."""
        found = nkibench.evaluate(
            Path(self.program_path).read_text(),
            Path(self.base_numpy_path).read_text(),
            Path(self.base_numpy_path).stem,
            tolerance=self.rel_tol,
            seconds=3600,  # large baselines take minutes
            more="narrowest = 'float32'",
            orders=0,
            sensitivity=False,
        )
        self.res = KernelProperties(found.compiled, found.correct, found.runnable)
        step = "correctness" if found.compiled else "compilation"
        if not found.correct:
            self.res.metadata[f"{step}_error"] = found.problem or found.reason
            return self.res
        latency = (found.time_ns or 0) / 1e6
        times = {"latency": latency, "min_ms": latency, "max_ms": latency, "rel_diffs": 0.0}
        self.res.metadata |= times
        self.res.metadata |= {f: found.metrics[f] for f in save_fields if f in found.metrics}
        return self.res
