"""The tables of --print and --time, for people and, with --json, for programs."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from nkic.base import diagnostics, levels, profiles
from nkic.base.diagnostics import NkicError, bad_value, suggestion
from nkic.base.files import SETTINGS, VARIABLES
from nkic.base.source import SourceFile
from nkic.base.text import aligned, grouped, size
from nkic.cli.common import Session, streams
from nkic.cli.common.options import Option
from nkic.cli.nkic.options import PRINTS
from nkic.compiler import pipeline
from nkic.compiler.compiled import StageTiming
from nkic.compiler.loader import Loader
from nkic.compiler.request import COMMAND_LINE, DEFAULT, Setting, settings
from nkic.machine import dtypes, targets
from nkic.machine.instructions import listing
from nkic.machine.targets import PARTITIONS
from nkic.specialise.request import RequestOptions

SCHEMA = 1
Record = dict[str, Any]


def document(what: str, content: Any) -> str:
    """Return the JSON text: the schema's number, what it is, and the content under that name."""
    record = {"schema": SCHEMA, "print": what, what: content}
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def _targets() -> list[Record]:
    return [
        {
            "name": t.name,
            "default": t is targets.DEFAULT,
            "cores": t.max_cores,
            "sbuf_bytes_per_partition": t.sbuf_bytes,
            "sbuf_usable_bytes_per_partition": t.sbuf_usable,
            "psum_banks": t.psum_banks,
            "dma_engines": t.dma_engines,
            "also_called": _other_names(targets.ALIASES, t.name),
        }
        for t in targets.TARGETS.values()
    ]


def _target_row(t: Record) -> Sequence[str]:
    sbuf = (t["sbuf_bytes_per_partition"], t["sbuf_usable_bytes_per_partition"])
    name = t["name"] + (" (default)" if t["default"] else "")
    sizes, also = [size(n * PARTITIONS) for n in sbuf], ", ".join(t["also_called"])
    return name, str(t["cores"]), *sizes, str(t["psum_banks"]), str(t["dma_engines"]), also


def _dtypes() -> list[Record]:
    return [
        {
            "name": d.name,
            "bytes": d.size,
            "lowest": d.lowest,
            "highest": d.highest,
            "also_called": _other_names(dtypes.ALIASES, d.name),
        }
        for d in dtypes.DTYPES.values()
    ]


def _dtype_row(d: Record) -> Sequence[str]:
    limits = (d["lowest"], d["highest"])
    shown = [grouped(limit) if isinstance(limit, int) else f"{limit:g}" for limit in limits]
    return d["name"], str(d["bytes"]), *shown, ", ".join(d["also_called"])


def _other_names(aliases: dict[str, str], wanted: str) -> list[str]:
    return [alias for alias, name in aliases.items() if name == wanted]


def _profiles() -> list[Record]:
    labels = profiles.LABELS.items()
    return [{"name": label, "default": profile is profiles.DEFAULT} for profile, label in labels]


def _codes() -> list[Record]:
    codes = sorted(diagnostics.codes().values(), key=lambda code: code.number)
    return [{"code": c.number, "slug": c.slug, "meaning": levels.title(c)} for c in codes]


def _language() -> list[Record]:
    """Return the names of nki.language, from its type stubs: `exp`, `exp(x, dtype)`, what it is."""
    text = resources.files("nkic").joinpath("stubs", "nki", "language.pyi").read_text("utf-8")
    rows = []
    for node in ast.parse(text).body:
        call, doc = "", ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            call, name = "class", node.name
            doc = (ast.get_docstring(node) or "").rpartition("\n\n")[2].split("\n:param")[0]
        elif isinstance(node, ast.AnnAssign):
            name = ast.unparse(node.target)
        else:  # an import
            continue
        if isinstance(node, ast.FunctionDef):
            call = f"({', '.join(a.arg for a in (*node.args.args, *node.args.kwonlyargs))})"
        rows.append({"name": name, "call": call, "doc": " ".join(doc.split())})
    return rows


class Table(NamedTuple):
    """A table: its records, its head for people, and what makes a row of a record."""

    records: Callable[[], list[Record]]
    head: str = ""
    row: Callable[[Record], Sequence[str]] = lambda record: tuple(record.values())


