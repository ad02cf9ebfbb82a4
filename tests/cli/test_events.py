"""Every event type that the commands write is in the published schema and conforms to it."""

import ast
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import ROOT, Run

__all__ = ["folder", "nkic"]
SCHEMA = json.loads((ROOT / "nkic/base/render/diagnostic.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
KERNEL = """# /// nkic
# [args]
# a = "float32[128, 64]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(a):
    print("compiled")
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    spare = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nl.device_print("tile ", tile[0:2, 0:2])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def events(text: str) -> dict[str, dict[str, Any]]:
    """Return the events by type, each validated against the schema."""
    found = [json.loads(line) for line in text.splitlines()]
    for event in found:
        VALIDATOR.validate(event)
    return {event["type"]: event for event in found}


def published() -> set[str]:
    return {part["if"]["properties"]["type"]["const"] for part in SCHEMA["allOf"]}


def written() -> set[str]:
    """Return the event types in the source: the first arguments of `tell` and `event`."""
    found = {"artifact", "diagnostic"}
    for path in (ROOT / "nkic" / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                first = node.args[0] if node.args else None
                if node.func.attr in ("tell", "event") and isinstance(first, ast.Constant):
                    found.add(str(first.value))
    return found


def test_every_type_is_published() -> None:
    assert written() == published() == published() & SCHEMA["$defs"].keys()


def test_what_the_commands_write(nkic: Run, folder: Path, capfd: Any) -> None:
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    json_form = ("--message-format", "json")
    ran = nkic("k.py", "--time", *json_form)
    compiled = events(ran.err)
    assert compiled.keys() == {"print", "diagnostic", "timings", "artifact"}
    assert compiled["print"]["message"] == "compiled"
    ones = np.ones((128, 64), np.float32)
    np.savez("a.npz", a=ones)
    np.savez("e.npz", output_0=2 * ones)
    words = ("k.neff", "--inputs", "a.npz", "--expected", "e.npz", "--outputs", "o.npz")
    code = run(nki_run, "nki-run", (*words, "--report-error-bound", *json_form))
    ran_events = events(capfd.readouterr().err)
    assert code == 0
    assert ran_events.keys() == {
        *("artifact", "print", "resources", "run", "compare", "error-bound", "verdict"),
    }
    assert ran_events["error-bound"]["maximum"] == 2.0**-23 + 2.0**-150
    assert ran_events["print"]["text"] == "[[1. 1.]\n [1. 1.]]"
    assert ran_events["compare"]["passed"] is True
