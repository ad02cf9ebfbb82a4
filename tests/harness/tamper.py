"""Change executables as an attacker would: change the contents of sections and correct all
hashes.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgpack
import pytest

from nkic.artifact import container
from nkic.artifact.container import SectionEntry
from nkic.artifact.format import LIMITS
from nkic.base.diagnostics import ArtifactFailed

_HUGE = LIMITS.__class__(header_bytes=1 << 30, file_bytes=1 << 40)


def contents(data: bytes) -> dict[str, bytes]:
    return {name: bytes(s.data) for name, s in container.unpack(data).sections.items()}


def rebuilt(data: bytes, changed: dict[str, bytes | None], **fields: Any) -> bytes:
    """Return `data` with sections replaced, added (optional ones), or dropped (None), and correct
    hashes.
    """
    file = container.unpack(data)
    sections = {**contents(data), **changed}
    kept = {name: content for name, content in sections.items() if content is not None}
    entries = tuple(_entry(file, name, content) for name, content in kept.items())
    fields = {"sections": entries, **fields}
    if all(name in kept for name in container.SEMANTIC):
        fields = {"id": container.program_id(kept), **fields}
    return container.pack(file.header._replace(**fields), kept, _HUGE)


def _entry(file: container.Container, name: str, content: bytes) -> SectionEntry:
    found = file.sections.get(name)
    version, flags = (found.entry.version, found.entry.flags) if found else (1, 0)
    return SectionEntry(name, version, flags, len(content), sha256(content).digest())


def records(data: bytes, section: str) -> list[Any]:
    """Return the records of a section, to be changed and passed to `with_records`."""
    found: list[Any] = msgpack.unpackb(contents(data)[section])
    return found


def with_records(data: bytes, section: str, records: list[Any]) -> bytes:
    return rebuilt(data, {section: msgpack.packb(records)})


def with_header(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Return `data` with another header map and a correct digest."""
    start = len(container.PREFIX)
    size = int.from_bytes(data[start + 1 : start + 3], "big")
    found = msgpack.unpackb(data[start + 3 : start + 3 + size])
    changed = change(found) or found
    encoded: bytes = changed if isinstance(changed, bytes) else msgpack.packb(changed)
    encoded = (
        encoded[: -container.DIGEST_BYTES] + sha256(encoded[: -container.DIGEST_BYTES]).digest()
    )
    packed: bytes = msgpack.packb(encoded)
    return container.PREFIX + packed + data[start + 3 + size :]


def refused(call: Callable[[], object]) -> tuple[str, str]:
    """Return the number of the code and the message that `call` raises."""
    with pytest.raises(ArtifactFailed) as caught:
        call()
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code.number, diagnostic.message
