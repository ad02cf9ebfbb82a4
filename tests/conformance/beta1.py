"""Compiles and runs kernels of Beta 1 from checkouts, and prints a table of worst errors.

    python -m tests.conformance.beta1 --sdk ../aws-neuron-sdk/nki --samples ../nki-samples \\
        --bench ../AccelOpt/NKIBench [REGEX]

The checkouts are of versions with Beta 1: the SDK's at v2.26.1, nki-samples' before Beta 2. The
exit status is 1 where a kernel that should run does not, or is further from its reference than
its case allows. With `--compile`, kernels are compiled only.
"""

from __future__ import annotations

import argparse
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
from tests.conformance import beta1_samples
from tests.conformance.beta1_cases import CASES, SAMPLES, SDK, Case
from tests.conformance.worst_errors import Draw, error

assert beta1_samples.SAMPLES == SAMPLES  # its cases are among CASES


def main() -> int:
    """Exit status."""
    options = _options()
    folders = {SDK: options.sdk, SAMPLES: options.samples}
    chosen = [c for c in CASES if folders[c.checkout] and re.search(options.only, _label(c))]
    bad = 0
    for case in chosen:
        started = time.monotonic()
        said, good = _judged(case, folders[case.checkout], options.compile)
        bad += not good and not case.why
        took = f"{time.monotonic() - started:.1f} s" if options.time else ""
        mark = "" if good else " **fails**" if not case.why else f" (known: {case.why})"
        print(f"| {_label(case)} | {said}{mark} | {took}", flush=True)
    if options.bench:
        bad += sum(not good for good in _bench(options.bench, options.only, options.compile))
    known = sum(bool(case.why) for case in chosen)
    print(f"{len(chosen)} cases of kernels, {bad} fail, {known} are known not to run")
    return bool(bad)


def _label(case: Case) -> str:
    return f"{case.checkout}: {case.name}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sdk", type=Path, help="the folder nki of a checkout of the SDK")
    parser.add_argument("--samples", type=Path, help="a checkout of nki-samples")
    parser.add_argument("--bench", type=Path, help="the folder NKIBench of AccelOpt")
    parser.add_argument("--compile", action="store_true", help="do not run them")
    parser.add_argument("--time", action="store_true", help="say how long each case took")
    parser.add_argument("only", nargs="?", default="", help="cases whose name has this pattern")
    return parser.parse_args()


def _judged(case: Case, folder: Path, compile_only: bool) -> tuple[str, bool]:
    """What to say of a case, and whether it is as it should be."""
    try:
        inputs, wanted = case.build(Draw(""))
        arrays = {n: v for n, v in inputs.items() if isinstance(v, np.ndarray)}
        consts = {n: v for n, v in inputs.items() if n not in arrays}
        how = {"levels": levels.Settings(), **case.how}
        artifact = nkic.compile(
            str(folder / case.file), name=case.kernel, inputs=arrays, consts=consts, **how
        )
        if compile_only:
            return "compiles", True
        result = nkic.run(artifact, arrays)
    except Exception as refused:
        return _first_error(f"{type(refused).__name__}: {refused}"), False
    return _compared(case, result, wanted)


def _compared(case: Case, result: Any, wanted: Any) -> tuple[str, bool]:
    expected = wanted if isinstance(wanted, dict) else dict(_numbered(wanted))
    worst = 0.0
    for name, reference in expected.items():
        if reference is not None:
            worst = max(worst, error(np.asarray(result.outputs[name]), np.asarray(reference)).eps)
    return f"{worst:.3g} eps, {result.cycles:,} cycles", worst <= case.limit


# ---- NKIBench: its own modules give inputs and references ----------------------------------------


def _bench(folder: Path, only: str, compile_only: bool) -> Iterator[bool]:
    """Compiles each kernel as it is, and runs it on its own inputs."""
    nkic.install()
    found = json.loads((folder / "summary.json").read_text("utf-8"))
    for name, entry in found.items():
        pairs = [one for case in entry["cases"].values() for one in case["impls"]]
        for pair in pairs if re.search(only, f"bench: {name}") else ():
            try:
                said, good = _of_bench(folder / pair["task"], folder / pair["kernel"], compile_only)
            except Exception as refused:
                said, good = _first_error(f"{type(refused).__name__}: {refused}"), False
            print(f"| bench: {name} | {said}{'' if good else ' **fails**'} | ", flush=True)
            yield good


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
