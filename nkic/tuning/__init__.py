"""The tuner: which choices make a kernel fastest, among those that are right.

A choice is a named value in the kernel's text. A point is a value for each choice, and is a
candidate of the judge: every point is compiled, and the best are run and compared.
"""

from nkic.tuning.outcome import Outcome
from nkic.tuning.result import Tuned
from nkic.tuning.space import Choice, Space, space_of
from nkic.tuning.tuner import tune

__all__ = ["Choice", "Outcome", "Space", "Tuned", "space_of", "tune"]
