"""Streaming decoder of a section's records, which bounds memory for hostile files.

A section is one msgpack array. Its head is decoded here; each record is decoded under small limits,
and must be the canonical encoding of its value, which excludes long forms of integers, float32, and
every other redundant encoding. Without limits, two megabytes of empty arrays would become more than
a hundred megabytes of Python objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgpack

from nkic.base.text import clean
from nkic.neff.container import Section
from nkic.neff.failures import Malformed, refuse

_ARRAY_HEADS = {0xDC: (2, 16), 0xDD: (4, 1 << 16)}  # width of an array's count, and its minimum


class _Window:
    """A section as a readable file, without a copy."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        start, self._at = self._at, self._at + size
        return bytes(self._data[start : self._at])


class Records:
    """An iterable of a section's records.

    `width` limits arrays within a record, `largest` the bytes of one record; both bound the memory
    that a hostile file can use.
    """

    def __init__(self, section: Section, *, count: int, width: int, largest: int) -> None:
        self.name = section.entry.name
        self._data = section.data
        self._base = section.offset
        self.start = 0  # of the current record, in the section
        with self.located():
            self.count = self._head()
            if self.count > count:
                text = f"{self.count:,} records; the limit is {count:,}"
                raise Malformed(text, "artifact-limit")
            if self.count > len(self._data) - self.start:
                raise Malformed(f"{self.count:,} records declared in {len(self._data):,} bytes")
        self._width = width
        self._largest = largest

    def _head(self) -> int:
        data = self._data
        first = data[0] if len(data) else 0xC0
        if 0x90 <= first <= 0x9F:
            self.start = 1
            return first - 0x90
        width, minimum = _ARRAY_HEADS.get(first, (0, 0))
        count = int.from_bytes(data[1 : 1 + width], "big")
        if not width or len(data) < 1 + width or count < minimum:
            raise Malformed("the section does not begin with the canonical head of an array")
        self.start = 1 + width
        return count

    def __iter__(self) -> Iterator[Any]:
        # Two passes in lockstep: the first finds the end of a record without building objects.
        scout, reader = self._unpacker(), self._unpacker()
        skip, tell, unpack = scout.skip, scout.tell, reader.unpack
        pack = msgpack.Packer().pack
        data, first, largest = self._data, self.start, self._largest
        end = first
        for _ in range(self.count):
            self.start = end
            skip()
            end = first + tell()
            if end - self.start > largest:
                raise Malformed(f"the record has more than {largest:,} bytes", "artifact-limit")
            record = unpack()
            if pack(record) != data[self.start : end]:
                raise Malformed("the record's msgpack is not canonical")
            yield record
        self.start = end
        if end != len(data):
            raise Malformed(f"{len(data) - end:,} bytes follow the last record")

    def _unpacker(self) -> msgpack.Unpacker:
        return msgpack.Unpacker(
            _Window(self._data[self.start :]),
            max_buffer_size=max(1 << 14, self._largest),
            use_list=False,
            max_array_len=self._width,
            max_map_len=0,
            max_ext_len=0,
        )

    @contextmanager
    def located(self) -> Iterator[None]:
        """Convert errors in the current record to refusals that tell its position."""
        try:
            yield
        except Malformed as error:
            refuse(error.slug, f"{error}", self.name, self._base + self.start)
        except msgpack.OutOfData:
            refuse("artifact-malformed", "the last record is cut off", self.name, self._end())
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            reason = clean(f"{error}")[:80] or type(error).__name__
            text = f"the record is not valid msgpack: {reason}"
            refuse("artifact-malformed", text, self.name, self._base + self.start)

    def _end(self) -> int:
        return self._base + len(self._data)
