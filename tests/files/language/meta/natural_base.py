# test: check
# args: a=float32[128,64]
"""Classes of Python's own are no bases, nor are they beside Enum."""
from enum import Enum

import nki


class Mode(str, Enum):  # error[wrong-base]: cannot inherit from `str`
    FAST = "fast"


@nki.jit
def kernel(a):
    return Mode.FAST
