"""Compile and run kernels of Beta 1 from checkouts, and print a table of worst errors.

    python -m tests.conformance.beta1 --sdk sdk-2.20/general/nki --sdk sdk-2.26/nki --tests \\
        --samples ../nki-samples --bench ../AccelOpt/NKIBench [--small] [REGEX]

The checkouts are of versions with Beta 1: the SDK's from v2.20.0 to v2.26.1, nki-samples' before
Beta 2. Cases that a checkout lacks are skipped. `--tests` also runs the SDK's own tests of the
API; `--files` also prints the outcome of each file that has kernels. The exit status is 1 if a
kernel that should run does not, or is further from its reference than its case allows. With
`--compile`, kernels are compiled only.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nkic
from nkic.base import levels
from nkic.base.source import SourceFile
from tests.conformance import beta1_experts, beta1_files, beta1_paged, beta1_samples, beta1_team
from tests.conformance.bench_sizes import REFERENCES, cut, smaller
from tests.conformance.beta1_cases import CASES, SAMPLES, SDK, Case
from tests.conformance.worst_errors import Draw, error

for _samples in (beta1_samples, beta1_team, beta1_experts, beta1_paged):
    assert _samples.SAMPLES == SAMPLES  # importing it registers its cases in CASES


def main() -> int:
    """Return the exit status."""
    options = _options()
    folders = [(SDK, one) for one in options.sdk] + [(SAMPLES, one) for one in options.samples]
    found = list[beta1_files.Outcome]()
    for checkout, folder in folders:
        found += _of_checkout(checkout, folder, options)
        if options.tests and checkout == SDK:
            found += beta1_files.tests(folder, options.only)
    if options.bench:
        found += _bench(options)
    if options.files:
        beta1_files.table([folder for _, folder in folders], found, beta1_team.REASONS)
    bad = sum(not one.good and not one.why for one in found)
    known = sum(bool(one.why) and not one.good for one in found)
    print(f"{len(found)} results of kernels, {bad} fail, {known} are known not to run")
    return bool(bad)


def _of_checkout(
    checkout: str, folder: Path, options: argparse.Namespace
) -> Iterator[beta1_files.Outcome]:
    """Return the outcomes of the cases that a checkout has."""
    for case in CASES:
        label = f"{folder.name}: {case.name}"
        path = folder / case.file
        if case.checkout != checkout or not re.search(options.only, label):
            continue
        function = beta1_files.function(path, case.kernel)
        if function is None:
            continue
        if not case.source and not beta1_files.fits(function, case.build(Draw(""))[0]):
            continue
        started = time.monotonic()
        said, good = _judged(case, folder, function, options.compile)
        took = f"{time.monotonic() - started:.1f} s" if options.time else ""
        mark = "" if good else " **fails**" if not case.why else f" (known: {case.why})"
        print(f"| {label} | {said}{mark} | {took}", flush=True)
        for one in (case.file, *case.uses):
            yield beta1_files.Outcome(folder / one, good, case.why, said)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    several: dict[str, Any] = {"type": Path, "action": "append", "default": []}
    parser.add_argument("--sdk", **several, help="the folder nki of a checkout of the SDK")
    parser.add_argument("--samples", **several, help="a checkout of nki-samples")
    parser.add_argument("--tests", action="store_true", help="the SDK's own tests, too")
    parser.add_argument("--files", action="store_true", help="end with a table of files")
    parser.add_argument("--bench", type=Path, help="the folder NKIBench of AccelOpt")
    parser.add_argument("--small", action="store_true", help="of --bench, smaller problems")
    parser.add_argument("--compile", action="store_true", help="do not run them")
    parser.add_argument("--time", action="store_true", help="say how long each case took")
    parser.add_argument("only", nargs="?", default="", help="cases whose name has this pattern")
    return parser.parse_args()


def _judged(case: Case, folder: Path, function: ast.FunctionDef, brief: bool) -> tuple[str, bool]:
    """Return the description of a case's outcome, and whether it is as expected."""
    path = folder / case.file
    try:
        inputs, wanted = case.build(Draw(""))
        if not case.source:
            inputs, wanted = beta1_files.with_outputs(function, inputs, wanted)
        if case.host:
            return _called(case, path, function.name, inputs, wanted)
        arrays = {n: v for n, v in inputs.items() if isinstance(v, np.ndarray)}
        consts = {n: v for n, v in inputs.items() if n not in arrays}
        how = {"levels": levels.Settings(), **case.how}
        artifact = nkic.compile(
            SourceFile("case.py", case.source) if case.source else str(path),
            name=None if case.source else function.name,
            include=[str(folder / case.include)] if case.source else [],
            inputs=arrays,
            consts=consts,
            **how,
        )
        if brief:
            return "compiles", True
        result = nkic.run(artifact, arrays)
    except Exception as refused:
        meant = bool(case.refused) and case.refused in str(refused)
        return _first_error(f"{type(refused).__name__}: {refused}"), meant
    found, good = _compared(case, result, wanted)
    return found, good and not case.refused


