"""Compile, run and check the samples: `python -m samples.run [FOLDER ...]`, one line per kernel.

It calls the two commands as a user would. tests/test_samples.py uses these functions.
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
    """One kernel of one sample, with the arguments to compile it for."""

    folder: Path
    kernel: str
    args: Mapping[str, str]  # "float32[128, 512]" by parameter
    in_block: bool  # whether the file's block names the kernel, so that it needs no options

    @property
    def name(self) -> str:
        return self.folder.name if self.in_block else f"{self.folder.name}:{self.kernel}"


class Result(NamedTuple):
    """The outputs and the report of a run."""

    outputs: dict[str, NDArray[np.generic]]
    report: dict[str, Any]


class ToolError(Exception):
    """A command with a nonzero exit code, and its error output."""


def folders() -> list[Path]:
    """Return the folder of every sample, in teaching order."""
    return sorted(path.parent for path in SAMPLES.glob("*/kernel.py"))


def cases(folder: Path) -> list[Case]:
    """Return the kernel of the file's block, then the kernels in KERNELS of reference.py."""
    block = read_block(folder)
    args: dict[str, str] = block["args"]
    others: dict[str, dict[str, str]] = getattr(load_reference(folder), "KERNELS", {})
    variants = [Case(folder, kernel, {**args, **own}, False) for kernel, own in others.items()]
    return [Case(folder, block["kernel"], args, True), *variants]


def read_block(folder: Path) -> dict[str, Any]:
    """Parse the `# /// nkic` block of the sample's kernel file, TOML with a `# ` on each line."""
    text = (folder / "kernel.py").read_text(encoding="utf-8")
    found = re.search(r"(?ms)^# /// nkic$\n(.*?)^# ///$", text)
    if found is None:
        raise ValueError(f"{folder.name}/kernel.py has no nkic block")
    return tomllib.loads(re.sub(r"(?m)^# ?", "", found[1]))


def load_reference(folder: Path) -> ModuleType:
    """Load reference.py as a module. Folder names start with digits, so `import` cannot do it."""
    name = f"samples.reference_of_{folder.name}"
    spec = importlib.util.spec_from_file_location(name, folder / "reference.py")
    if spec is None or spec.loader is None:
        raise ValueError(f"{folder.name} has no reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case_inputs(case: Case) -> dict[str, NDArray[np.generic]]:
    """Return the sample's inputs, each cut from its first element to the shape of the argument."""
    arrays = load_reference(case.folder).inputs()
    return {name: array[corner(case.args[name])] for name, array in arrays.items()}


def corner(arg: str) -> tuple[slice, ...]:
    """Return the slices that cut an array to the shape in "float32[128, 512]"."""
    return tuple(slice(0, int(size)) for size in re.findall(r"\d+", arg.partition("[")[2]))


def compile_command(case: Case, neff: Path, *flags: str) -> list[str]:
    """Return the nkic command for a case. The kernel of the block needs neither name nor shapes."""
    options: list[str] = []
    if not case.in_block:
        options = ["-k", case.kernel]
        for name, arg in case.args.items():
            options += ["--arg", f"{name}={arg.replace(' ', '')}"]
    source = str(case.folder / "kernel.py")
    call = [sys.executable, "-m", "nkic.cli.nkic", source, "-o", str(neff)]
    return [*call, *STRICT, *options, *flags]


def run_command(neff: Path, inputs: Path, outputs: Path) -> list[str]:
    """Return the nki-run command: arrays in, arrays out, the report as JSON on stdout, and an error
    for each known difference from a device.
    """
    files = ["--inputs", str(inputs), "--outputs", str(outputs)]
    return [sys.executable, "-m", "nkic.cli.nki_run", str(neff), *files, *STRICT, "--json"]


def call(command: Sequence[str]) -> str:
    """Run a command and return its stdout. Raises ToolError if it fails."""
    done = subprocess.run(command, cwd=SAMPLES.parent, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"{command[2]} ended with {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def run_sample(case: Case, workdir: Path, *flags: str) -> Result:
    """Compile the case with these nkic flags and run it on its inputs, in workdir."""
    neff, given, made = (workdir / name for name in ("kernel.neff", "inputs.npz", "outputs.npz"))
    np.savez(given, **case_inputs(case))  # type: ignore[arg-type]
    call(compile_command(case, neff, *flags))
    report = json.loads(call(run_command(neff, given, made)))
    with np.load(made) as archive:
        # Names that begin with underscores describe the file (dtypes); the others are the results.
        outputs = {name: archive[name] for name in archive.files if not name.startswith("__")}
    return Result(outputs, report)


def expected(case: Case) -> tuple[NDArray[np.float64], ...]:
    """Return the reference's results for the case's inputs."""
    results: tuple[NDArray[np.float64], ...] = load_reference(case.folder).reference(
        **case_inputs(case)
    )
    return results


def errors(case: Case, outputs: Arrays) -> list[tuple[float, float]]:
    """Return, for every result, its largest error and that error relative to the tolerance.

    A relative error above 1 is a failure. If no error is allowed, any error is infinite.
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
    """Return the case's line of the table, and whether its results are right."""
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
    """Run the chosen samples; return the exit code 0 if all are right."""
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
