"""Specialise: evaluates a kernel for its arguments; what remains is a program."""

from nkic.specialise.closed import PROVIDED
from nkic.specialise.stage import specialise

__all__ = ["PROVIDED", "specialise"]
