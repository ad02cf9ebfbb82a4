"""Change every number of a valid file: one more, one less, and far out of range.

The verifier's answers are in tests/data/verifier.txt, a line for each field.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from nkic.artifact.format import Limits
from nkic.artifact.records import Executable, StreamRecord
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed
from nkic.machine.operands import Register
from nkic.machine.targets import Buffer
from tests.harness.bless import compare_file
from tests.harness.executables import sample

PAGE = Path(__file__).parents[2] / "data/verifier.txt"
SMALL = Limits(rank=3, dimension=4096, registers=3, waits=2, loop_depth=2, trips=5, hbm_bytes=16400)
# Records that describe only the source, in addition to the numbers of places.
SAID = {"arguments", "meta", "files", "places", "iterations", "name"}
Put = Callable[[Any], Executable]


def numbers(value: Any, put: Put, path: str) -> Iterator[tuple[str, int, Put]]:
    """Return every number inside a value, with a function that replaces it."""
    if type(value) is int:
        yield path, value, put
    elif isinstance(value, Register):
        yield f"{path} register", value.number, lambda n: put(Register(n))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, part in zip(value._fields, value, strict=True):
            inner = _field(value, name, put)
            yield from numbers(part, inner, f"{path} {name}")
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from numbers(part, _element(value, index, put), f"{path} {index}")


def _field(value: Any, name: str, put: Put) -> Put:
    return lambda new: put(value._replace(**{name: new}))


def _element(value: tuple[Any, ...], index: int, put: Put) -> Put:
    return lambda new: put((*value[:index], new, *value[index + 1 :]))


def of_file(found: Executable) -> Iterator[tuple[str, int, Put]]:
    for one in fields(found):
        if one.name not in SAID:
            value = getattr(found, one.name)
            yield from numbers(value, _attribute(found, one.name), one.name)


def _attribute(found: Executable, name: str) -> Put:
    return lambda new: replace(found, **{name: new})


def said(found: Executable, limits: Limits = SMALL) -> str:
    """Return the verifier's answer."""
    try:
        verify(found, limits)
    except ArtifactFailed as refused:
        (one,) = refused.diagnostics
        return f"{one.code.slug}, {one.message}"
    return "sound"


def answers(value: int, put: Put) -> Iterator[str]:
    """Return the answers from far below to far above; consecutive values with equal answers are
    merged.
    """
    near = {value + by for by in (-64, -8, *range(-2, 3), -4, 4, 8, 64)}
    values = sorted({*near, -1, 0, 1, 127, 128, 129, 1 << 31, 1 << 62, -(1 << 62)})
    before, low, high = "", values[0], values[0]
    for one in values:
        answer = _unnumbered(said(put(one)), one) if one != value else "as it is"
        if answer != before and before:
            yield f"{low} to {high} {before}" if low != high else f"{low} {before}"
        if answer != before:
            before, low = answer, one
        high = one
    yield f"{low} to {high} {before}"


def _unnumbered(text: str, number: int) -> str:
    """Remove numbers, so that equal answers to consecutive numbers have equal text."""
    if number in (0, 1):
        return text  # which are all over it
    return re.sub(rf"(?<![\d,-])({number}|{number:,})(?![\d,]*\d)", "N", text)


def lines(found: Executable) -> Iterator[str]:
    for path, value, put in of_file(found):
        yield f"{path} = {value}"
        yield from (f"  {one}" for one in answers(value, put))


def test_the_sample_is_within_these_limits() -> None:
    assert said(sample()) == "sound"


def test_every_number_is_looked_at() -> None:
    compare_file(PAGE, "".join(f"{line}\n" for line in lines(sample())))


def test_names_and_roles_are_looked_at() -> None:
    """Give each tensor another memory and another role."""
    found, text = sample(), ""
    for index, tensor in enumerate(found.tensors):
        for buffer in Buffer:
            text += _line(found, index, f"in {buffer.value}", tensor._replace(buffer=buffer))
        for role in ("input", "output", "constant", "internal"):
            text += _line(found, index, role, tensor._replace(role=role))
    compare_file(PAGE.with_name("verifier_tensors.txt"), text)


def _line(found: Executable, index: int, what: str, tensor: Any) -> str:
    tensors = (*found.tensors[:index], tensor, *found.tensors[index + 1 :])
    return f"{index} {what}: {said(replace(found, tensors=tensors))}\n"


def test_streams_are_looked_at() -> None:
    """Drop each stream, double it, and drop each of its items."""
    found, text = sample(), ""
    for index, stream in enumerate(found.streams):
        before, after = found.streams[:index], found.streams[index + 1 :]
        text += f"{stream.name} left out: {said(replace(found, streams=(*before, *after)))}\n"
        twice = (*found.streams, stream)
        text += f"{stream.name} twice: {said(replace(found, streams=twice))}\n"
        for at in range(len(stream.items)):
            items = (*stream.items[:at], *stream.items[at + 1 :])
            less: StreamRecord = stream._replace(items=items)
            made = replace(found, streams=(*before, less, *after))
            text += f"{stream.name} without item {at}: {said(made)}\n"
    compare_file(PAGE.with_name("verifier_streams.txt"), text)
