"""Native tracing: calls a live function, and records the NKI operations that it performs."""

from nkic.specialise.native.kernel import LiveKernel
from nkic.specialise.native.trace import Traced, trace_kernel

__all__ = ["LiveKernel", "Traced", "trace_kernel"]
