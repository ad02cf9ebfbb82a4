"""Expected output, which `make bless` (NKIC_BLESS=1) replaces by the actual output."""

import os
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path


def blessing() -> bool:
    """Return whether this run accepts the actual output as expected."""
    return os.environ.get("NKIC_BLESS") == "1"


def compare_file(path: Path, found: str) -> None:
    """Fail with a diff unless the file at `path` equals `found`; write it when blessing."""
    if blessing():
        path.write_text(found, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8") if path.exists() else ""
    assert found == wanted, _difference(wanted, found)


def short_sum(text: str) -> str:
    """Return a hash of eight letters for a text that is too long for a page."""
    return sha256(text.encode()).hexdigest()[:8]


def _difference(wanted: str, found: str) -> str:
    lines = unified_diff(
        wanted.splitlines(), found.splitlines(), "expected", "found", lineterm="", n=1
    )
    return "\n".join(["`make bless` accepts this:", *lines])
