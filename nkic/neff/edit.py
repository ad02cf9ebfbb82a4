"""Strip information about the source from a file. The program and its id stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from nkic.neff import container
from nkic.neff.container import Section
from nkic.neff.header import SectionEntry
from nkic.neff.layout import SECTION_VERSION
from nkic.neff.limits import LIMITS, Limits
from nkic.neff.sections import decode, encode
from nkic.neff.write import section_entry

_DEBUG = frozenset({"src", "lines", "debug", "iterations"})


def strip(data: bytes, category: Literal["debug", "source"], limits: Limits = LIMITS) -> bytes:
    """Return the file without embedded source text, or without any reference to the source.

    Optional sections that this version does not know are kept.
    """
    file = container.unpack(data, limits)
    container.check_version(file.header)
    dropped = _DEBUG if category == "debug" else frozenset[str]()
    contents: dict[str, bytes | memoryview]
    contents = {name: s.data for name, s in file.sections.items() if name not in dropped}
    if category == "source" and _readable(file.sections, "src"):
        contents["src"] = encode.src(decode.source_files(file.sections, limits), False)
    entries = tuple(_entry(file.sections, name, content) for name, content in contents.items())
    return container.pack(file.header._replace(sections=entries), contents, limits)


def _readable(sections: Mapping[str, Section], name: str) -> bool:
    return name in sections and sections[name].entry.version == SECTION_VERSION


def _entry(sections: Mapping[str, Section], name: str, content: bytes | memoryview) -> SectionEntry:
    old = sections[name].entry
    new = section_entry(name, bytes(content))
    return new._replace(version=old.version, flags=old.flags)