TABLES = {
    "targets": Table(
        _targets, "target,cores,SBUF,usable,PSUM banks,DMA engines,also called", _target_row
    ),
    "dtypes": Table(_dtypes, "dtype,bytes,lowest,highest,also called", _dtype_row),
    "passes": Table(
        lambda: [{"stage": name, "makes": made} for name, made in pipeline.STAGES.items()],
        "stage,what it makes",
    ),
    "profiles": Table(
        _profiles, "--nki,", lambda one: (one["name"], "default" if one["default"] else "")
    ),
    "codes": Table(_codes, "code,slug,meaning"),
    "env": Table(
        lambda: [{"variable": name, "effect": effect} for name, effect in VARIABLES.items()],
        "variable,effect",
    ),
    "ops": Table(listing.records),
    "language": Table(_language, "nl.,,"),
}


SHELLS = ("bash", "zsh", "fish")
COMPLETION = "completion"


def table(wanted: str, colour: str, *, as_json: bool = False) -> str:
    """Return the table that --print names, formatted according to `--color`.

    Raises `UsageFailed` if there is no such table.
    """
    name, _, value = wanted.partition("=")
    if name == COMPLETION:
        script = completion(value)
        return document(name, {"shell": value, "script": script}) if as_json else script
    if name == "schema" and value:
        return _schema(value)
    if wanted == "schema":
        return resources.files("nkic.base.render").joinpath("diagnostic.schema.json").read_text()
    if wanted not in TABLES:
        raise bad_value(f"--print: there is no table `{wanted}`", suggestion(wanted, PRINTS))
    records, head, row = TABLES[wanted]
    if as_json:
        return document(wanted, records())
    if wanted == "ops":
        return listing.text() + "\n"
    return streams.table([head.split(","), *map(row, records())], colour)


def _schema(wanted: str) -> str:
    """Return the schema of a task, of an evaluation, or of the settings of a project."""
    if wanted == "settings":
        return json.dumps(_settings_schema(), indent=2) + "\n"
    from nkic.judge import schemas  # slow to import, and rarely needed

    made = {"task": schemas.task_schema, "evaluation": schemas.evaluation_schema}
    if wanted not in made:
        text = f"--print schema={wanted}: there is no such schema"
        raise bad_value(text, suggestion(wanted, (*made, "settings")))
    return json.dumps(made[wanted](), indent=2) + "\n"


def _settings_schema() -> Record:
    keys = {}
    for name, (meaning, values) in SETTINGS.items():
        # TOML may write them as such.
        numbers = [float(value) for value in values if value[0].isdigit()]
        tables = {"type": "object", "additionalProperties": {"type": "object"}}
        keys[name] = {"description": meaning} | (
            {"enum": [*values, *numbers]} if values else tables
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "[tool.nkic] in pyproject.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": keys,
    }


def completion(shell: str) -> str:
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
    total = sum(t.ns for t in timings)
    stages = [(t.stage, t.ns, size(t.peak_bytes)) for t in timings]
    rows = [("stage", "ms", "share", "peak memory")]
    for name, ns, memory in (*stages, ("total", total, "")):
        rows.append((name, f"{ns / 1e6:,.1f}", f"{100 * ns // max(total, 1)}%", memory))
    return aligned([[r[0], r[1].rjust(9), r[2].rjust(5), r[3]] for r in rows]).rstrip()


def kernel_names(path: str) -> list[str]:
    """Return the kernels of a file for shell completion; empty if they cannot be determined."""
    try:
        source = Loader.beside(path).main(path)
        return [kernel.name for kernel in pipeline.list_kernels(source)]
    except NkicError:
        return []


# Options that are read from the request instead, or are not settings, by group; others by name.
_GROUPS = ("Kernel", "Help")
_OTHERS = {"print", "warn", "allow", "deny", "quiet", "verbose"}


def config_rows(
    request_options: RequestOptions, source: SourceFile | None, session: Session
) -> Iterator[Setting]:
    """Yield the kernel's settings, then every option."""
    yield from settings(source, request_options, os.environ)
    context = click.get_current_context()
    for option in context.command.get_params(context):
        name = str(option.name)
        if not isinstance(option, Option) or name in _OTHERS:
            continue
        if option.row.group not in _GROUPS or name == "like":
            is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
            origin = COMMAND_LINE if is_given else DEFAULT
            yield option.opts[-1].lstrip("-"), _shown(context.params[name]), origin
    verbosity = session.verbosity
    yield "verbosity", str(verbosity), COMMAND_LINE if verbosity else DEFAULT
    words = [f"{wish.value} {name}" for name, wish in session.levels.wishes.items()]
    words += ["-Werror"] if session.levels.all_errors else []
    yield "warnings", " ".join(words) or "as they are", COMMAND_LINE if words else DEFAULT


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
