"""`nl.shared_constant`: data in the artifact that is in HBM when the program starts.

Source: nki.language.shared_constant. The data is an array, or the path of a .npy file, which is
read at compile time; a relative path starts at the working directory. Under a command, the file
must be in a folder that the command line names (`nkic.base.confine`).
"""

from __future__ import annotations

import io
from hashlib import sha256
from typing import Any

from nkic.base import confine
from nkic.base.diagnostics import UsageFailed
from nkic.base.kernel_errors import KernelError
from nkic.ir.tensors import Tensor
from nkic.language.dtypes_api import as_dtype
from nkic.language.tensors import views
from nkic.language.tensors.arrays import ConstantArray, is_array
from nkic.language.tensors.tensor import NkiTensor
from nkic.language.texts import brief
from nkic.language.trace import active
from nkic.machine.memory import MAX_RANK, Buffer

MAX_BYTES = 256 << 20


def shared_constant(constant: Any) -> NkiTensor:
    """Return a tensor in shared HBM with this data; interned by its contents."""
    if isinstance(constant, NkiTensor) and constant._access.tensor.buffer is Buffer.SHARED_HBM:
        return constant  # an array of the running program: an input in HBM
    array = _read(constant) if isinstance(constant, str) else data_of(constant)
    if array is None:
        raise KernelError(
            "argument-kind",
            f"a constant must be a NumPy array or the path of a .npy file, not {brief(constant)}",
            argument="constant",
            position=0,
        )
    if not array.shape or not array.data:
        raise KernelError("bad-shape", f"a constant must have elements; shape is {array.shape}")
    if len(array.shape) > MAX_RANK:
        text = f"a tensor has at most {MAX_RANK} dimensions, not {len(array.shape)}"
        raise KernelError("bad-shape", text, help="reshape the array")
    return NkiTensor(views.whole(active().constant(array.shape, array.dtype, array.data)))


def data_of(value: Any) -> ConstantArray | None:
    """Copy an array, whose 64-bit numbers become 32-bit ones; None if the value is none."""
    if isinstance(value, ConstantArray):
        return value
    if not is_array(value):
        return None
    value = getattr(value, "_value", value) if hasattr(type(value), "holds_array") else value
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(value.dtype.name)
    if narrow is not None:
        narrowed = value.astype(narrow)
        if narrow != "float32" and (narrowed != value).any():
            raise KernelError("wrong-value", f"a number of the array is outside of {narrow}")
        value = narrowed
    dtype = as_dtype(value.dtype)
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return ConstantArray(dtype, tuple(value.shape), little.tobytes())


def refuse_written(constants: list[Tensor], written: set[int]) -> None:
    """Report constants that the program writes: all cores and runs share them."""
    for tensor in constants:
        if tensor.number in written:
            active().report.error(
                "constant-written",
                f"{tensor.name} is a shared constant, but an instruction writes to it",
                tensor.at.primary,
                help="copy it to another tensor first",
            )


def _read(path: str) -> ConstantArray:
    try:
        data = confine.read(path, MAX_BYTES)
    except UsageFailed as failed:
        reason = failed.diagnostics[0]
        raise _unusable(reason.message, reason.help) from failed
    active().reads[path] = sha256(data).hexdigest()
    try:
        return _array(data)
    except ValueError as error:
        raise _unusable(f"`{path}` cannot be used as a constant: {error}") from error


def _unusable(message: str, help: str = "") -> KernelError:
    return KernelError(
        "constant-file",
        message,
        help=help or "write it with numpy.save, in an element type of NKI",
        argument="constant",
        position=0,
    )


def _array(data: bytes) -> ConstantArray:
    """Decode a .npy file. Raises `ValueError`."""
    from nkic.arrays import (  # imports NumPy, which is slow and rarely needed
        failures,
        npy,
        offers,
        streams,
    )

    source = streams.Plain(streams.Opened(io.BytesIO(data), len(data)))
    try:
        header = npy.read_header(source)
        dtype = offers.of_numpy(header.element)
        if dtype is None:
            raise ValueError(f"its NumPy type {header.element} is not an NKI dtype")
        if header.start + header.data_bytes != len(data):
            remaining = len(data) - header.start
            raise ValueError(f"{remaining:,} bytes follow its header, not {header.data_bytes:,}")
        return ConstantArray(dtype, header.shape, npy.read_data(source, header).tobytes())
    except failures.Damaged as error:
        raise ValueError(str(error)) from error
