"""What `%load_ext nkic` adds to a notebook: `%%nki`, and diagnostics as HTML (docs/notebook.md)."""

from __future__ import annotations

import re
import shlex
import threading
import time
import warnings
from argparse import SUPPRESS, BooleanOptionalAction
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from html import escape
from traceback import walk_tb
from types import TracebackType
from typing import Any, get_args

from IPython.core.magic import no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import HTML, display

from nkic.api import ApiError, Called, CompileError, Result, call
from nkic.api.functions import is_host
from nkic.api.loading import with_cells
from nkic.api.options import Calling
from nkic.api.running import PROGRESS
from nkic.base.diagnostics import Level
from nkic.base.render import render
from nkic.nki import install
from nkic.nki.jit import tell

# ---- Diagnostics and results ---------------------------------------------------------------------

# The parts of printed diagnostics that have a colour, in text whose markup is escaped.
_COLOURED = re.compile(r"(?m)\b(error|warning|remark)\[NKI\d+\]|^ *\| *[-^|][-^| ]*")
_COLOURS = {"error": "#d73a49", "warning": "#b08800", None: "#4269d0"}  # on light and on dark


def html(text: str) -> str:
    """Return printed diagnostics as HTML."""

    def coloured(match: re.Match[str]) -> str:
        colour = _COLOURS.get(match[1], _COLOURS[None])
        return f'<span style="color: {colour}">{match[0]}</span>'

    shown = _COLOURED.sub(coloured, escape(text))
    return f'<pre style="line-height: 1.2; white-space: pre; overflow-x: auto">{shown}</pre>'


def _text(error: ApiError) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def _show(text: str) -> None:
    display({"text/plain": text, "text/html": html(text)}, raw=True)


def _report(result: Result) -> str:
    return f"{result.report}{result.verdict}".rstrip()


def _show_error(
    shell: Any, kind: type, error: Any, traceback: TracebackType, tb_offset: int | None = None
) -> None:
    """Show the diagnostics of an error; what IPython prints of it is one line and its places."""
    _show(_text(error))
    lines = [f"{kind.__name__}: {str(error).partition(chr(10))[0]}", *_places(shell, traceback)]
    error._render_traceback_ = lambda: lines  # IPython asks for it
    shell.showtraceback((kind, error, traceback))


def _places(shell: Any, traceback: TracebackType) -> Iterator[str]:
    for frame, line in walk_tb(traceback):
        if not is_host(frame.f_globals.get("__name__") or ""):
            file = frame.f_code.co_filename
            cell = shell.compile.format_code_name(file)
            yield f"  {cell[1] if cell else file}:{line}, in {frame.f_code.co_name}"


def _show_warnings(called: Called, codes: Container[str]) -> set[str]:
    """Show the warnings of a call that have these codes, and return the codes shown."""
    executable = called.artifact.executable
    sources = {with_cells(path): source for path, source in executable.sources.items()}
    found = [
        diagnostic.relocated(with_cells)
        for diagnostic in (*called.artifact.warnings, *called.result.remarks)
        if diagnostic.level is Level.WARNING and diagnostic.code.number in codes
    ]
    if found:
        _show(render(found, "human", sources.get).rstrip("\n"))
    return {diagnostic.code.number for diagnostic in found}


# ---- A bar while a call lasts --------------------------------------------------------------------

AFTER, EVERY = 1.0, 0.25  # seconds until it appears, and between two changes


@contextmanager
def _progress(shell: Any, kernel: str) -> Iterator[None]:
    """Show a bar once a call has lasted a while, and take it away at the end."""
    if getattr(shell, "kernel", None) is None:  # IPython in a terminal
        yield
        return
    ended, began = threading.Event(), time.monotonic()
    done: tuple[int, int | None] = (0, None)

    def tell(count: int, total: int | None) -> None:
        nonlocal done
        done = (count, total)

    def show() -> None:
        handle = None
        while not ended.wait(AFTER if handle is None else EVERY):
            bar = HTML(_bar(kernel, *done, time.monotonic() - began))
            if handle is None:
                handle = display(bar, display_id=True)
            else:
                handle.update(bar)
        if handle is not None:
            handle.update(HTML(""))

    # The context of the cell, to which what a thread shows belongs.
    thread = threading.Thread(target=copy_context().run, args=(show,), daemon=True)
    before = PROGRESS.set(tell)
    thread.start()
    try:
        yield
    finally:
        PROGRESS.reset(before)
        ended.set()
        thread.join()


