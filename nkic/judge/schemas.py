"""JSON Schemas (draft 2020-12) of a task's file and of an evaluation, for those who write and read
them. They are made from what reads and writes, so that neither can say something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from nkic.judge.evaluation import SCHEMA, CaseResult, Evaluation, Flag
from nkic.judge.families import FAMILIES
from nkic.judge.task import KEYS, MEASURES, REFERENCES
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import TARGETS
from nkic.simulate.comparison.tolerance import MODES

Json = Mapping[str, Any]
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT, _NUMBER, _COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
_FLAG, _OBJECT = {"type": "boolean"}, {"type": "object"}


def task_schema() -> dict[str, Any]:
    """Return the schema of a task's file, read as TOML."""
    families = _list({"enum": list(FAMILIES)})
    measures = dict.fromkeys(sorted(MEASURES - {"mode"}), _NUMBER) | {"mode": _one_of(MODES)}
    case: dict[str, Json] = {
        "name": _TEXT,
        "inputs": _map(_TEXT),
        "consts": _OBJECT,
        "values": _map(_TEXT),
        "grid": {"anyOf": [_COUNT, _list(_COUNT)]},
        "lnc": _COUNT,
        "seeds": _list(_COUNT, 1),
        "hidden": _FLAG,
    }
    reference = _closed("[reference]", dict.fromkeys(KEYS["[reference]"], _TEXT))
    limits: dict[str, Json] = {
        "seconds": {**_NUMBER, "exclusiveMinimum": 0},
        "memory": {"type": ["string", "integer"]},
    }
    task: dict[str, Json] = {
        "name": _TEXT,
        "kernels": _list(_TEXT),
        "target": _one_of(TARGETS),
        "nki": _TEXT,
        "optimise": {"enum": [0, 1, 2]},
        "reference": {**reference, "oneOf": [{"required": [kind]} for kind in REFERENCES]},
        "outputs": {
            **_OBJECT,
            "properties": measures,
            "additionalProperties": {
                **_OBJECT,
                "properties": measures,
                "additionalProperties": False,
            },
        },
        "case": _list(_closed("a case", case), 1),
        "families": families,
        "required_families": families,
        "may_write": _list(_TEXT),
        "narrowest": _one_of(DTYPES),
        "limits": _closed("[limits]", limits),
        "equal_nan": _FLAG,
    }
    return {
        "$schema": _DRAFT,
        "title": "A task of `nkic evaluate`",
        **_closed("a task", task),
        "required": ["reference", "case"],
    }


def evaluation_schema() -> dict[str, Any]:
    """Return the schema of an evaluation. Later versions may add fields to any object."""
    time = {"type": ["number", "null"]}
    flag = {"name": _TEXT, "text": _TEXT, "cheat": _FLAG}
    result = {
        "case": _TEXT,
        "inputs": _TEXT,
        "passed": _FLAG,
        "outputs": _list(_OBJECT),
        "problem": _TEXT,
        "time_ns": time,
    }
    results = _list(_of(CaseResult, result))
    known = {
        **dict.fromkeys(("candidate", "candidate_sha256", "task", "task_sha256", "nkic"), _TEXT),
        **dict.fromkeys(("compiled", "runnable", "correct"), _FLAG),
        **dict.fromkeys(("cases", "families"), results),
        "flags": _list(_of(Flag, flag)),
        "time_ns": time,
        **dict.fromkeys(("trust", "report", "metrics"), _OBJECT),
        "instructions": _map(_COUNT),
        "sbuf_bytes": _COUNT,
        **dict.fromkeys(("narrowest", "artifacts"), _map(_TEXT)),
        "verdict": _list(_TEXT),
        **dict.fromkeys(("what_if", "diagnostics", "warnings"), _list(_OBJECT)),
        "problem": _TEXT,
        "ended": {"enum": ["", "time", "process"]},
        "seconds": _NUMBER,
    }
    schema = _of(Evaluation, known)
    schema["properties"].pop("seconds")  # about the machine: in `host`
    schema["required"].remove("seconds")
    schema["properties"] |= {
        "schema": {"const": SCHEMA},
        "status": {"enum": ["correct", "wrong", "cheat", "fails", "refused", "compiled"]},
        "host": {**_OBJECT, "properties": {"seconds": _NUMBER}},
    }
    schema["required"] += ["schema", "status"]
    return {"$schema": _DRAFT, "title": "An evaluation of `nkic evaluate`", **schema}


def _closed(what: str, properties: Mapping[str, Json]) -> dict[str, Any]:
    """Return the schema of a table with exactly the keys that the reader knows."""
    known = {key: properties[key] for key in KEYS[what]}
    return {**_OBJECT, "properties": known, "additionalProperties": False}


def _of(kind: type[Any], properties: Mapping[str, Json]) -> dict[str, Any]:
    names = [field.name for field in fields(kind)]
    return {**_OBJECT, "properties": {n: properties[n] for n in names}, "required": names}


def _list(of: Json, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": of, **({"minItems": least} if least else {})}


def _map(of: Json) -> dict[str, Any]:
    return {**_OBJECT, "additionalProperties": of}


def _one_of(names: Iterable[str]) -> dict[str, Any]:
    return {"enum": list(names)}
