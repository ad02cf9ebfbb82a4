"""Draw the README's pictures from the output of the commands: `make pictures`.

Each picture is a command on a kernel of docs/performance.md, as a terminal would show it, drawn by
Rich's export. Nothing in them is fetched from the network.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "docs/pictures"
PAGE = PROJECT / "docs/performance.md"
MODULES = {"nkic": "nkic.cli.nkic", "nki-run": "nkic.cli.nki_run"}
SHAPES = "--arg 'lhsT=float32[512,512]' --arg 'rhs=float32[512,1024]'"
WIDTH = 120
_FONTS = re.compile(r"@font-face \{.*?\}\n", re.S)
HEAD = """\
# /// nkic
# [args]
# lhsT = "float32[512, 512]"
# rhs = "float32[512, 1024]"
# ///
"""
_BLOCK = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.M | re.S)
_TEXT = re.compile(r"<text\b[^>]*>(.*?)</text>", re.S)


class Picture(NamedTuple):
    """A command to show, and the commands to run before it without showing them."""

    name: str
    shown: str
    before: tuple[str, ...] = ()


PICTURES = (
    Picture("error", "nkic wide.py --check"),
    Picture(
        "verdict",
        "nki-run slow.neff --fill 'randn(0)'",
        (f"nkic matmul.py {SHAPES} --embed-source -o slow.neff",),
    ),
    Picture(
        "timeline",
        "nki-run profile fast.neff --fill 'randn(0)' --report timeline -o output_0=@out.npy "
        "--no-verdict -q",
        ("nkic once.py --arg 'lhsT=bf16[512,512]' --arg 'rhs=bf16[512,1024]' -o fast.neff",),
    ),
)


def pictures() -> Iterator[tuple[str, str]]:
    """Return the name and the SVG of each picture."""
    with TemporaryDirectory() as folder:
        for name, text in _kernels().items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        for picture in PICTURES:
            for command in picture.before:
                _run(command, folder)
            yield picture.name, _drawn(picture, _run(picture.shown, folder))


def _kernels() -> dict[str, str]:
    """Write the kernels of the page, and a kernel with an error: a tile of 256 partitions."""
    found = dict(_BLOCK.findall(PAGE.read_text("utf-8")))
    wide = found["matmul.py"].replace("nl.ndarray((128, 128)", "nl.ndarray((256, 128)")
    return {**found, "wide.py": HEAD + wide}


def _run(command: str, folder: str) -> str:
    """Run a command and return its output, coloured as on a terminal."""
    tool, *words = shlex.split(command)
    line = [sys.executable, "-m", MODULES[tool], *words, "--color", "always"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def _drawn(picture: Picture, printed: str) -> str:
    """Draw a terminal with the command and its output."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    prompt = Text("$ ", "bold green").append(picture.shown, "bold")
    console.print(prompt, soft_wrap=False)
    console.print(Text.from_ansi(printed))
    drawn = console.export_svg(title=picture.shown.split()[0], unique_id=picture.name)
    return _FONTS.sub("", drawn)


def texts(svg: str) -> str:
    """Return the words of a picture, line by line."""
    return "\n".join(unescape(one).replace("\xa0", " ").strip() for one in _TEXT.findall(svg))


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, svg in pictures():
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
