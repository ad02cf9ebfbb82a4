"""Test decoding: byte-order marks, declared encodings, and bytes that are not text."""

import pytest

from nkic.base.diagnostics import CompileFailed, Diagnostic
from nkic.source.parse import parse
from nkic.source.parser import decode


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\n", "x = 1\n"),
        ("é".encode(), "é"),
        (b"\xef\xbb\xbfx", "x"),
        (b"\xef\xbb\xbf# coding: utf-8\n\xc3\xa9", "# coding: utf-8\né"),
        (b"# -*- coding: latin-1 -*-\n\xe9", "# -*- coding: latin-1 -*-\né"),
        (b"#!/bin/sh\r\n  # vim: set fileencoding=cp1252 :\r\n\x80", None),
        (b"\n# coding=iso-8859-15\n\xa4", "\n# coding=iso-8859-15\n€"),
        (b"x = 1\n# coding: latin-1\n\xc3\xa9", "x = 1\n# coding: latin-1\né"),
        (b"# one\n# two\n# coding: latin-1\n\xc3\xa9", "# one\n# two\n# coding: latin-1\né"),
        (b"'# coding: latin-1'\n\xc3\xa9", "'# coding: latin-1'\né"),
    ],
)
def test_decoding(data: bytes, text: str | None) -> None:
    found = decode(data, "k.py")
    assert found.path == "k.py"
    assert found.text == (text or "#!/bin/sh\r\n  # vim: set fileencoding=cp1252 :\r\n€")


def refused(data: bytes) -> Diagnostic:
    with pytest.raises(CompileFailed) as raised:
        decode(data, "k.py")
    (found,) = raised.value.diagnostics
    return found


@pytest.mark.parametrize(
    ("data", "slug", "line", "column", "part"),
    [
        (b"x = 1\r\ny = 'a\xff'\n", "not-utf8", 2, 7, "0xFF"),
        (b"\xc3\xa9\xc3\xa9\xe9", "not-utf8", 1, 3, "0xE9"),
        (b"# coding: ascii\n\xc3", "not-utf8", 2, 1, "ascii"),
        (b"\n#coding: uft-8\n", "unknown-encoding", 2, 10, "`uft-8`"),
        (b"# coding: rot13\n", "unknown-encoding", 1, 11, "`rot13`"),
        (b"# coding: hex\n", "unknown-encoding", 1, 11, "`hex`"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "unknown-encoding", 1, 11, "`latin-1`"),
        (b"a\rb\0", "nul-byte", 2, 2, "NUL"),
        ("x = 1".encode("utf-16-le"), "nul-byte", 1, 2, "NUL"),
    ],
)
def test_bytes_that_are_no_text(data: bytes, slug: str, line: int, column: int, part: str) -> None:
    found = refused(data)
    assert found.primary is not None
    assert (found.code.slug, *found.primary.span[1:3]) == (slug, line, column)
    assert part in found.message
    assert found.help


def test_utf16_with_its_mark_is_no_utf8() -> None:
    assert refused("x".encode("utf-16")).code.slug == "not-utf8"


def test_positions_count_the_characters_of_the_decoded_text() -> None:
    module = parse(decode("# coding: cp1252\né = 'ü'; x\n".encode("cp1252"), "k.py"))
    assert module.body[1].span[1:] == (2, 10, 2, 11)
