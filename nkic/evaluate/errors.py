"""Errors that end the evaluation of a kernel."""

from __future__ import annotations

from nkic.base.kernel_errors import KernelError as KernelError
from nkic.base.kernel_errors import Missing as Missing
from nkic.base.source import Span


class Refused(KernelError):
    """A construct that kernels do not support, found while source is compiled to closures."""

    def __init__(self, slug: str, message: str, span: Span, help: str = "") -> None:
        super().__init__(slug, message, help=help, span=span)


class ImportFailed(KernelError, ImportError):
    """A failing import of kernel source; `except ImportError` catches it."""

    def __init__(self, message: str, help: str) -> None:
        KernelError.__init__(self, "import-failed", message, help=help)
