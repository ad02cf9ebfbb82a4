# Written by `python -m nkic.nki.stubs` from nkic's tables.
import builtins
from enum import Enum, IntEnum
from typing import Any

DType = str
bfloat16: str
bool: str
bool_: str
float16: str
float32: str
float4_e2m1fn_x4: str
float8_e4m3: str
float8_e4m3fn: str
float8_e4m3fn_x4: str
float8_e5m2: str
float8_e5m2_x4: str
float8_e8m0fnu: str
int16: str
int32: str
int64: str
int8: str
tfloat32: str
uint16: str
uint32: str
uint8: str
