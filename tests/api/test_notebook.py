"""`%load_ext nkic`, in an IPython of this process; docs/notebook.md is one of its notebooks.

NKIC_BLESS=1 writes the output into the page.
"""

from __future__ import annotations

import builtins
import os
import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output
from traitlets.config import Config

import nkic.nki
import nkic.notebook
from nkic import api
from nkic.api.running import PROGRESS

PAGE = Path(__file__).resolve().parents[2] / "docs/notebook.md"
_CELL = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)

# A cell whose kernel doubles its first argument, and where more can be written before the end.
HEAD = "import nki.isa as nisa\nimport nki.language as nl\n\n"
BODY = """def kernel(x, y=None, factor=2.0):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, name="<b>tile</b>")
    nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
KERNEL = HEAD + BODY
X = np.arange(512, dtype=np.float32).reshape(128, 4)


class Notebook:
    """A shell, and what the frontend of a notebook would get."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell: Any = shell

    def run(self, cell: str, fails: bool = False) -> tuple[str, list[RichOutput]]:
        """Execute a cell. Return what it shows as text, and its rich outputs, the result last."""
        with capture_output() as shown:
            result = self.shell.run_cell(cell, store_history=True)
        assert (result.error_in_exec or result.error_before_exec) if fails else result.success
        rich = [*shown.outputs]
        text = "\n".join([*(one.data["text/plain"] for one in rich), shown.stdout, shown.stderr])
        if result.result is not None:
            rich.append(RichOutput(*self.shell.display_formatter.format(result.result)))
        return re.sub(r"Out\[\d+\]: \n?", "", text).strip(), rich


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    before = nkic.nki.installed()
    for name in ("displayhook", "excepthook"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    for name in ("display", "__IPYTHON__"):  # which a shell adds to Python's own names
        monkeypatch.setattr(builtins, name, None, raising=False)
    monkeypatch.delattr(builtins, "_", raising=False)  # of Python's own display
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    settings = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=settings, colors="nocolor")
    try:
        shell.run_line_magic("load_ext", "nkic")
        shell.user_ns["a"] = X
        yield Notebook(shell)
    finally:
        shell.restore_sys_module_state()
        InteractiveShell.clear_instance()
        if not before:
            nkic.nki.uninstall()


class Tags(HTMLParser):
    """The elements of a text of HTML, and what their attributes are called."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}


SAFE = {"b", "p", "pre", "span", "style", "table", "thead", "tbody", "tr", "th", "td"}
DRAWN = {"svg", "title", "rect", "text", "line", "xmlns", "viewbox", "width", "height", "role"}
DRAWN |= {"x", "y", "x1", "x2", "y1", "y2", "fill", "stroke", "font-family", "font-size"}
DRAWN |= {"text-anchor"}


def test_a_cell_is_compiled_and_run(notebook: Notebook) -> None:
    text, (card,) = notebook.run(f"%%nki kernel a factor=3.0 -o called --target trn3\n{KERNEL}")
    called = notebook.shell.user_ns["called"]
    assert isinstance(called, api.Called) and called.result.run.target == "trn3"
    np.testing.assert_array_equal(called.values, X * 3)
    assert text == f"{called.result.report}{called.result.verdict}".strip()
    html = card.data["text/html"]
    assert "critical path: In[1]:10 " in text and "critical path: In[1]:10 " in html
    assert "<svg" in html and "In[1]:7: 0." in html  # a bar: its line, and its time
    assert Tags(html).names <= SAFE | DRAWN


def test_it_is_what_the_command_compiles(notebook: Notebook, tmp_path: Path) -> None:
    """The instructions of the cell's file are those of the command."""
    cell = f"# %%nki kernel a\n{KERNEL}"
    (tmp_path / "kernel.py").write_text(cell)
    types = {"x": "f32[128,4]"}
    filed = api.compile(tmp_path / "kernel.py", inputs=types, consts={"factor": 2.0}, name="kernel")
    notebook.run(f"%%nki kernel a\n{KERNEL}")
    made = notebook.shell.user_ns["_"].artifact
    assert re.sub(r"cell-\w+\.py", "kernel.py", made.text) == filed.text


def test_the_function_is_the_notebooks(notebook: Notebook) -> None:
    notebook.run(f"%%nki kernel a\n{KERNEL}")
    notebook.run(
        "%nki kernel a[:64], factor=-1.0 -o less"
    )  # with a comma, as in Python, or without
    np.testing.assert_array_equal(notebook.shell.user_ns["less"].values, -X[:64])
    assert notebook.run("import nkic; print(nkic.call(kernel, (a,)).values[1, 0])")[0] == "8.0"
    assert "def kernel(x" in notebook.run("import inspect; print(inspect.getsource(kernel))")[0]


