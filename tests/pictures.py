"""Draw the pages' pictures from the output of the commands: `make pictures`.

Each picture is a command on a kernel of docs/performance.md, as a terminal would show it, drawn by
Rich's export. Another shows the same kernel as the language server describes it to an editor.
Nothing in them is fetched from the network.
"""

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

from lsprotocol import types
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from tests.lsp.editor import Editor, position

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


EDITOR = "editor"  # the picture of docs/editor.md
HOVERED = "nisa.nc_matmul"


def in_editor() -> str:
    """Draw a kernel with what the server replies: hints, cycles, a hover, and the status."""
    source = HEAD + _kernels()["matmul.py"]
    with TemporaryDirectory() as folder, Editor(Path(folder), seconds=60) as editor:
        (Path(folder) / "matmul.py").write_text(source, encoding="utf-8")
        editor.open("matmul.py", source)
        editor.command("nkic.run", "matmul.py")
        at = position(source, HOVERED, len("nisa."))
        asked = types.HoverParams(editor.at("matmul.py"), at)
        page = editor.await_(editor.client.text_document_hover_async(asked)).contents.value
        whole = types.Range(types.Position(0, 0), types.Position(1000, 0))
        wanted = types.InlayHintParams(editor.at("matmul.py"), whole)
        hints = editor.await_(editor.client.text_document_inlay_hint_async(wanted))
        status = next(text for _, text, _ in reversed(editor.statuses) if text)
    shown: list[RenderableType] = []
    for number, line in enumerate(source.splitlines()):
        text = Syntax("", "python", theme="ansi_dark").highlight(line)
        text.rstrip()
        own = [hint for hint in hints if hint.position.line == number]
        for hint in sorted(own, key=lambda hint: int(hint.position.character), reverse=True):
            before, after = text.divide([hint.position.character])
            text = before.append(f"  {hint.label}", "italic bright_black").append(after)
        shown.append(Text(f"{number + 1:3}  ", "bright_black").append(text))
        if number == at.line:
            head, _, rest = page.partition("\n\n- `dst`")
            panel = Panel(Markdown(head if rest else page, code_theme="ansi_dark"), width=100)
            shown.append(Padding(panel, (0, 0, 0, 12)))
    shown.append(Text(f" {status} ", "reverse", justify="right"))
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Group(*shown))
    return _FONTS.sub("", console.export_svg(title="matmul.py", unique_id=EDITOR))


def texts(svg: str) -> str:
    """Return the words of a picture, line by line."""
    return "\n".join(unescape(one).replace("\xa0", " ").strip() for one in _TEXT.findall(svg))


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, svg in (*pictures(), (EDITOR, in_editor())):
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
