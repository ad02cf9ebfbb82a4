"""Models of all instructions, written from the documentation. Imports register the models."""

from tests.harness.model import MODELS
from tests.harness.scenes import EXCHANGES
from tests.models import (  # noqa: F401  (register)
    collectives,
    cores,
    debug,
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

__all__ = ["EXCHANGES", "MODELS"]