def test_an_error_is_shown_at_its_line(notebook: Notebook) -> None:
    wrong = KERNEL.replace("src=tile", "src=tile[0:64]")
    text, (shown,) = notebook.run(f"%%nki kernel a\n{wrong}", fails=True)
    html, plain = shown.data["text/html"], shown.data["text/plain"]
    head, *_, note = plain.splitlines()
    assert re.match(r"In\[1\]:10:\d+: error\[NKI\d{4}\]: ", head)
    assert note == "compiled for x: float32[128,4]"
    assert "\n10 |     nisa.dma_copy(dst=out, src=tile[0:64])\n" in plain
    assert re.search(r': <span style="color: #d73a49">error\[NKI\d{4}\]</span>: ', html)
    assert re.search(r'\n<span style="color: #4269d0">   \| +\^+', html)
    assert text == f"{plain}\nCompileError: {head}\n  In[1]:1, in <module>"


def test_errors_of_other_cells_are_shown_too(notebook: Notebook) -> None:
    notebook.run(f"%%nki kernel a\n{KERNEL}")
    inner = "import nkic\ndef tried():\n    return nkic.call(kernel, (a,), max_cycles=9)\ntried()"
    text, (shown,) = notebook.run(inner, fails=True)
    assert ">error[NKI0903]</span>: " in shown.data["text/html"]
    assert text.endswith("  In[2]:4, in <module>\n  In[2]:3, in tried")
    caught = "try:\n    tried()\nexcept nkic.RunError as error:\n    display(error)"
    _, (kept,) = notebook.run(caught)
    assert kept.data["text/html"] == shown.data["text/html"]


def test_warnings_are_shown_once(notebook: Notebook) -> None:
    notebook.run("import warnings\nb = a + 1")
    text, (warning, _) = notebook.run(f"%%nki kernel a b\n{KERNEL}")
    assert re.match(r"In\[2\]:5:\d+: warning\[NKI0258\]: .*`y`", warning.data["text/plain"])
    assert '<span style="color: #b08800">warning[NKI0258]</span>' in warning.data["text/html"]
    assert text.count("NKI0258") == 1
    notebook.run("warnings.filterwarnings('ignore', 'NKI0258')")
    assert len(notebook.run("%nki kernel a b")[1]) == 1


def test_warnings_of_a_failed_call_are_kept(notebook: Notebook) -> None:
    notebook.run("b = a + 1")
    with pytest.warns(api.NkicWarning, match="NKI0258: input `y`"):
        text, (shown,) = notebook.run(f"%%nki kernel a b --max-cycles 9\n{KERNEL}", fails=True)
    assert "error[NKI0903]" in shown.data["text/plain"] and "RunError: In[2]:7:5: " in text


def test_prints_are_kept(notebook: Notebook) -> None:
    printing = BODY.replace("    return", '    print("made", x.shape)\n    return')
    text, _ = notebook.run(f"%%nki kernel a\n{HEAD}{printing}")
    assert text.startswith("made (128, 4)\noutput_0 ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kernel a --tarqet trn2", "UsageError: unrecognized arguments: --tarqet trn2"),
        ("kernel a --grid nothing", "NameError: name 'nothing' is not defined"),
        ("kernel missing", "NameError: name 'missing' is not defined"),
        (
            "kernel a factor=1.0 factr=1",
            "TypeError: kernel(): got an unexpected keyword argument 'factr'",
        ),
        ("kernel a --target trn9", "CompileError: error[NKI"),
        ("kernel a --lnc 0", "CompileError: error[NKI"),
        ("", "UsageError: the following arguments are required: kernel"),
    ],
)
def test_a_wrong_line_is_refused(notebook: Notebook, line: str, message: str) -> None:
    text, _ = notebook.run(f"%%nki {line}\n{KERNEL}", fails=True)
    assert message in text and "inspect.py" not in text


HOSTILE = "<img src=x onerror=alert(1)></pre><script>alert(2)</script>"


