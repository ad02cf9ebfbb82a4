"""The tables of --print and --time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import resources

from nkic.base.diagnostics import NkicError, bad_value
from nkic.base.suggest import suggestion
from nkic.base.text import aligned, grouped, size
from nkic.cli.common import pages
from nkic.cli.nkic import records
from nkic.cli.nkic.options import PRINTS
from nkic.cli.nkic.records import Record
from nkic.driver import pipeline
from nkic.driver.compiled import StageTiming
from nkic.driver.loader import Loader
from nkic.machine.instructions import listing
from nkic.machine.memory import PARTITIONS

SHELLS = ("bash", "zsh", "fish")
COMPLETION = "completion"


def table(wanted: str, colour: str, *, as_json: bool = False) -> str:
    """Return the table that --print names, formatted according to `--color`.

    Raises `UsageFailed` if there is no such table.
    """
    name, _, value = wanted.partition("=")
    if name == COMPLETION:
        script = completion(value)
        return records.document(name, {"shell": value, "script": script}) if as_json else script
    if name == "schema" and value:
        return _schema(value)
    if wanted == "schema":
        return resources.files("nkic.base.render").joinpath("diagnostic.schema.json").read_text()
    if as_json and wanted in records.TABLES:
        return records.document(wanted, records.TABLES[wanted]())
    if wanted == "ops":
        return listing.text() + "\n"
    if wanted not in TABLES:
        raise bad_value(f"--print: there is no table `{wanted}`", suggestion(wanted, PRINTS))
    head, row = TABLES[wanted]
    return pages.table([head.split(","), *map(row, records.TABLES[wanted]())], colour)


def _schema(wanted: str) -> str:
    """Return the schema of a task or an evaluation."""
    from nkic.judge import schemas  # slow to import, and rarely needed

    made = {"task": schemas.task_schema, "evaluation": schemas.evaluation_schema}
    if wanted not in made:
        raise bad_value(f"--print schema={wanted}: there is no such schema", "task or evaluation")
    return json.dumps(made[wanted](), indent=2) + "\n"


def completion(shell: str) -> str:
    """Return the script for the shell's start-up file."""
    if shell not in SHELLS:
        raise bad_value(f"--print {COMPLETION}: no shell is named", f"one of {', '.join(SHELLS)}")
    # Click's module for it is slow to import and rarely needed.
    from click.shell_completion import get_completion_class

    from nkic.cli.nkic import command

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise bad_value(f"--print {COMPLETION}: `{shell}` is not supported")
    return completion_class(command, {}, "nkic", "_NKIC_COMPLETE").source()


def times(timings: Sequence[StageTiming]) -> str:
    """Return the table of --time."""
    total = sum(t.ns for t in timings)
    rows = [("stage", "ms", "share", "peak memory")]
    rows += [_time(t.stage, t.ns, total, size(t.peak_bytes)) for t in timings]
    rows.append(_time("total", total, total, ""))
    return aligned([[r[0], r[1].rjust(9), r[2].rjust(5), r[3]] for r in rows]).rstrip()


def _time(name: str, ns: int, total: int, memory: str) -> tuple[str, str, str, str]:
    return name, f"{ns / 1e6:,.1f}", f"{100 * ns // max(total, 1)}%", memory


def kernel_names(path: str) -> list[str]:
    """Return the kernels of a file for shell completion; empty if they cannot be determined."""
    try:
        source = Loader.beside(path).main(path)
        return [kernel.name for kernel in pipeline.list_kernels(source)]
    except NkicError:
        return []


def _target(t: Record) -> Sequence[str]:
    sbuf = (t["sbuf_bytes_per_partition"], t["sbuf_usable_bytes_per_partition"])
    name = t["name"] + (" (default)" if t["default"] else "")
    sizes, also = [size(n * PARTITIONS) for n in sbuf], ", ".join(t["also_called"])
    return name, str(t["cores"]), *sizes, str(t["psum_banks"]), str(t["dma_engines"]), also


def _dtype(d: Record) -> Sequence[str]:
    limits = [_limit(d[name]) for name in ("lowest", "highest")]
    return d["name"], str(d["bytes"]), *limits, ", ".join(d["also_called"])


def _limit(value: float) -> str:
    return grouped(value) if isinstance(value, int) else f"{value:g}"


def _profile(profile: Record) -> Sequence[str]:
    return profile["name"], "default" if profile["default"] else ""


def _plain(record: Record) -> Sequence[str]:
    return tuple(record.values())


# The heads of the tables for people, and the functions that turn a record into a row.
TABLES: dict[str, tuple[str, Callable[[Record], Sequence[str]]]] = {
    "targets": ("target,cores,SBUF,usable,PSUM banks,DMA engines,also called", _target),
    "dtypes": ("dtype,bytes,lowest,highest,also called", _dtype),
    "passes": ("stage,what it makes", _plain),
    "profiles": ("--nki,", _profile),
    "codes": ("code,slug,meaning", _plain),
    "env": ("variable,effect", _plain),
    "language": ("nl.,,", _plain),
}
