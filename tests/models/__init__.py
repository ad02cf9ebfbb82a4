"""What each instruction means, read from the documentation: imports register the models."""

from tests.harness.model import MODELS
from tests.models import (  # noqa: F401  (register)
    dma,
    gpsimd,
    random,
    registers,
    scalar,
    tensor,
    vector,
    vector_reduce,
    vector_search,
)

__all__ = ["MODELS"]