@pytest.mark.parametrize(
    "cell",
    [
        KERNEL.replace("<b>tile</b>", HOSTILE).replace("src=tile", "src=tile[0:64]"),
        KERNEL.replace("    return", f"    assert False, {HOSTILE!r}\n    return"),
        KERNEL.replace("src=tile", "src=missing  # " + HOSTILE + "\x1b[31m\n"),
    ],
)
def test_texts_of_a_kernel_are_no_markup(notebook: Notebook, cell: str) -> None:
    _, (shown,) = notebook.run(f"%%nki kernel a\n{cell}", fails=True)
    html = shown.data["text/html"]
    assert "&lt;script&gt;" in html and "\x1b" not in html
    assert Tags(html).names == {"pre", "span", "style"}


def test_names_in_a_result_are_no_markup(notebook: Notebook) -> None:
    cell = KERNEL.replace("<b>tile</b>", HOSTILE)
    _, (card,) = notebook.run(f"%%nki kernel a\n{cell}")
    assert "&lt;script&gt;" in card.data["text/html"]
    assert Tags(card.data["text/html"]).names <= SAFE | DRAWN


def test_another_nki_stays(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    nkic.nki.uninstall()
    theirs = ModuleType("nki")
    monkeypatch.setitem(sys.modules, "nki", theirs)
    notebook.run("%reload_ext nkic\nimport nki")
    assert notebook.shell.user_ns["nki"] is theirs and not nkic.nki.installed()


LONG = KERNEL.replace(
    "    nisa.tensor_scalar(", "    for i in range(1000):\n        nisa.tensor_scalar("
)


def test_a_bar_shows_how_far_a_call_is(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, bar: Any) -> None:
            shown.append(bar.data)

    def display(bar: Any, **options: Any) -> Handle:
        assert options == {"display_id": True}
        shown.append(bar.data)
        return Handle()

    monkeypatch.setattr(nkic.notebook, "display", display)
    monkeypatch.setattr(nkic.notebook, "AFTER", 0)
    monkeypatch.setattr(nkic.notebook, "EVERY", 0.002)
    cell = f"%%nki kernel a -o called\n{LONG}"
    notebook.run(cell)
    assert shown == [], "a terminal has no bar"
    notebook.shell.kernel = object()  # that of Jupyter
    notebook.run(cell.replace("1000", "1001"))
    assert shown[0] == "<progress></progress> kernel: compiling, 0 s" and shown[-1] == ""
    pattern = (
        r'<progress value="(\d+)" max="1003"></progress> kernel: [\d,]+ of 1,003 instructions,'
    )
    pattern += r" \d+ s"
    far = [int(match[1]) for bar in shown if (match := re.fullmatch(pattern, bar))]
    assert far and far == sorted(far) and far[-1] <= 1003
    seen = len(shown)
    monkeypatch.setattr(nkic.notebook, "AFTER", 60)
    notebook.run("%nki kernel a")
    assert len(shown) == seen, "a short call has none"
    assert PROGRESS.get() is None


# ---- The page ------------------------------------------------------------------------------------


def checked(show: Callable[[str], str]) -> None:
    """Compare what each cell of the page shows with the text that follows it."""
    page = PAGE.read_text("utf-8")
    cells = [*_CELL.finditer(page)]
    assert len(cells) == 4
    for cell in cells:
        shown = show(cell[1])
        shown = f"{shown}\n" if shown else ""
        if os.environ.get("NKIC_BLESS") and cell[2] is not None:
            page = page.replace(cell[0], f"```python\n{cell[1]}```\n\n```text\n{shown}```\n")
            PAGE.write_text(page, "utf-8")
        else:
            assert shown == (cell[2] or "")


def test_the_page_shows_what_it_says(notebook: Notebook) -> None:
    notebook.shell.extension_manager.loaded.discard("nkic")
    checked(lambda cell: notebook.run(cell, fails="b[:64]" in cell)[0])


@pytest.mark.slow  # starts a kernel of Jupyter
def test_jupyter_shows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    client = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=120)

    def show(source: str) -> str:
        cell = nbformat.v4.new_code_cell(source)
        client.nb.cells.append(cell)
        try:
            client.execute_cell(cell, len(client.nb.cells) - 1)
        except nbclient.exceptions.CellExecutionError:
            assert "b[:64]" in source
        data = [output.get("data", {}) for output in cell.outputs]
        assert all("<pre" in d["text/html"] or "<svg" in d["text/html"] for d in data if d)
        texts = (
            *(d["text/plain"] for d in data if d),
            *(output.get("text", "") for output in cell.outputs),
            *("\n".join(output.get("traceback", ())) for output in cell.outputs),
        )
        return "\n".join(filter(None, texts)).strip()

    with client.setup_kernel():
        checked(show)
