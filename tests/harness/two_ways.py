"""Evaluate a kernel's file in both ways: by Python itself, and in the closed world."""

from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from nkic.api.compiling import of_live
from nkic.api.errors import ApiError
from nkic.api.functions import kernel as function_of
from nkic.base.diagnostics import Diagnostic
from nkic.cli.nkic.proving import as_call, live_module
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.request import request_for
from nkic.nki.jit import Kernel
from nkic.specialise.request import Request, RequestOptions

__all__ = ["as_call", "live_module"]
WAYS = ("native", "closed")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one way: the bytes of the artifact or the exception; the diagnostics, and the
    kernel's output.
    """

    data: bytes | None
    said: tuple[Diagnostic, ...]
    raised: BaseException | None = None
    printed: str = ""

    @property
    def places(self) -> list[tuple[str, str, int, int]]:
        """Return the code and place of each diagnostic."""
        found = ((one.code.slug, one.level.value, one.primary) for one in self.said)
        return sorted(
            (slug, level, at.span.line if at else 0, at.span.column if at else 0)
            for slug, level, at in found
        )


def request_in(path: Path, said: RequestOptions) -> Request:
    """Return the request of a file, with additional options from the caller."""
    loader = Loader.beside(str(path))
    return request_for(loader.main(str(path)), said, {})


def only_kernel(module: ModuleType, name: str | None) -> Kernel:
    """Return the kernel of this name in a module, or its only kernel."""
    found = [one for one in vars(module).values() if isinstance(one, Kernel)]
    return vars(module)[name] if name is not None else found[0]


def outcome(kernel: Any, given: RequestOptions, consts: Mapping[str, Any], way: str) -> Outcome:
    """Return the outcome of one way for a live kernel."""
    shown = StringIO()  # Python prints at once, the closed world with the artifact
    try:
        with redirect_stdout(shown):
            job, _ = of_live(function_of(kernel), given, consts, way, CompileOptions())
            made = job.compile()
    except ApiError as error:
        return Outcome(None, error.diagnostics)
    except Exception as error:
        return Outcome(None, (), error)
    return Outcome(made.data, made.warnings, None, shown.getvalue() + "".join(made.messages))


def both(
    kernel: Any, given: RequestOptions, consts: Mapping[str, Any] | None = None
) -> list[Outcome]:
    """Return the outcomes of both ways, native first.

    It is evaluated last: what the kernel does to the module's variables stays in the module, and
    the closed world would see it.
    """
    found = {way: outcome(kernel, given, consts or {}, way) for way in reversed(WAYS)}
    return [found[way] for way in WAYS]
