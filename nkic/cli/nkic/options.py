"""The options of `nkic`, and their values."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from nkic.base import profiles
from nkic.cli.common.options import Values, after_equals, machine_option, option, whole

LATEST = profiles.LABELS[max(profiles.LABELS)]
EMITS = {
    "tokens": "the tokens of the source",
    "ast": "the syntax tree",
    "resolved": "what the kernel reaches",
    "ir": "the program",
    "lowered": "with access patterns",
    "graph": "the dependences between instructions",
    "allocated": "with addresses",
    "sched": "with streams",
    "asm": "the records as text",
    "neff": "the file that nki-run runs",
    "deps": "the files that were read, as a rule for make",
}
PRINTS = {
    "targets": "the devices: cores, memories, DMA engines",
    "ops": "the instructions: engines, operands, parameters",
    "language": "the names of nki.language, with their parameters",
    "dtypes": "the element types: sizes, ranges, names",
    "passes": "the stages of a compilation, and what each makes",
    "profiles": "the versions of NKI",
    "codes": "the codes of all messages; --explain has a page on each",
    "env": "the environment variables that nkic reads",
    "schema": "the JSON Schema of --message-format json; schema=settings, task and evaluation",
    "config": "every setting of this command line, and its origin",
    "kernels": "the kernels of the file, with their parameters",
    "completion": "a script for the shell: completion=bash, zsh or fish",
}
REPORTS = {
    "resources": "the address and the live range of every tensor on chip: text, FILE.json, or the "
    "picture FILE.svg",
    "remarks": "what the stages did with each line, what they did not do, and why: text or "
    "FILE.json",
    "changes": "what each stage changed in the program, as a diff of its text",
}
TARGETS = {"trn1": "", "trn2": "", "trn3": ""}

# Modes, in which the command does something other than compile to an artifact.
_FILES, _ALWAYS = "check migrate advise kernels", "check migrate advise kernels print"
_kernel = partial(option, group="Kernel", modes="check migrate advise", about="source")
_output, _migrate = partial(option, group="Output"), partial(option, group="Migrate")
_source = partial(option, group="Finding source", modes="check migrate advise", about="source")
_show = partial(option, group="Show")
_many = partial(option, group="Many files", modes="check")


def _kernel_names(incomplete: str) -> Values:
    """Complete -k with the kernels of the file on the command line."""
    from nkic.cli.nkic.prints import kernel_names  # the shell waits: only when it asks

    # Click cannot parse the file: a line that ends in `-k` is incomplete.
    arguments = os.environ.get("COMP_WORDS", "").split()
    files = [argument for argument in arguments if argument.endswith(".py")]
    return {name: "" for path in files for name in kernel_names(path)}


def _versions(incomplete: str) -> Values:
    return dict.fromkeys(profiles.LABELS.values(), "")


@dataclass(frozen=True, eq=False, repr=False)
class CommandLine:
    """The words of the command line, by option name."""

    sources: tuple[str, ...] = option(
        "[KERNEL.py…]",
        "The kernels' files, or folders of such; - is standard input.",
        modes=_FILES,
        reads=whole,
    )
    kernel: str | None = _kernel(
        "-k, --kernel NAME",
        "The kernel to compile; required if the file has more than one.",
        common=True,
        complete=_kernel_names,
    )
    arg: tuple[str, ...] = _kernel(
        "--arg NAME=DTYPE[SIZES]",
        "Type of a tensor argument, such as 'a=bf16[128,512]' or a=128x512xbf16.",
        common=True,
    )
    const: tuple[str, ...] = _kernel(
        "--const NAME=VALUE", "Value of any other argument, such as n=3.", common=True
    )
    like: str | None = _kernel(
        "--like FILE.npz",
        "Take the types of tensor arguments from the arrays in this file.",
        common=True,
    )
    nki: str | None = option(
        "--nki VERSION",
        "NKI version of the source: beta1, beta2, 0.3 … 0.7.  [default: 0.7; beta1 if it imports "
        "neuronxcc]",
        group="Kernel",
        modes=_FILES,
        about="source",
        complete=_versions,
    )
    target: str | None = _kernel(
        "--target NAME",
        "Target: trn1, trn2, trn3. [env: NEURON_PLATFORM_TARGET_OVERRIDE; default: trn2]",
        common=True,
        complete=lambda _: TARGETS,
    )
    grid: str | None = _kernel("--grid SIZES", "Launch grid, such as 4 or 4x2.")
    lnc: int | None = _kernel(
        "--lnc", "Physical cores that run the kernel together.  [default: 1]", between=(1, 2)
    )
    output: str | None = _output(
        "-o, --output PATH",
        "The file to write; - is standard output.  [default: KERNEL.neff in the working directory]",
        modes="migrate advise",
        common=True,
    )
    emit: tuple[str, ...] = _output(
        "--emit KIND[=PATH],…",
        "What to write instead of the artifact.",
        values=EMITS,
        common=True,
        more=True,
    )
    check: bool = _output(
        "--check",
        "Report the errors in the kernel; write nothing.",
        common=True,
        does="writes nothing",
    )
    optimise: int | None = _output(
        "-O LEVEL",
        "0: keep program order on each engine; 1: reorder instructions and reallocate addresses "
        "where that makes it faster; 2: try many orders and addresses.  [default: 1]",
        modes="advise",
        about="schedule",
        between=(0, 2),
    )
    serial: bool = _output(
        "--serial",
        "Keep program order, and run one instruction at a time: slow, for comparison.",
        about="schedule",
    )
    spill: bool = _output(
        "--spill",
        "Spill tiles to HBM if SBUF has no room for all that are live; report which ones, and how "
        "many bytes that moves.",
        modes="check advise",
        about="schedule",
    )
    machine: str | None = machine_option(group="Output", modes="advise", about="schedule")
    embed_source: bool = _output("--embed-source", "Store the source text in the artifact.")
    sign: str | None = _output(
        "--sign KEY",
        "Sign the artifact with this private key of Ed25519 (PEM or OpenSSH), for `nki-run "
        "--require-signature`. Needs the package cryptography.",
        reads=whole,
        more=True,
    )
    prove_source: bool = _output(
        "--prove-source",
        "Have Python itself evaluate the kernel, too, and fail if the program differs. This "
        "executes the file.",
        about="source",
        more=True,
    )
    no_cache: bool = _output(
        "--no-cache",
        "Compile even if nothing has changed since the last compilation, and cache nothing. [env: "
        "NKIC_CACHE=0]",
        modes=_ALWAYS,
        more=True,
    )
    force: bool = _output("--force", "Write binary data even to a terminal.")
    advise: bool = _output(
        "--advise",
        "Follow the advice that needs no judgement: run the kernel on random inputs, change its "
        "source, keep what computes the same in less time, and print a diff; -o FILE writes the "
        "new source.",
        common=True,
        does="writes source, not a program",
    )
    migrate: str | None = _migrate(
        "--migrate [VERSION]",
        "Rewrite the source for a later version of NKI, by default 0.7, and print a diff; -o FILE "
        "writes the new source. Needs the package libcst.",
        alone=LATEST,
        common=True,
        complete=_versions,
        does="writes source, not a program",
    )
    in_place: bool = _migrate(
        "--in-place",
        "Replace the file with the new source.",
        modes="migrate advise",
        needs=("migrate", "advise"),
        excludes={"output": "both say where to write the new source"},
    )
    verify: bool = _migrate(
        "--verify",
        "Compile and run the old and the new source on random inputs, and compare every bit.",
        modes="migrate",
        needs=("migrate",),
    )
    include: tuple[str, ...] = _source("--include PATH", "Search this folder for imported modules.")
    module: tuple[str, ...] = _source(
        "--module NAME=PATH", "Take the imported module NAME from this file or folder."
    )
    stdin_name: str | None = option(
        "--stdin-name PATH",
        "The name that messages give to a kernel read from standard input.",
        group="Finding source",
        modes=_FILES,
        more=True,
    )
    print: str | None = _show(
        "--print WHAT", "Print a table and exit.", values=PRINTS, does="prints a table and exits"
    )
    json: bool = _show(
        "--json",
        "Print what is to be printed as one JSON object.",
        modes="check kernels print",
        more=True,
    )
    report: tuple[str, ...] = _show(
        "--report KIND[=FILE]",
        "Write a report, by default to standard output.",
        values=REPORTS,
        writes=after_equals,
        more=True,
    )
    jobs: int | None = _many(
        "-j, --jobs N",
        "Compile N files at a time.  [default: one for each processor]",
        common=True,
        between=(1, 1024),
    )
    junit: str | None = _many(
        "--junit FILE", "Also write the files' results to FILE, as XML of JUnit.", writes=whole
    )
    baseline: str | None = _many(
        "--baseline FILE.json",
        "Show estimated cycles beside those of an earlier --json; --fail-if 'cycles>+2%' compares.",
        excludes={"check": "a check does not estimate cycles"},
        reads=whole,
    )
    fix: bool = _many(
        "--fix",
        "Change the files as the safe fixes of messages say, and compile them again.",
        common=True,
    )
    watching: bool = _many(
        "--watch",
        "Compile again what changes, until interrupted. Needs the package watchfiles.",
        common=True,
        excludes={"json": "the one prints once, and the other goes on"},
    )
    bug_report: str | None = _many(
        "--bug-report FOLDER",
        "Also write to FOLDER, which is new or empty, what a report of a fault needs: versions, "
        "options, messages; no source.",
        writes=whole,
    )
    with_source: bool = _many(
        "--with-source",
        "With --bug-report, also copy the source that was read.",
        needs=("bug_report",),
    )
    fail_if: str | None = _show(
        "--fail-if RULES",
        "Fail if a figure exceeds a limit: sbuf_peak>90%,sbuf_peak>20MiB,psum_banks>6 (exit code "
        "1; with --baseline also cycles>+2%).",
        more=True,
    )
    time: bool = _show(
        "--time",
        "Report how long the work took on this machine: each stage, and its memory.",
        modes="check",
        more=True,
    )

    @property
    def source(self) -> str | None:
        """The only file, or the first."""
        return self.sources[0] if self.sources else None

    @property
    def is_many(self) -> bool:
        """Whether the files are compiled in processes of their own, and summed up."""
        return self.is_several or not all(
            getattr(self, name) in (None, False) for name in OVER_FILES
        )

    @property
    def is_several(self) -> bool:
        return len(self.sources) > 1 or any(map(os.path.isdir, self.sources))


# What is done with the results of files, not when one is compiled.
OVER_FILES = ("jobs", "junit", "baseline", "fix", "watching", "bug_report", "with_source")
OLD = {
    "--list-kernels": "--print kernels",
    "--remarks": "--report remarks",
    "--print-changed": "--report changes",
    "--time-passes": "--time",
    "--max": "!--fail-if 'sbuf_peak>90%'",
    "--max-errors": "--limit errors={}",
    "--time-limit": "--limit time={}",
    "--crash-dir": "!NKIC_CRASH_DIR in the environment",
}


_judge = partial(option, group="Judging", common=True)


# Options of several of these commands; `given` puts one into its command's group.


def _jobs(given: Callable[..., Any], what: str) -> Any:
    return given("-j, --jobs N", f"Judge N {what} at a time.", default=1, between=(1, 1024))


def _cluster(given: Callable[..., Any]) -> Any:
    text = "Judge on a cluster of Dask; local:N starts one of N workers here."
    return given("--cluster ADDRESS", text)


def _results(given: Callable[..., Any], more: str = "") -> Any:
    text = "Keep evaluations in this database, and take from it what was evaluated before"
    return given("--results FILE", f"{text}{more}.", writes=whole)


def _secret(given: Callable[..., Any]) -> Any:
    text = "Also judge on seeds and shapes that only the holder of this file can know."
    return given("--secret FILE", text, reads=whole)


@dataclass(frozen=True, eq=False, repr=False)
class EvaluateLine:
    """The words of `evaluate`."""

    task: str = option("TASK.toml", "The task's file.", reads=whole)
    candidates: tuple[str, ...] = option(
        "CANDIDATE…",
        "Candidates: kernel files, compiled kernels, or folders of such files.",
        reads=whole,
    )
    jobs: int = _jobs(_judge, "candidates")
    cluster: str | None = _cluster(_judge)
    jsonl: str | None = _judge(
        "--jsonl PATH",
        "Also write every evaluation as a line of JSON; - is standard output.",
        writes=whole,
    )
    time_only: bool = _judge("--time-only", "Compile and estimate the time; run nothing.")
    best: int | None = _judge(
        "--best N",
        "With --time-only, then run and compare the fastest, until N of them are right.",
        needs=("time_only",),
        between=(1, 1_000_000),
    )
    no_families: bool = _judge(
        "--no-families", "Compare on the task's cases alone, not on unusual inputs."
    )
    domain: bool = _judge(
        "--domain", "Find from which size of inputs on a right candidate and its reference part."
    )
    no_sensitivity: bool = _judge(
        "--no-sensitivity", "Do not time each program again under other figures of the clock."
    )
    workloads: str | None = _judge(
        "--workloads FILE",
        "The task is a definition of FlashInfer-Bench, with these workloads (JSON lines); "
        "candidates may be solutions (.json).",
        reads=whole,
    )
    traces: str | None = _judge(
        "--traces PATH",
        "With --workloads, also write its traces: a line for each candidate and workload.",
        needs=("workloads",),
        writes=whole,
    )
    dataset: str | None = _judge(
        "--dataset FOLDER",
        "Also write a new folder in the form of FlashInfer-Bench: definitions, workloads, "
        "solutions and traces.",
    )
    results: str | None = _results(_judge)
    secret: str | None = _secret(_judge)
    host: bool = _judge("--host", "Say in the JSON what each evaluation took here: seconds, MiB.")


_tune = partial(option, group="Tuning", common=True)


@dataclass(frozen=True, eq=False, repr=False)
class TuneLine:
    """The words of `tune`."""

    kernel: str = option("KERNEL.py", "The kernel's file.", reads=whole)
    task: str = option("TASK.toml", "The task's file.", reads=whole)
    vary: tuple[str, ...] = _tune(
        "--vary NAME=VALUES",
        "A named value of the file, or -O, and the values to try: tile=128,256, buffers=1..4, or "
        "tile=128..1024*2.  [default: what `# tune: VALUES` marks]",
    )
    trials: int = _tune(
        "--trials N",
        "Compile at most N points; a larger space is searched, which needs the package optuna.",
        default=200,
        between=(1, 1_000_000),
    )
    best: int = _tune(
        "--best N",
        "Run and compare points until N of the fastest are right.",
        default=8,
        between=(1, 1_000_000),
    )
    seed: int = _tune("--seed N", "Seed of the search.", default=0, between=(0, 2**32 - 1))
    jobs: int = _jobs(_tune, "points")
    cluster: str | None = _cluster(_tune)
    budget: str | None = _tune(
        "--budget TIME", "Begin nothing after this time, such as 90s, 10m or 2h."
    )
    results: str | None = _results(_tune, ": a tuning that was stopped continues")
    write: str | None = _tune(
        "--write FILE.py", "Write the kernel with the best choices.", writes=whole
    )
    plot: str | None = _tune(
        "--plot FILE.svg", "Draw time and SBUF of all points that compile.", writes=whole
    )
    jsonl: str | None = _tune(
        "--jsonl PATH",
        "Also write every point as a line of JSON; - is standard output.",
        writes=whole,
    )


_serve = partial(option, group="Serving", common=True)


@dataclass(frozen=True, eq=False, repr=False)
class ServeLine:
    """The words of `serve`."""

    tasks: tuple[str, ...] = option("TASK.toml…", "The tasks' files.", reads=whole)
    jobs: int = _jobs(_serve, "candidates")
    cluster: str | None = _cluster(_serve)
    host: str = _serve(
        "--host ADDRESS",
        "The address to listen on; another one needs a token.",
        default="127.0.0.1",
    )
    port: int = _serve("--port N", "The port to listen on.", default=8017, between=(1, 65535))
    token: str | None = _serve(
        "--token FILE",
        "Whoever asks must have a token of this file, one a line; NKIC_TOKEN is another way.",
        reads=whole,
    )
    queue: int = _serve(
        "--queue N",
        "Take N candidates that are not done, then answer 429.",
        default=1024,
        between=(1, 1_000_000),
    )
    grace: int = _serve(
        "--grace SECONDS",
        "When told to end, finish what runs for so long.",
        default=30,
        between=(0, 3600),
    )
    results: str | None = _results(_serve)
    secret: str | None = _secret(_serve)


@dataclass(frozen=True, eq=False, repr=False)
class LspLine:
    """The words of `lsp`."""

    stdio: bool = option("--stdio", "Does nothing: some editors always give it.", group="Editor")


def _here(now: str) -> str:
    return f"it is `{now}` here"


# What users of other compilers and of test runners type, and what it is here.
ELSEWHERE = {
    **dict.fromkeys(("-c", "--dry-run", "--check-only", "-n"), _here("--check")),
    **dict.fromkeys(("-t", "-m", "--arch"), _here("--target NAME")),
    **dict.fromkeys(("-f", "-y"), _here("--force")),
    **dict.fromkeys(("-C", "--out-dir", "--outdir"), _here("-o FOLDER")),
    **dict.fromkeys(("--release", "--optimize", "--opt-level"), _here("-O 2")),
    **{"-I": _here("--include PATH"), "-S": _here("--emit asm=-"), "-E": _here("--emit ir=-")},
    **{"-V": _here("--version"), "-g": _here("--embed-source"), "--std": _here("--nki VERSION")},
    **{"--error-format": _here("--message-format NAME"), "--list": _here("--print kernels")},
    **dict.fromkeys(("compile", "build"), "name the file alone: `nkic KERNEL.py`"),
    "check": "it is an option: `nkic KERNEL.py --check`",
    "run": "another command runs what this one writes: `nki-run KERNEL.neff`",
    "test": "it is `nkic evaluate TASK.toml KERNEL.py`, or the plugin of pytest",
    "help": "write `nkic --help`, or `nkic COMMAND --help`",
}
# What a task says for all of its candidates, so that they are compared.
IN_TASK = {
    "-O": "the task says it: `optimise = 2`",
    "--target": 'the task says it: `target = "trn2"`',
    "--nki": 'the task says it: `nki = "0.7"`',
    **dict.fromkeys(("--arg", "--const", "--grid", "--lnc"), "the task's [[case]] says it"),
    **dict.fromkeys(("--rtol", "--atol"), "the task's [outputs] says it"),
    **dict.fromkeys(("-o", "--output"), _here("--jsonl FILE")),
}
