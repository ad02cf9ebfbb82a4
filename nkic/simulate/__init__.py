"""simulate: runs a verified executable: values, memory, order and time.

Nothing of the compiler is imported: the runner only knows the file format and the machine's tables.
The step of an instruction comes from its row's function in `semantics`; `machine` is the event
loop; steps act on `memory` and `shadow`.
"""

from nkic.simulate.outcome import RunOptions
from nkic.simulate.result import EngineUse, Result
from nkic.simulate.semantics import load_all
from nkic.simulate.stage import simulate, simulate_ranks

load_all()

__all__ = ["EngineUse", "Result", "RunOptions", "simulate", "simulate_ranks"]
