"""Native tracing: a live function is called, and what it calls of NKI is recorded."""

from nkic.specialise.native.kernel import LiveKernel
from nkic.specialise.native.trace import Traced, trace_kernel

__all__ = ["LiveKernel", "Traced", "trace_kernel"]
