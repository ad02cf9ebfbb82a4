# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any

class dge_mode(Enum):
    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3
class dma_engine(Enum):
    dma = 1
    gpsimd_dma = 2
class engine(Enum):
    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0
class matmul_perf_mode(Enum):
    none = 'none'
    double_row = 'double_row'
class nc_version(IntEnum):
    gen2 = 2
    gen3 = 3
    gen4 = 4
class oob_mode(Enum):
    error = 0
    skip = 1
class reduce_cmd(Enum):
    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4
