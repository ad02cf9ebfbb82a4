"""The extension of VS Code in Node, with the protocol library that `make vscode` installs."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.commands import KERNEL, ROOT

MODULES = ROOT / "build/vscode/node_modules"
SESSION = Path(__file__).with_name("vscode.js")
NKIC = str(Path(sys.executable).with_name("nkic"))

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="there is no node"),
    pytest.mark.skipif(not MODULES.is_dir(), reason="`make vscode` has not been run"),
]


def session(folder: Path, text: str, nkic: str = NKIC) -> dict[str, Any]:
    path = folder / "k.py"
    path.write_text(text, "utf-8")
    words = ["node", str(SESSION), str(MODULES), nkic, str(path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    seen: dict[str, Any] = json.loads(ran.stdout)
    assert set(seen["commands"]) <= set(seen["registered"])
    assert seen["tasks"] == [["k.py"]]
    return seen


def test_every_command_of_the_extension(tmp_path: Path) -> None:
    seen = session(tmp_path, KERNEL)
    assert seen["diagnostics"] == seen["again"] == []
    assert seen["servers"] == 1, "after several restarts at once"
    ((kind, text),) = seen["said"]
    assert seen["opened"] == ["k.html"], "by the browser, and not of another machine"
    assert "<title>double: 3,747 cycles" in seen["panel"]
    assert kind == "information" and text.startswith("double: 3,747 cycles")
    assert seen["nkic.schedule"].startswith("program double on trn2")
    assert seen["nkic.assembly"].startswith("nkix")
    estimated, ran = seen["status"][0], next(s for s in seen["status"] if "cycles" in s[0])
    assert estimated[0].startswith("nkic: about ") and estimated[1].startswith("double: estimated")
    assert ran[0].startswith("nkic: double: 3,747 cycles") and "bound by" in ran[0]
    assert {"registerHoverProvider", "registerInlayHintsProvider"} <= set(seen["providers"])


def test_a_kernel_with_a_mistake(tmp_path: Path) -> None:
    seen = session(tmp_path, KERNEL.replace("nl.multiply", "nl.multipy"))
    ((line, text),) = seen["diagnostics"]
    assert line == 14 and text.startswith("`nki.language` has no `multipy`")
    assert seen["again"] == seen["diagnostics"], "the server that was started again says the same"
    shown = [text for _, text in seen["said"][2:]]  # of the schedule and of the assembly
    assert len(shown) == 2
    assert {text for text, _ in seen["status"]} == {"nkic: 1 error"}
    assert all(t.endswith("`nki.language` has no `multipy`") for t in shown)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    seen = session(tmp_path, KERNEL, "/nowhere/nkic")
    said = [text for _, text in seen["said"] if "couldn't create connection" not in text]
    start, again, running, *_ = said
    assert start == again and "Set nkic.command" in start and "/nowhere/nkic" in start
    assert running == "nkic's server is not running."
