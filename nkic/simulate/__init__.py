"""simulate: runs a verified executable: values, memory, order and time.

Nothing of the compiler is imported: the runner knows the file format and the machine's
tables. A step of an instruction is its row's function in `semantics`; `machine` is the event
loop; `memory`, `shadow` and `clock` are what steps act on.
"""

from nkic.simulate.options import RunOptions
from nkic.simulate.result import EngineUse, Result
from nkic.simulate.semantics import load_all
from nkic.simulate.stage import simulate, simulate_ranks

load_all()

__all__ = ["EngineUse", "Result", "RunOptions", "simulate", "simulate_ranks"]
