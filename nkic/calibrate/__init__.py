"""Calibration: microkernels that expose timing figures, and figures fitted to their profiles.

`source()` returns a Python file that runs them on a device; `read_profiles` reads what the profiler
reports, and `read_rows` what people measured of whole kernels; `fitted` returns the best-fitting
figures, for a machine file.
"""

from nkic.calibrate.fit import Fit, fitted
from nkic.calibrate.profiles import Observation, observed, read_profiles
from nkic.calibrate.rows import figures_named, read_rows
from nkic.calibrate.script import source
from nkic.machine.clock.probes import PROBES, Probe

__all__ = ["PROBES", "Fit", "Observation", "Probe", "figures_named", "fitted", "observed"]
__all__ += ["read_profiles", "read_rows", "source"]
