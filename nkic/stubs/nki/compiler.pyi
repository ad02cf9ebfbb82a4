# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any

class AddressRotation(Enum):
    AUTO = 'auto'
    ENABLE = 'enable'
    DISABLE = 'disable'
class CompileConfig:
    """Options of the passes after NKI. None leaves the choice to the compiler."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
class SpecializationConfig:
    """Options of the evaluation of a kernel."""
    def __init__(self, *args: Any, **more: Any) -> None: ...
