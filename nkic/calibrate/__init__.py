"""Calibration: microkernels that expose timing figures, and figures fitted to their profiles.

`source()` returns a Python file that runs them on a device; `read_profiles` reads what the profiler
reports; `fitted` returns the best-fitting figures, for a machine file.
"""

from nkic.calibrate.fit import Fit, fitted
from nkic.calibrate.profiles import Observation, observed, read_profiles
from nkic.calibrate.script import source
from nkic.machine.clock.probes import PROBES, Probe

__all__ = ["PROBES", "Fit", "Observation", "Probe", "fitted", "observed", "read_profiles", "source"]
