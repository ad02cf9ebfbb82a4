"""specialise: evaluates a kernel for its arguments and returns the recorded program."""

from nkic.specialise.closed import PROVIDED
from nkic.specialise.stage import specialise

__all__ = ["PROVIDED", "specialise"]