def _bar(kernel: str, done: int, total: int | None, seconds: float) -> str:
    share = f' value="{min(done, total)}" max="{total}"' if total else ""
    doing = f"{done:,} instructions" if done else "compiling"
    if total:
        doing = f"{done:,} of {total:,} instructions"
    return f"<progress{share}></progress> {escape(kernel)}: {doing}, {seconds:.0f} s"


# ---- %%nki ---------------------------------------------------------------------------------------


def _parser() -> Any:
    """Return the parser of the magic's line. Its options are those of `nkic.call`."""
    parser: Any = MagicArgumentParser(prog="%%nki")
    parser.add_argument("kernel")
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("-o", dest="into")
    for name, kind in Calling.__annotations__.items():
        action = {"action": BooleanOptionalAction} if bool in (kind, *get_args(kind)) else {}
        if name != "evaluate":
            parser.add_argument(f"--{name.replace('_', '-')}", default=SUPPRESS, **action)
    return parser


def _option(shell: Any, name: str, value: Any) -> Any:
    """Return an option's value: text where the option takes text, else that of the expression."""
    takes_text = str in get_args(Calling.__annotations__[name])
    return value if takes_text or isinstance(value, bool) else shell.ev(value)


def _define(shell: Any, line: str, cell: str) -> None:
    """Execute the cell. Its lines keep their numbers, and its source can be read by its name."""
    text = f"# %%nki {line}\n{cell}"
    code = shell.transform_cell(text)
    number = len(shell.history_manager.input_hist_parsed) - 1  # of the cell that runs
    compiled = shell.compile(code, shell.compile.cache(code, number, text), "exec")
    exec(compiled, shell.user_ns)


def _call(shell: Any, kernel: str, words: Iterable[str], options: Mapping[str, Any]) -> Called:
    """Call a kernel with arguments that are expressions, or `name=expression`."""
    __tracebackhide__ = True
    args, kwargs = [], {}
    for word in (word.removesuffix(",") for word in words):  # `a, b` as in Python
        name, _, value = word.partition("=")
        if name.isidentifier() and value and value[0] != "=":
            kwargs[name] = shell.ev(value)
        else:
            args.append(shell.ev(word))
    chosen = {name: _option(shell, name, given) for name, given in options.items()}
    shown: set[str] = set()
    try:
        # The user's filters still apply.
        with warnings.catch_warnings(record=True) as caught, _progress(shell, kernel):
            called = call(shell.ev(kernel), args, kwargs, evaluate="closed", **chosen)
        shown = _show_warnings(called, {getattr(one.message, "code", "") for one in caught})
    finally:
        for one in caught:
            if getattr(one.message, "code", None) not in shown:
                warnings.showwarning(one.message, one.category, one.filename, one.lineno)
    return called


def load(shell: Any) -> None:
    """Add nkic to a running IPython. `import nki` works if no other package has the name."""
    with suppress(CompileError):
        install()

    @no_var_expand
    def nki(line: str, cell: str | None = None) -> Called:
        """Define a kernel, and call it in the simulator.

        ::

          %%nki KERNEL [ARGUMENT ...] [-o NAME] [--OPTION VALUE ...]

        The cell is executed. Then KERNEL is compiled from its source, in the closed world, for
        the arguments: variables, expressions without spaces, or name=expression. Options are those
        of `nkic.call`: --target trn2, --lnc 2, --no-init-check. -o keeps the result, a
        `nkic.Called`. `%nki` calls a kernel that is defined already.
        """
        __tracebackhide__ = True
        given = vars(_parser().parse_intermixed_args(shlex.split(line, posix=False)))
        kernel, words, into = (given.pop(name) for name in ("kernel", "arguments", "into"))
        if cell is not None:
            _define(shell, line, cell)
        called = _call(shell, kernel, words, given)
        tell(called)
        if into is not None:
            shell.user_ns[into] = called
        return called

    shell.register_magic_function(nki, "line_cell", "nki")
    shell.set_custom_exc((ApiError,), _show_error)
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(ApiError, lambda error: html(_text(error)))
    plain = formatters["text/plain"]
    plain.for_type(Result, lambda result, printer, cycle: printer.text(_report(result)))
    plain.for_type(Called, lambda called, printer, cycle: printer.text(_report(called.result)))
