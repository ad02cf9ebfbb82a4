"""Types and values of kernel arguments as text: `--arg`, `--const`.

A type is `float16[128, 512]`, or `128x512xfloat16` in IREE's form, or only a dtype if the kernel's
annotation gives the shape. Errors are `UsageFailed`.
"""

from __future__ import annotations

import re
from typing import Any

from nkic.base.diagnostics import bad_argument
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.memory import MAX_RANK, MAX_SIZE
from nkic.specialise import literals
from nkic.specialise.request import TensorType

MAX_GRID = 3  # dimensions of a launch grid
_BRACKETS = re.compile(r"^(?P<dtype>[\w.]+)\s*(?:\[(?P<sizes>[^\]]*)\])?$")
_CROSSES = re.compile(r"^(?P<sizes>\d+(?:x\d+)*)x(?P<dtype>[A-Za-z]\w*)$")


def parse_arg(text: str, option: str = "--arg") -> tuple[str, TensorType]:
    """Parse `a=float16[128,512]` into a name and a type."""
    name, value = _split(text, option, "float16[128,512]")
    return name, parse_type(value, f"{option} {name}")


def parse_const(text: str, option: str = "--const") -> tuple[str, Any]:
    """Parse `n=3` into a name and a value: a Python literal, JSON, or a name such as nl.float32."""
    name, value = _split(text, option, "3")
    try:
        return name, literals.parse(value)
    except literals.LiteralError as error:
        raise bad_argument(
            f"{option} {name}={value}: {error}",
            f"values are Python literals, JSON, or names such as nl.float32; strings are quoted: "
            f"{option} {name}='\"{value}\"'",
        ) from error


def parse_type(text: str, origin: str) -> TensorType:
    """Parse `float16[128, 512]`, `128x512xf16` or `float16`; `origin` prefixes messages."""
    stripped = text.strip()
    crosses = _CROSSES.match(stripped)
    match = crosses or _BRACKETS.match(stripped)
    if match is None:
        raise bad_argument(
            f"{origin}: `{text}` is not a tensor type",
            "write it as float16[128,512] or 128x512xf16",
        )
    dtype = find_dtype(match["dtype"], origin)
    sizes = match["sizes"]
    if sizes is None:
        return TensorType(dtype, None, origin)
    fields = re.split("x" if crosses else ",", sizes.strip().rstrip(","))
    return TensorType(dtype, _shape(fields, text, origin), origin)


def parse_grid(text: str, origin: str) -> tuple[int, ...]:
    """Parse `4`, `4x2` or `4,2` as the launch grid; `origin` prefixes messages."""
    numbers = [number.strip() for number in re.split("[x,]", text.strip())]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise bad_argument(
            f"{origin}: `{text}` is not a grid", "write the instances per dimension, as 4x2"
        )
    sizes = tuple(int(number) for number in numbers if len(number) < 10)
    if len(sizes) < len(numbers) or min(sizes) < 1 or len(sizes) > MAX_GRID:
        raise bad_argument(
            f"{origin}: a grid has 1 to {MAX_GRID} dimensions of at least 1 instance, each a number"
            " of at most 9 digits"
        )
    return sizes


def find_dtype(name: str, origin: str) -> DType:
    """Return the dtype of an NKI name (with or without `nl.`), or of a short one (`bf16`)."""
    plain = name.removeprefix("nl.").removeprefix("nki.language.")
    dtype = dtypes.find(plain) or dtypes.find(plain.lower())
    if dtype is None:
        near = "".join(f"did you mean `{suggestion}`?" for suggestion in dtypes.suggest(plain))
        listed = f"known are: {', '.join(sorted(dtypes.DTYPES))}"
        raise bad_argument(f"{origin}: there is no dtype `{name}`", near or listed)
    return dtype


def _shape(fields: list[str], text: str, origin: str) -> tuple[int, ...]:
    numbers = [field.strip() for field in fields]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise bad_argument(
            f"{origin}: the sizes in `{text}` are not all whole numbers",
            "a tensor in HBM has at least one dimension; write float16[1] for a single element",
        )
    if len(numbers) > MAX_RANK:
        raise bad_argument(f"{origin}: {len(numbers)} dimensions; at most {MAX_RANK}")
    sizes = tuple(int(number) for number in numbers if len(number) < 20)
    if len(sizes) < len(numbers) or not all(0 < size <= MAX_SIZE for size in sizes):
        raise bad_argument(f"{origin}: every size in `{text}` must be from 1 to {MAX_SIZE}")
    return sizes


def _split(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise bad_argument(
            f"{option} {text}: expected NAME=VALUE", f"for example {option} a={example}"
        )
    return name.strip(), value.strip()
