"""Verification of tensors and their addresses, parameters and constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import lcm

from nkic.machine.dtypes import DTYPES
from nkic.machine.memory import PARTITIONS, Buffer
from nkic.machine.targets import Target
from nkic.neff.limits import Limits
from nkic.neff.records import Executable, ParameterRecord, TensorRecord
from nkic.neff.verify.unsound import Unsound

# Names become keys of npz files, and so names of archive members: they must not contain paths.
_NAME = re.compile(r"[A-Za-z_][\w\[\].-]*", re.ASCII)

_ALIGNMENT = lcm(*(dtype.size for dtype in DTYPES.values()))


def kinds_of(executable: Executable) -> list[int]:
    """Return the kind of each tensor: those that differ only in name, byte and place share it.

    The bytes of one kind are equally aligned for every element type.
    """
    numbers: dict[tuple[object, ...], int] = {}
    keys = [(t[1].code, *t[2:7], t[7] % _ALIGNMENT) for t in executable.tensors]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def verify_tensors(
    executable: Executable, kinds: Sequence[int], target: Target, limits: Limits
) -> None:
    """Raise `Unsound` for the first invalid tensor, parameter or constant.

    Tensors of one kind, at one byte, are checked once.
    """
    sound: set[tuple[int, int]] = set()
    places = len(executable.places)
    for index, (kind, tensor) in enumerate(zip(kinds, executable.tensors, strict=True)):
        if (kind, tensor.byte) in sound and tensor.place < places:
            continue
        sound.add((kind, tensor.byte))
        if problem := _problem(tensor, executable, target, limits):
            text = f"tensor %{index} `{tensor.name}`: {problem}"
            raise Unsound(text, "artifact-bounds", record=index, place=tensor.place)
    _check_hbm(executable, limits)
    _check_parameters(executable)
    _check_constants(executable)


def _problem(t: TensorRecord, executable: Executable, target: Target, limits: Limits) -> str:
    """Return the error of one tensor, or an empty string."""
    if len(t.shape) > limits.rank or any(not 1 <= n <= limits.dimension for n in t.shape):
        return f"shape {t.shape} is beyond {limits.rank} dimensions of 1 to {limits.dimension:,}"
    if t.place >= len(executable.places):
        return f"there is no place {t.place}"
    shared = t.buffer is Buffer.SHARED_HBM
    if not (t.core == -1 if shared else 0 <= t.core < executable.cores):
        return f"{t.buffer.value} of core {t.core} in a program for {executable.cores} cores"
    if not t.buffer.on_chip:
        return "an address in HBM" if t.partition or t.byte else ""
    return _address_problem(t, target)


def _address_problem(t: TensorRecord, target: Target) -> str:
    """Return an error unless the tensor is within SBUF or PSUM from its first to its last byte."""
    if not t.shape:
        return f"a tensor in {t.buffer.value} needs a partition dimension"
    if t.partition < 0 or t.partition + t.shape[0] > PARTITIONS:
        last = t.partition + t.shape[0]
        return f"partitions {t.partition} to {last}; {t.buffer.value} has {PARTITIONS}"
    size = target.sbuf_usable if t.buffer is Buffer.SBUF else target.psum_bytes
    if t.byte < 0 or t.byte + t.bytes > size:
        last = t.byte + t.bytes
        return (
            f"bytes {t.byte:,} to {last:,} of each partition;"
            f" {t.buffer.value} of {target.name} has {size:,}"
        )
    if t.byte % t.dtype.size:
        return f"byte {t.byte} is not a multiple of the {t.dtype.size} bytes of {t.dtype.name}"
    return ""


def _check_hbm(executable: Executable, limits: Limits) -> None:
    total = sum(t.bytes for t in executable.tensors if not t.buffer.on_chip)
    if total > limits.hbm_bytes:
        text = f"tensors in HBM take {total:,} bytes; the limit is {limits.hbm_bytes:,}"
        raise Unsound(text, "artifact-limit")


def _check_parameters(executable: Executable) -> None:
    for kind, parameters in (("input", executable.inputs), ("output", executable.outputs)):
        if len({p.name for p in parameters}) != len(parameters):
            raise Unsound(f"two {kind}s have the same name")
        for parameter in parameters:
            _check_parameter(executable, kind, parameter)
    bound = [p.tensor for p in executable.inputs]
    declared = {i for i, t in enumerate(executable.tensors) if t.role == "input"}
    if len(set(bound)) != len(bound) or set(bound) != declared:
        raise Unsound("the inputs and the tensors of role input are not the same")


def _check_parameter(executable: Executable, kind: str, parameter: ParameterRecord) -> None:
    label = f"{kind} `{parameter.name}`"
    if not _NAME.fullmatch(parameter.name):
        raise Unsound(f"{label}: the name has characters that a parameter's name cannot have")
    if not 0 <= parameter.tensor < len(executable.tensors):
        raise Unsound(f"{label}: there is no tensor %{parameter.tensor}")
    tensor = executable.tensors[parameter.tensor]
    if tensor.buffer.on_chip:
        text = f"{label} is in {tensor.buffer.value}; the host sees only HBM"
        raise Unsound(text, record=parameter.tensor)
    if tensor.role != kind and not (kind == "output" and tensor.role == "input"):
        text = f"{label} is a tensor of role {tensor.role}"
        raise Unsound(text, record=parameter.tensor)


def _check_constants(executable: Executable) -> None:
    """Check that every constant has contents; an output may have initial contents."""
    for index, tensor in enumerate(executable.tensors):
        if tensor.role == "constant" and index not in executable.constants:
            raise Unsound(f"constant %{index} has no content", record=index)
    for index, content in executable.constants.items():
        if not 0 <= index < len(executable.tensors):
            raise Unsound(f"content for %{index}, which is not a tensor")
        tensor = executable.tensors[index]
        if tensor.role not in ("constant", "output") or tensor.buffer.on_chip:
            text = f"content for %{index}: {tensor.role} in {tensor.buffer.value}"
            raise Unsound(f"{text}, not a constant in HBM", record=index)
        if len(content) != tensor.bytes:
            text = f"constant %{index} has {len(content):,} bytes, not {tensor.bytes:,}"
            raise Unsound(text, "artifact-bounds", record=index)
