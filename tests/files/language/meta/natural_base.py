# test: check
# args: a=float32[128,64]
"""Members that are text are not tensors."""
from enum import Enum

import nki


class Mode(str, Enum):
    FAST = "fast"


@nki.jit
def kernel(a):
    return Mode.FAST  # error[bad-return]: <Mode.FAST: 'fast'>, not a tensor
