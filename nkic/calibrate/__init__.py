"""The room calibrate: microkernels that show figures of time, and figures out of their profiles.

`source()` is a Python file that runs them on a device; `read_profiles` takes what the profiler says
of them; `fitted` finds the figures that come nearest, for a machine file.
"""

from nkic.calibrate.fit import Fit, fitted
from nkic.calibrate.profiles import Observation, observed, read_profiles
from nkic.calibrate.script import source
from nkic.machine.clock.probes import PROBES, Probe

__all__ = ["PROBES", "Fit", "Observation", "Probe", "fitted", "observed", "read_profiles", "source"]
