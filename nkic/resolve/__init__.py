"""Resolve: select the kernel, locate its imports, and compute the code that it can reach.

The input is a kernel's file; the output is the kernel with every module that it reaches, checked
against the kernel subset of the profile in use. Every violation is reported with the alternative
that NKI offers. Host code (code that no kernel reaches) is not examined, and no values are
computed.
"""

from nkic.resolve.library import Library
from nkic.resolve.stage import list_kernels, resolve
from nkic.syntax.bindings import Resolved

__all__ = ["Library", "Resolved", "list_kernels", "resolve"]
