"""Files of checkouts that have Beta 1 kernels: the parameters of their functions, the SDK's tests,
and a table of each file's outcome.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

KNOWN_TESTS = {
    "test_activation": "compares a result that is bfloat16 with 1e-5",
    "oob_err_negative": "wait for NumPy's own IndexError, of an index in a flat tensor",
    "test_nl_broadcast": "is a kernel whose name begins like that of a test",
    "test_nc_match_replace_indices8_mask": "`a and b` of two masks is `b` alone, and it uses "
    "what that hides",
    "test_nki_mask": "stores what a mask hid (mended in v2.21)",
}
"""Tests of the SDK that do not pass as they are, and why."""

HOST_CODE = ("api", "test_attention.py", "test_neuron_profile.py")
"""Parts of paths of what imports Beta 1 and has no kernel of its own, or is about files of the
vendor's profiler alone.
"""


class Outcome(NamedTuple):
    """The outcome of a case of a file. `why` is the known reason that keeps it from running."""

    path: Path
    good: bool
    why: str
    said: str


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def function(path: Path, names: str) -> ast.FunctionDef | None:
    """Return the function of the first of several names (`new|old`) that the file has."""
    if not path.is_file():
        return None
    known = {one.name: one for one in _tree(path).body if isinstance(one, ast.FunctionDef)}
    return next((known[name] for name in names.split("|") if name in known), None)


def fits(kernel: ast.FunctionDef, inputs: Iterable[str]) -> bool:
    """Return whether this version of the kernel takes all of the arguments."""
    return set(inputs) <= {arg.arg for arg in (*kernel.args.args, *kernel.args.kwonlyargs)}


def with_outputs(
    kernel: ast.FunctionDef, inputs: dict[str, Any], wanted: Any
) -> tuple[dict[str, Any], Any]:
    """Return the arguments that a version of a kernel takes, and its results by name.

    Before v2.21, kernels take their outputs as arguments: the parameters without a value, in the
    order of the results.
    """
    every = [arg.arg for arg in (*kernel.args.args, *kernel.args.kwonlyargs)]
    optional = every[len(kernel.args.args) - len(kernel.args.defaults) :]
    outputs = [name for name in every if name not in inputs and name not in optional]
    if not outputs:
        return inputs, wanted
    dtype = next(v.dtype for v in inputs.values() if isinstance(v, np.ndarray))
    results = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
    named = dict(zip(outputs, results, strict=True))
    made = {name: np.zeros(np.shape(value), dtype) for name, value in named.items()}
    return {**inputs, **made}, named


# ---- tests of the SDK ----------------------------------------------------------------------------


def tests(folder: Path, only: str) -> Iterator[Outcome]:
    """Run the SDK's own tests unchanged: one outcome for each."""
    if not re.search(only, f"{folder.name}: test"):
        return
    command = [sys.executable, "-m", "pytest", "--nkic", "-q", "-n", "0", "-rA", "--tb=no"]
    options = ["-p", "no:cacheprovider", "-W", "ignore", "--continue-on-collection-errors", "."]
    ran = subprocess.run(
        [*command, *options], cwd=folder / "test", capture_output=True, text=True, check=False
    )
    for line in ran.stdout.splitlines():
        found = re.match(r"(PASSED|FAILED|ERROR) (\w+\.py)(?:::(\S+))?(?: - (.*))?", line)
        if found is not None:
            yield _outcome(folder, found)


def _outcome(folder: Path, found: re.Match[str]) -> Outcome:
    word, file, name, said = found.groups()
    where = f"{file}::{name}"
    good = word == "PASSED"
    why = next((why for part, why in KNOWN_TESTS.items() if part in where), "")
    if not good:
        mark = f"(known: {why})" if why else "**fails**"
        print(f"| {folder.name}: {where} | {said or word.lower()} {mark} |", flush=True)
    return Outcome(folder / "test" / file, good, "" if good else why, said or "")


# ---- files ---------------------------------------------------------------------------------------


def table(folders: Sequence[Path], found: Iterable[Outcome], reasons: Mapping[str, str]) -> None:
    """Print a line for each file with Beta 1 kernels that are not all correct; `reasons` explain
    files without cases.
    """
    outcomes: dict[Path, list[Outcome]] = {}
    for one in found:
        outcomes.setdefault(one.path, []).append(one)
    count = {"right": 0, "known": 0, "fails": 0, "not tried": 0}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if not _has_kernels(path):
                continue
            reason = reasons.get(path.relative_to(folder).as_posix(), "")
            word, why = _word(outcomes.get(path, [])) if path in outcomes else _without(reason)
            count[word] += 1
            if word != "right":
                print(f"| {folder.name}/{path.relative_to(folder)} | {word} | {why} |")
    total = sum(count.values())
    said = ", ".join(f"{number} {word}" for word, number in count.items())
    print(f"{total} files with kernels: {said}")


def _without(reason: str) -> tuple[str, str]:
    return ("known", reason) if reason else ("not tried", "")


def _word(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    bad = [one for one in outcomes if not one.good]
    failing = [one for one in bad if not one.why]
    if failing:
        return "fails", failing[0].said
    if len(bad) == len(outcomes):
        return "known", bad[0].why
    return "right", ""


_DECORATORS = ("jit", "nki_jit", "trace", "baremetal", "benchmark", "profile")


def _has_kernels(path: Path) -> bool:
    """Return whether the file imports Beta 1, and has functions that use it."""
    text = path.read_text("utf-8", errors="replace")
    if any(part in HOST_CODE for part in path.parts):
        return False
    if not re.search(r"^\s*(import|from) neuronxcc\.nki|^\s*from neuronxcc import nki", text, re.M):
        return False
    return any(
        isinstance(one, ast.FunctionDef) and re.search(r"\b(nl|nisa)\.", ast.unparse(one))
        for one in _tree(path).body
    )
