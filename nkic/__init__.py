"""nkic: compile and simulate AWS Trainium NKI kernels without a Trainium."""

__version__ = "0.1.0"
