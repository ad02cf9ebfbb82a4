"""Errors that end the evaluation of a kernel."""

from __future__ import annotations

from nkic.base.kernel_errors import KernelError as KernelError
from nkic.base.kernel_errors import Missing as Missing
from nkic.base.source import Span


class Refused(KernelError):
    """Source that kernels cannot have, found while it is compiled to closures."""

    def __init__(self, slug: str, message: str, span: Span, help: str = "") -> None:
        super().__init__(slug, message, help=help, span=span)


class ImportFailed(KernelError, ImportError):
    """An import of kernel source that fails; `except ImportError` catches it."""

    def __init__(self, message: str, help: str) -> None:
        KernelError.__init__(self, "import-failed", message, help=help)
