"""The table of all environment variables that nkic reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nkic.base.diagnostics import Diagnostic, Level, bad_value, make
from nkic.base.suggest import did_you_mean

PREFIX = "NKIC_"
VARIABLES = {
    "NEURON_PLATFORM_TARGET_OVERRIDE": "the target, if neither an option nor the inline block "
    "names one",
    "NKIC_NKI": "the version of NKI, if neither an option nor the inline block names one",
    "NKI_COMPILER_FRONTEND": "custom: NKI 0.6, if nothing above names a version",
    "NEURON_LOGICAL_NC_CONFIG": "1 or 2: the number of cores, if a launch does not give it; since "
    "NKI 0.7 a launch cannot give another number",
    "NEURON_CC_FLAGS": "`--lnc` in it, as above; `--disable-dge`, which the file records; from "
    "Python also `--target`, if NEURON_PLATFORM_TARGET_OVERRIDE is not set",
    "NKI_PRECISE_FP": "0: nki-run keeps float32 between instructions, as with --no-precise-fp",
    "NKI_SIMULATOR": "from Python: 1 or nothing; anything else is refused",
    "NKIC_CACHE": "0: compiled kernels are not cached for other processes, as with --no-cache",
    "NKIC_CACHE_DIR": "the folder of cached kernels, instead of nkic in "
    "XDG_CACHE_HOME or ~/.cache (macOS: ~/Library/Caches)",
    "NKIC_EVALUATE": "from Python: native or closed, how live kernels are evaluated",
    "NKIC_CRASH_DIR": "the folder of reports of internal errors; by default the one for temporary "
    "files (TMPDIR)",
    "NKIC_BACKTRACE": "1: show where in nkic an internal error occurred",
    "NKIC_INSTALL": "1: under pytest, `import nki` gives nkic's modules, as with --nkic",
    "NKIC_TOKEN": "the tokens of `nkic serve`, if --token does not name a file of them",
    "NKIC_BLESS": "1: nkic's own tests accept their current output as expected",
    "NKIC_BLAS_THREADS": "threads that a run may use for matrix products, 1 by default",
    "OPENBLAS_NUM_THREADS": "threads for NumPy's sums, 1 by default; a larger number removes the "
    "limit on processes",
    "NO_COLOR": "any value: no colour",
    "FORCE_COLOR": "not 0: colour, also in a pipe; CLICOLOR_FORCE is the same",
    "TERM": "dumb: no colour",
    "_NKIC_COMPLETE": "set by the shell, with COMP_WORDS, for --print completion=SHELL; "
    "_NKI_RUN_COMPLETE for nki-run",
}


def is_on(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a variable is 1 or not set, and not 0. Raises `UsageFailed` for other values."""
    value = environ.get(name, "")
    if value not in ("", "0", "1"):
        raise bad_value(f"{name}={value} in the environment: expected 0 or 1", f"unset {name}")
    return value != "0"


def unknown(names: Iterable[str]) -> Iterator[Diagnostic]:
    """Yield a warning for each unknown variable with nkic's prefix."""
    own_names = [name for name in VARIABLES if name.startswith(PREFIX)]
    for name in sorted(names):
        if name.startswith(PREFIX) and name not in VARIABLES:
            advice = did_you_mean(name, own_names) or "`nkic --print env` lists the variables"
            text = f"the environment sets `{name}`, which nkic does not read"
            yield make("unknown-variable", text, help=advice, level=Level.WARNING)
