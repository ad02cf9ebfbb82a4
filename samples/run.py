"""Builds, runs and checks the samples: `python -m samples.run [FOLDER ...]`, one line per kernel.

Uses the two commands as any user does. tests/test_samples.py takes the same way.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samples.common import to_float64

SAMPLES = Path(__file__).resolve().parent
STRICT = ("-Werror", "-D", "07")
Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Case:
    """One kernel of one sample, with the arguments it is compiled for."""

    folder: Path
    kernel: str
    args: Mapping[str, str]  # "float32[128, 512]" by parameter
    in_block: bool  # the kernel that the file's block names: needs no options

    @property
    def name(self) -> str:
        return self.folder.name if self.in_block else f"{self.folder.name}:{self.kernel}"


class Result(NamedTuple):
    """What a run left behind."""

    outputs: dict[str, NDArray[np.generic]]
    report: dict[str, Any]


class ToolError(Exception):
    """A command that ended with something else than 0, and what it said."""


def folders() -> list[Path]:
    """Every sample, in teaching order."""
    return sorted(path.parent for path in SAMPLES.glob("*/kernel.py"))


def cases(folder: Path) -> list[Case]:
    """The kernel of the file's block, then those that reference.py lists in KERNELS."""
    block = read_block(folder)
    args: dict[str, str] = block["args"]
    others: dict[str, dict[str, str]] = getattr(load_reference(folder), "KERNELS", {})
    variants = [Case(folder, kernel, {**args, **own}, False) for kernel, own in others.items()]
    return [Case(folder, block["kernel"], args, True), *variants]


def read_block(folder: Path) -> dict[str, Any]:
    """The `# /// nkic` block of the sample's kernel file, which is TOML behind `# `."""
    text = (folder / "kernel.py").read_text(encoding="utf-8")
    found = re.search(r"(?ms)^# /// nkic$\n(.*?)^# ///$", text)
    if found is None:
        raise ValueError(f"{folder.name}/kernel.py has no nkic block")
    return tomllib.loads(re.sub(r"(?m)^# ?", "", found[1]))


def load_reference(folder: Path) -> ModuleType:
    """reference.py as a module. Folder names start with digits, so `import` cannot reach it."""
    name = f"samples.reference_of_{folder.name}"
    spec = importlib.util.spec_from_file_location(name, folder / "reference.py")
    if spec is None or spec.loader is None:
        raise ValueError(f"{folder.name} has no reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case_inputs(case: Case) -> dict[str, NDArray[np.generic]]:
    """The sample's inputs; of each as much as the case's kernel takes, from the first corner."""
    arrays = load_reference(case.folder).inputs()
    return {name: array[corner(case.args[name])] for name, array in arrays.items()}


def corner(arg: str) -> tuple[slice, ...]:
    """The slices that cut an array to the shape in "float32[128, 512]"."""
    return tuple(slice(0, int(size)) for size in re.findall(r"\d+", arg.partition("[")[2]))


def compile_command(case: Case, neff: Path, *flags: str) -> list[str]:
    """nkic for one case, warnings refused. The kernel of the block needs neither name nor shapes."""
    options: list[str] = []
    if not case.in_block:
        options = ["-k", case.kernel]
        for name, arg in case.args.items():
            options += ["--arg", f"{name}={arg.replace(' ', '')}"]
    source = str(case.folder / "kernel.py")
    return [sys.executable, "-m", "nkic.cli.nkic", source, "-o", str(neff), *STRICT, *options, *flags]


def run_command(neff: Path, inputs: Path, outputs: Path) -> list[str]:
    """nki-run with arrays in, arrays out, and its report as JSON on stdout; nothing passes that a
    device would do otherwise.
    """
    files = ["--inputs", str(inputs), "--outputs", str(outputs)]
    return [sys.executable, "-m", "nkic.cli.nki_run", str(neff), *files, *STRICT, "--json"]


def call(command: Sequence[str]) -> str:
    """A command's stdout."""
    done = subprocess.run(command, cwd=SAMPLES.parent, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"{command[2]} ended with {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def run_sample(case: Case, workdir: Path, *flags: str) -> Result:
    """Compiles the case with these nkic flags and runs it on its inputs, in workdir."""
    neff, given, made = (workdir / name for name in ("kernel.neff", "inputs.npz", "outputs.npz"))
    np.savez(given, **case_inputs(case))  # type: ignore[arg-type]
    call(compile_command(case, neff, *flags))
    report = json.loads(call(run_command(neff, given, made)))
    with np.load(made) as archive:
        # Names with underscores describe the file (dtypes); the others are results, in order.
        outputs = {name: archive[name] for name in archive.files if not name.startswith("__")}
    return Result(outputs, report)


def expected(case: Case) -> tuple[NDArray[np.float64], ...]:
    """What the reference makes of the case's inputs."""
    results: tuple[NDArray[np.float64], ...] = load_reference(case.folder).reference(
        **case_inputs(case)
    )
    return results


def errors(case: Case, outputs: Arrays) -> list[tuple[float, float]]:
    """For every result its largest error, and the largest share of the tolerance that it uses.

    A share above 1 is a failure. Where no error is allowed, any error is infinitely many shares.
    """
    tolerance: dict[str, float] = load_reference(case.folder).TOLERANCE
    wanted = expected(case)
    if [a.shape for a in outputs.values()] != [a.shape for a in wanted]:
        raise ToolError(
            f"results of shapes {[a.shape for a in outputs.values()]}, "
            f"expected {[a.shape for a in wanted]}"
        )
    return [
        _error(to_float64(got), want, tolerance)
        for got, want in zip(outputs.values(), wanted, strict=True)
    ]


def _error(
    got: NDArray[np.float64], want: NDArray[np.float64], tolerance: Mapping[str, float]
) -> tuple[float, float]:
    off = np.where(np.isfinite(got), np.abs(got - want), np.inf)
    allowed = tolerance["atol"] + tolerance["rtol"] * np.abs(want)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(off == 0, 0.0, off / allowed)
    return float(off.max()), float(share.max())


def line(case: Case, workdir: Path, flags: Sequence[str]) -> tuple[str, bool]:
    """The case's line of the table, and whether its results are right."""
    try:
        result = run_sample(case, workdir, *flags)
        found = errors(case, result.outputs)
    except ToolError as failure:
        return f"{case.name:32} FAILED: {failure}", False
    worst = max(error for error, _ in found)
    share = max(share for _, share in found)
    verdict = "ok" if share <= 1 else "WRONG"
    cycles = result.report["cycles"]
    return f"{case.name:32} max error {worst:8.2e}  {cycles:>12,} cycles  {verdict}", share <= 1


def main() -> int:
    """Exit code 0 if every chosen sample is right."""
    parser = argparse.ArgumentParser(prog="python -m samples.run", description=__doc__)
    parser.add_argument("folder", nargs="*", help="samples to run, as 06_matmul; default: all")
    parser.add_argument("--serial", action="store_true", help="compile without overlap")
    options = parser.parse_args()
    names = {folder.name for folder in folders()}
    for name in options.folder:
        if name not in names:
            parser.error(f"no sample {name}; there are: {', '.join(sorted(names))}")

    flags = ["--serial"] if options.serial else []
    all_right = True
    for folder in folders():
        if options.folder and folder.name not in options.folder:
            continue
        for case in cases(folder):
            with tempfile.TemporaryDirectory() as workdir:
                text, right = line(case, Path(workdir), flags)
            print(text, flush=True)
            all_right = all_right and right
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