def _called(
    case: Case, path: Path, name: str, inputs: dict[str, Any], wanted: Any
) -> tuple[str, bool]:
    """Call the function from Python, as its callers do."""
    nkic.install()
    sys.path.insert(0, str(path.parent))
    try:
        found = getattr(_module(path), name)(**inputs)
    finally:
        sys.path.remove(str(path.parent))
    found = found if isinstance(found, tuple | list) else (found,)
    pairs = zip(found, (value for _, value in _numbered(wanted)), strict=True)
    worst = max(error(np.asarray(one), np.asarray(other)).eps for one, other in pairs)
    return f"{worst:.3g} eps", worst <= case.limit


def _compared(case: Case, result: Any, wanted: Any) -> tuple[str, bool]:
    expected = wanted if isinstance(wanted, dict) else dict(_numbered(wanted))
    worst = 0.0
    for name, reference in expected.items():
        found = np.asarray(result.outputs[name])
        if callable(reference):
            found, reference = reference(found)
        if reference is not None:
            worst = max(worst, error(found, np.asarray(reference)).eps)
    return f"{worst:.3g} eps, {result.cycles:,} cycles", worst <= case.limit


# ---- NKIBench: its own modules give inputs and references ----------------------------------------


def _bench(options: argparse.Namespace) -> Iterator[beta1_files.Outcome]:
    """Compile each kernel unchanged, and run it on its own inputs.

    With `--small`, kernels that are too large for this run on smaller problems.
    """
    nkic.install()
    folder, only, compile_only = options.bench, options.only, options.compile
    found = json.loads((folder / "summary.json").read_text("utf-8"))
    for name, entry in found.items():
        pairs = [one for case in entry["cases"].values() for one in case["impls"]]
        wanted = re.search(only, f"bench: {name}") and (not options.small or name in REFERENCES)
        for pair in pairs if wanted else ():
            files = folder / pair["task"], folder / pair["kernel"]
            try:
                said, good = (
                    _smaller(name, *files) if options.small else _of_bench(*files, compile_only)
                )
            except Exception as refused:
                said, good = _first_error(f"{type(refused).__name__}: {refused}"), False
            print(f"| bench: {name} | {said}{'' if good else ' **fails**'} | ", flush=True)
            yield beta1_files.Outcome(folder / pair["kernel"], good, "", said)


def _of_bench(task_file: Path, kernel_file: Path, compile_only: bool) -> tuple[str, bool]:
    task, kernel = _module(task_file), _module(kernel_file).kernel
    np.random.seed(0)
    given = task.get_inputs()
    inputs = task.transform_to_nki_inputs(given)
    if compile_only:
        kernel.prepare(*inputs)
        return "compiles", True
    wanted = task.forward(*given)
    found = task.transform_nki_outputs(kernel(*inputs), wanted)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    pairs = zip(found, wanted, strict=True)
    worst = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
    return f"{worst:.2g} of the greatest", worst < MOST


def _smaller(name: str, task_file: Path, kernel_file: Path) -> tuple[str, bool]:
    """Run the kernel for a smaller problem, against NumPy in float64."""
    task = _module(task_file)
    np.random.seed(0)
    given = task.transform_to_nki_inputs(task.get_inputs())
    names = [f"v{n}" for n in range(1, len(given) + 1)]
    inputs = cut(name, dict(zip(names, given, strict=True)))
    text = smaller(name, kernel_file.read_text("utf-8"))
    made = nkic.compile(SourceFile(kernel_file.name, text), inputs=inputs)
    result = nkic.run(made, inputs)
    exact = {key: value.astype(np.float64) for key, value in inputs.items()}
    wanted = REFERENCES[name](**exact)
    found = next(iter(result.outputs.values()))
    worst = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    return f"smaller: {worst:.2g} of the greatest, {result.cycles:,} cycles", worst < MOST


MOST = 1e-4


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _numbered(wanted: Any) -> Sequence[tuple[str, Any]]:
    values = wanted if isinstance(wanted, tuple | list) else [wanted]
    return [(f"output_{n}", value) for n, value in enumerate(values)]


def _first_error(text: str) -> str:
    lines = text.splitlines()
    line = next((line for line in lines if "error[" in line), lines[0])
    return re.sub(r"\S*/", "", line, count=1)[:300]


if __name__ == "__main__":
    sys.exit(main())
