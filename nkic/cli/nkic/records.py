"""The tables of --print for programs: the output of `--json`."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable
from importlib import resources
from typing import Any

from nkic.base import diagnostics, explain, profiles
from nkic.base.environment import VARIABLES
from nkic.driver import pipeline
from nkic.driver.request import Setting
from nkic.machine import dtypes, targets
from nkic.machine.instructions import listing
from nkic.syntax.bindings import Kernel

SCHEMA = 1
Record = dict[str, Any]


def document(what: str, content: Any) -> str:
    """Return the JSON text: the schema's number, what it is, and the content under that name."""
    record = {"schema": SCHEMA, "print": what, what: content}
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def settings(rows: Iterable[Setting]) -> list[Record]:
    """Return the records of --print config, without the head of the table."""
    return [{"setting": name, "value": value, "from": origin} for name, value, origin in rows]


def kernels(listed: Iterable[Kernel]) -> list[Record]:
    """Return the records of --print kernels."""
    return [{"name": kernel.name, "signature": kernel.signature} for kernel in listed]


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
            "also_called": _also(targets.ALIASES, t.name),
        }
        for t in targets.TARGETS.values()
    ]


def _dtypes() -> list[Record]:
    return [
        {
            "name": d.name,
            "bytes": d.size,
            "lowest": d.lowest,
            "highest": d.highest,
            "also_called": _also(dtypes.ALIASES, d.name),
        }
        for d in dtypes.DTYPES.values()
    ]


def _also(aliases: dict[str, str], wanted: str) -> list[str]:
    return [alias for alias, name in aliases.items() if name == wanted]


def _passes() -> list[Record]:
    return [{"stage": name, "makes": result} for name, result in pipeline.STAGES.items()]


def _profiles() -> list[Record]:
    labels = profiles.LABELS.items()
    return [{"name": label, "default": profile is profiles.DEFAULT} for profile, label in labels]


def _codes() -> list[Record]:
    codes = sorted(diagnostics.codes().values(), key=lambda code: code.number)
    return [
        {"code": code.number, "slug": code.slug, "meaning": explain.title(code)} for code in codes
    ]


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


def _environment() -> list[Record]:
    return [{"variable": name, "effect": effect} for name, effect in VARIABLES.items()]


TABLES: dict[str, Callable[[], list[Record]]] = {
    "targets": _targets,
    "dtypes": _dtypes,
    "passes": _passes,
    "profiles": _profiles,
    "codes": _codes,
    "env": _environment,
    "ops": listing.records,
    "language": _language,
}
