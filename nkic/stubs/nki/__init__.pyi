# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any

def baremetal(kernel: Any = ..., **options: Any) -> Any:
    """Run a kernel on NumPy arrays: here, in the simulator.

    `save_neff_name` writes the artifact, `artifacts_dir` chooses the folder.
    """
def benchmark(kernel: Any = ..., **options: Any) -> Any:
    """Run a kernel and record its simulated time.

    `benchmark_result.nc_latency.get_latency_percentile(99)` is in microseconds. `warmup` and
    `iters` have no effect: every run takes the same time.
    """
def jit(fn: Any = ..., **options: Any) -> Any:
    """Make a kernel of a function. Calls compile it and run it in the simulator.

    `platform_target` is the target, by default that of NEURON_PLATFORM_TARGET_OVERRIDE, or of
    `--target` in NEURON_CC_FLAGS, or trn2; `mode` may be any that NKI has had, and has no effect.
    Raises `CompileError` for other options.
    """
def profile(kernel: Any = ..., **options: Any) -> Any:
    """Run a kernel and write its artifact and its report to `working_directory`."""
def simulate(kernel: Any) -> Any:
    """Return a callable that runs the kernel in the simulator. Plain functions are accepted,
    too.
    """
