"""Resolve: which kernel is meant, which files its imports mean, what it can reach.

Takes a kernel's file, gives the kernel with every module that it reaches, checked against the
kernel subset of the profile in use. Every violation is reported, each with what NKI offers
instead. Host code (what no kernel reaches) is never looked at, values are never computed.
"""

from nkic.resolve.library import Library
from nkic.resolve.stage import list_kernels, resolve
from nkic.syntax.bindings import Resolved

__all__ = ["Library", "Resolved", "list_kernels", "resolve"]
