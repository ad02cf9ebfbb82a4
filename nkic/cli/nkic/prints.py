"""The tables of --print, --list-kernels and --time-passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import resources

from nkic.base import diagnostics, explain, profiles
from nkic.base.diagnostics import NkicError, UsageFailed, make
from nkic.base.environment import VARIABLES
from nkic.base.suggest import did_you_mean
from nkic.base.text import grouped, size
from nkic.cli.common import pages
from nkic.cli.common.pages import aligned
from nkic.cli.nkic import records
from nkic.driver import pipeline
from nkic.driver.compiled import StageTiming
from nkic.driver.loader import Loader
from nkic.machine import dtypes, listing, targets
from nkic.machine.memory import PARTITIONS

SHELLS = ("bash", "zsh", "fish")
COMPLETION = "completion"
Rows = Iterator[Sequence[str]]


def table(wanted: str, colour: str, *, as_json: bool = False) -> str:
    """The table that --print asks for, for a --color. Raises `UsageFailed` if there is none of this
    name.
    """
    name, _, shell = wanted.partition("=")
    if name == COMPLETION:
        script = completion(shell)
        return records.document(name, {"shell": shell, "script": script}) if as_json else script
    if wanted == "schema":
        return resources.files("nkic.base.render").joinpath("diagnostic.schema.json").read_text()
    if as_json and wanted in records.TABLES:
        return records.document(wanted, records.TABLES[wanted]())
    if wanted == "ops":
        return listing.text() + "\n"
    if wanted not in TABLES:
        names = (*TABLES, "ops", "schema", "config", COMPLETION)
        near = did_you_mean(wanted, names) or f"known are: {', '.join(names)}"
        raise _bad(f"--print: there is no table `{wanted}`", near)
    return pages.table([*TABLES[wanted]()], colour)


def completion(shell: str) -> str:
    """What to put into the shell's start file."""
    if shell not in SHELLS:
        raise _bad(f"--print {COMPLETION}: for which shell?", f"one of {', '.join(SHELLS)}")
    # Click's own module for it is slow to import, and this is rarely asked for.
    from click.shell_completion import get_completion_class

    from nkic.cli.nkic import command

    found = get_completion_class(shell)
    if found is None:
        raise _bad(f"--print {COMPLETION}: no support for `{shell}`")
    return found(command, {}, "nkic", "_NKIC_COMPLETE").source()


def times(timings: Sequence[StageTiming]) -> str:
    """The table of --time-passes."""
    total = sum(t.ns for t in timings)
    rows = [("stage", "ms", "share", "peak memory")]
    rows += [_time(t.stage, t.ns, total, size(t.peak_bytes)) for t in timings]
    rows.append(_time("total", total, total, ""))
    return aligned([[r[0], r[1].rjust(9), r[2].rjust(5), r[3]] for r in rows]).rstrip()


def _time(name: str, ns: int, total: int, memory: str) -> tuple[str, str, str, str]:
    return name, f"{ns / 1e6:,.1f}", f"{100 * ns // max(total, 1)}%", memory


def kernel_names(path: str) -> list[str]:
    """The kernels of a file, for the shell: nothing where that cannot be said."""
    try:
        source = Loader.beside(path).main(path)
        return [kernel.name for kernel in pipeline.list_kernels(source)]
    except NkicError:
        return []


def _targets() -> Rows:
    yield "target", "cores", "SBUF", "usable", "PSUM banks", "DMA engines", "also called"
    for t in targets.TARGETS.values():
        also = [alias for alias, name in targets.ALIASES.items() if name == t.name]
        sbuf = [size(n * PARTITIONS) for n in (t.sbuf_bytes, t.sbuf_usable)]
        mark = t.name + (" (default)" if t is targets.DEFAULT else "")
        yield mark, str(t.max_cores), *sbuf, str(t.psum_banks), str(t.dma_engines), ", ".join(also)


def _dtypes() -> Rows:
    yield "dtype", "bytes", "lowest", "highest", "also called"
    for d in dtypes.DTYPES.values():
        also = [alias for alias, name in dtypes.ALIASES.items() if name == d.name]
        yield d.name, str(d.size), _limit(d.lowest), _limit(d.highest), ", ".join(also)


def _limit(value: float) -> str:
    return grouped(value) if isinstance(value, int) else f"{value:g}"


def _passes() -> Rows:
    yield "stage", "what it makes"
    yield from pipeline.STAGES.items()


def _profiles() -> Rows:
    yield "--nki", ""
    for profile, label in profiles.LABELS.items():
        yield label, "default" if profile is profiles.DEFAULT else ""


def _codes() -> Rows:
    yield "code", "slug", "meaning"
    for code in sorted(diagnostics.codes().values(), key=lambda code: code.number):
        yield code.number, code.slug, explain.title(code)


def _environment() -> Rows:
    yield "variable", "effect"
    yield from VARIABLES.items()


TABLES: dict[str, Callable[[], Rows]] = {
    "targets": _targets,
    "dtypes": _dtypes,
    "passes": _passes,
    "profiles": _profiles,
    "codes": _codes,
    "env": _environment,
}


def _bad(message: str, help: str = "") -> UsageFailed:
    return UsageFailed([make("bad-value", message, help=help)])
