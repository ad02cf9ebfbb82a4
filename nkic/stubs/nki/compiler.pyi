# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any

