"""Recognition of the vendor's executable files, which share only our extension.

Layout of their 1024-byte header: Neuron documentation, "Work with NEFF files". It does not state
the byte order; little-endian is assumed, as on every host that Neuron supports.
"""

from __future__ import annotations

import struct

from nkic.base.text import clean

HEADER_BYTES = 1024
_VERSIONS = struct.Struct("<5Q")  # package version, header size, data size, major, minor
_NAME = slice(220, 220 + 256)
_MAX_PACKAGE_VERSION = 1000  # 2 is current; this only excludes chance matches
ADVICE = "compile the kernel's source with nkic; the vendor's files run on Trainium only"


def is_neff(data: bytes) -> bool:
    """Return whether the file begins with the header of an AWS NEFF."""
    if len(data) < HEADER_BYTES:
        return False
    package, header, *_ = _VERSIONS.unpack_from(data)
    return bool(header == HEADER_BYTES and package <= _MAX_PACKAGE_VERSION)


def explanation(data: bytes) -> str:
    """Return a description of such a file for the user."""
    _, _, _, major, minor = _VERSIONS.unpack_from(data)
    name = data[_NAME].split(b"\0")[0].decode("utf-8", "replace")
    called = f' of network "{clean(name)}"' if name else ""
    return (
        f"this is an AWS NEFF, version {major}.{minor}{called}: machine code for Trainium in the"
        " vendor's format. It has the same extension as nkic's files, but another format"
    )
