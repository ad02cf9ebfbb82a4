"""Tensors, or parts of them, as users write them: `NAME[0:4, 2]`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nkic.base.diagnostics import bad_value
from nkic.base.text import clean
from nkic.simulate.debug.tensors import Stored

_PART = re.compile(r"([^\[\]]+?)\s*(?:\[([^\[\]]*)\])?")
_AXIS = re.compile(r"(-?\d{1,9})?(?:(:)(-?\d{1,9})?)?")


class Part(NamedTuple):
    """A part of a tensor: `axes` has an index, or a start and an end, for each dimension given."""

    text: str
    name: str
    axes: tuple[int | tuple[int | None, int | None], ...]

    def of(self, array: Stored) -> Stored:
        """Return this part of `array`, with at least one dimension."""
        index = tuple(slice(*axis) if isinstance(axis, tuple) else axis for axis in self.axes)
        selected: Stored = array[index]
        return selected if selected.ndim else selected.reshape(1)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `UsageFailed` if an array of that shape has no such part."""
        if len(self.axes) > len(shape):
            self._refuse(f"`{clean(self.name)}` has {len(shape)} dimensions: {shape}")
        for axis, (size, index) in enumerate(zip(shape, self.axes, strict=False)):
            if isinstance(index, int) and not -size <= index < size:
                self._refuse(
                    f"index {index} is outside axis {axis} of `{clean(self.name)}`: {shape}"
                )
            if isinstance(index, tuple) and not range(*slice(*index).indices(size)):
                self._refuse(
                    f"axis {axis} of `{clean(self.name)}` has {size} elements: none is left"
                )

    def _refuse(self, problem: str) -> None:
        help = f"choose an existing part, or the whole tensor with `{clean(self.name)}`"
        raise bad_value(f"{clean(self.text)}: {problem}", help)


def part(text: str) -> Part:
    """Parse a user's text. Raises `UsageFailed`."""
    match = _PART.fullmatch(text.strip())
    axis_texts = match[2].split(",") if match is not None and match[2] else []
    matches = [_AXIS.fullmatch(word.strip()) for word in axis_texts]
    if match is None or any(axis is None or not axis[0] for axis in matches):
        raise bad_value(
            f"`{clean(text)}` names no tensor", "for example acc, acc[0], or acc[0:4, 2]"
        )
    axes = [(_number(m[1]), _number(m[3])) if m[2] else int(m[1]) for m in matches if m is not None]
    return Part(text, match[1].strip(), tuple(axes))


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
