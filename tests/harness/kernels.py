"""Run case files of kernels: compile them as `nkic` would, without the command."""

from collections.abc import Mapping
from typing import Any

from nkic.base.diagnostics import Diagnostic, Level, NkicError
from nkic.base.levels import DEFAULT, Settings, Wish, apply
from nkic.compiler.compiled import DEFAULT as DEFAULT_OPTIONS
from nkic.compiler.compiled import Compiled, CompileOptions
from nkic.compiler.forms import FORMS
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import LAST_CHECK, STAGES, compile_source
from nkic.compiler.request import parse_options, request_for
from tests.harness.directives import BadCase, Case

LAST = {"compile": DEFAULT_OPTIONS.last, "check": LAST_CHECK}


Outcome = tuple[Compiled | None, tuple[Diagnostic, ...]]


def run_kernel(case: Case) -> Outcome:
    """Return the result of the compilation, if any, and all diagnostics."""
    return _compile(str(case.path), case.text, words_of(case), _options(case))


def compile_text(text: str, warn: str = "") -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a kernel file with this text, compiled for its inline block.

    `warn` is the code of a warning that is enabled even if it is off by default.
    """
    wanted = DEFAULT.adding(Wish.WARN, warn) if warn else DEFAULT
    return _compile("kernel.py", text, {}, CompileOptions(), wanted)[1]


def _compile(
    path: str,
    text: str,
    words: Mapping[str, Any],
    options: CompileOptions,
    wanted: Settings = DEFAULT,
) -> Outcome:
    loader = Loader.beside(path)
    try:
        source = loader.main(path, text.encode("utf-8"))
        request = request_for(source, parse_options(**words), {})
        compiled = compile_source(source, request, loader, options)
    except NkicError as failure:
        return None, failure.diagnostics
    said = apply(compiled.warnings, wanted, loader.sources, compiled.lines)
    return (None if any(one.level is Level.ERROR for one in said) else compiled), said


def form(case: Case, compiled: Compiled) -> str:
    made = FORMS[case.words["emit"]].make(compiled)
    return made if isinstance(made, str) else made.hex() + "\n"


def _options(case: Case) -> CompileOptions:
    wanted = case.words.get("test", "compile")
    last = LAST.get(wanted, wanted)
    if last not in STAGES:
        raise BadCase(f"{case.path.name}: there is no stage `{wanted}`")
    return CompileOptions(serial="serial" in case.words, last=last)


def words_of(case: Case) -> Mapping[str, Any]:
    """Return the case's options as words for `parse_options`."""
    words = case.words
    return {
        "kernel": words.get("kernel"),
        "target": words.get("target"),
        "nki": words.get("nki"),
        "grid": words.get("grid"),
        "lnc": int(words["lnc"]) if "lnc" in words else None,
        "args": words.get("args", "").split(),
        "consts": words.get("const", "").split(),
    }
