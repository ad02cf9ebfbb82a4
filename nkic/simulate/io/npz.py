"""npz files: several arrays by name, read as untrusted input, written byte for byte alike.

What a header says is in `Stored`, before any data is read. NumPy forgets the types that it does
not have: bfloat16 comes back as raw two-byte elements (`V2`). So files written here carry a
member `__nki_dtypes__`: a JSON object from array name to NKI type, as an array of bytes.
"""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import UsageFailed
from nkic.base.files import STANDARD, cannot_read
from nkic.base.text import grouped
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.simulate.io import npy
from nkic.simulate.io.archive import Content, Member, members
from nkic.simulate.io.failures import Damaged, refuse
from nkic.simulate.io.npy import Header

DTYPES_MEMBER = "__nki_dtypes__"
MAX_DTYPES_BYTES = 1 << 20
SLACK = 1 << 20  # bytes that a file may have beyond its arrays: headers, directory
