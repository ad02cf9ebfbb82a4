"""The options of `nkic`, and their values."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

import click

from nkic.base import profiles
from nkic.base.files import STANDARD
from nkic.cli.common.help import adding, option

LATEST = profiles.LABELS[max(profiles.LABELS)]


@dataclass(frozen=True)
class CommandLine:
    """The values of the command line, by option name."""

    source: str | None
    output: str | None
    kernel: str | None
    arg: tuple[str, ...]
    const: tuple[str, ...]
    like: str | None
    nki: str | None
    target: str | None
    grid: str | None
    lnc: int | None
    include: tuple[str, ...]
    module: tuple[str, ...]
    stdin_name: str | None
    emit: tuple[str, ...]
    optimise: int | None
    serial: bool
    spill: bool
    machine: str | None
    check: bool
    list_kernels: bool
    embed_source: bool
    force: bool
    no_cache: bool
    migrate: str | None
    in_place: bool
    verify: bool
    print: str | None
    json: bool
    time_passes: bool
    report: tuple[str, ...]
    max: tuple[str, ...]
    remarks: str | None
    print_changed: bool
    max_errors: int
    time_limit: float


def _kernel_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete -k with the kernels of the file on the command line."""
    from nkic.cli.nkic.prints import kernel_names  # the shell waits: only when it asks

    # Click cannot parse the file: a line that ends in `-k` is incomplete.
    arguments = os.environ.get("COMP_WORDS", "").split()
    files = [argument for argument in arguments if argument.endswith(".py")]
    return [name for path in files for name in kernel_names(path) if name.startswith(incomplete)]


_kernel, _output = partial(option, "Kernel"), partial(option, "Output")
_migrate, _source = partial(option, "Migrate"), partial(option, "Finding source")
_show = partial(option, "Show")
_OPTIONS = (
    click.argument("source", metavar="[KERNEL.py]", required=False),
    _kernel(
        "-k",
        "--kernel",
        metavar="NAME",
        common=True,
        shell_complete=_kernel_names,
        help="The kernel to compile; required if the file has more than one.",
    ),
    _kernel(
        "--arg",
        metavar="NAME=DTYPE[SIZES]",
        multiple=True,
        common=True,
        help="Type of a tensor argument, such as a=bf16[128,512] or a=128x512xbf16.",
    ),
    _kernel(
        "--const",
        metavar="NAME=VALUE",
        multiple=True,
        common=True,
        help="Value of any other argument, such as n=3.",
    ),
    _kernel(
        "--like",
        metavar="FILE.npz",
        common=True,
        help="Take the types of tensor arguments from the arrays in this file.",
    ),
    _kernel(
        "--nki",
        metavar="VERSION",
        help="NKI version of the source: beta1, beta2, 0.3 … 0.7.  "
        "[default: 0.7; beta1 if it imports neuronxcc]",
    ),
    _kernel(
        "--target",
        metavar="NAME",
        common=True,
        help="Target: trn1, trn2, trn3. [env: NEURON_PLATFORM_TARGET_OVERRIDE; default: trn2]",
    ),
    _kernel("--grid", metavar="SIZES", help="Launch grid, such as 4 or 4x2."),
    _kernel(
        "--lnc",
        type=click.IntRange(1, 2),
        help="Physical cores that run the kernel together.  [default: 1]",
    ),
    _output(
        "-o",
        "--output",
        metavar="PATH",
        common=True,
        help="The file to write; - is standard output.  "
        "[default: KERNEL.neff in the working directory]",
    ),
    _output(
        "--emit",
        metavar="KIND[=PATH],…",
        multiple=True,
        common=True,
        help="What to write instead of the artifact: tokens, ast, resolved, ir, lowered, graph, "
        "allocated, sched, asm, neff, deps.",
    ),
    _output(
        "--check", is_flag=True, common=True, help="Report the errors in the kernel; write nothing."
    ),
    _output(
        "-O",
        "optimise",
        type=click.IntRange(0, 2),
        metavar="LEVEL",
        help="0: keep program order on each engine; 1: reorder instructions and reallocate "
        "addresses where that makes it faster; 2: try many orders and addresses.  [default: 1]",
    ),
    _output(
        "--serial",
        is_flag=True,
        help="Keep program order, and run one instruction at a time: slow, for comparison.",
    ),
    _output(
        "--spill",
        is_flag=True,
        help="Spill tiles to HBM if SBUF has no room for all that are live; report which ones, "
        "and how many bytes that moves.",
    ),
    _output(
        "--machine",
        metavar="FILE.toml",
        help="Schedule with timing figures other than the target's own; `nki-run --print machine` "
        "lists them.",
    ),
    _output("--embed-source", is_flag=True, help="Store the source text in the artifact."),
    _output(
        "--no-cache",
        is_flag=True,
        help="Compile even if nothing has changed since the last compilation, and cache nothing. "
        "[env: NKIC_CACHE=0]",
    ),
    _output("--force", is_flag=True, help="Write binary data even to a terminal."),
    _migrate(
        "--migrate",
        metavar="[VERSION]",
        is_flag=False,
        flag_value=LATEST,
        common=True,
        help="Rewrite the source for a later version of NKI, by default 0.7, and print a diff; "
        "-o FILE writes the new source. Needs libcst.",
    ),
    _migrate("--in-place", is_flag=True, help="Replace the file with the new source."),
    _migrate(
        "--verify",
        is_flag=True,
        help="Compile and run the old and the new source on random inputs, and compare every bit.",
    ),
    _source(
        "--include", metavar="PATH", multiple=True, help="Search this folder for imported modules."
    ),
    _source(
        "--module",
        metavar="NAME=PATH",
        multiple=True,
        help="Take the imported module NAME from this file or folder.",
    ),
    _source(
        "--stdin-name",
        metavar="PATH",
        help="The name that messages give to a kernel read from standard input.",
    ),
    _show("--list-kernels", is_flag=True, help="Print the kernels of the file and exit."),
    _show(
        "--print",
        metavar="WHAT",
        help="Print a table and exit: targets, ops, language, dtypes, passes, profiles, codes, "
        "env, schema, completion=SHELL; config: every setting of this command line and its "
        "origin.",
    ),
    _show(
        "--json",
        is_flag=True,
        help="Print the table of --print, or the kernels of --list-kernels, as JSON.",
    ),
    _show(
        "--report",
        metavar="resources[=FILE]",
        multiple=True,
        help="Report the address and the live range of every tensor on chip, as text, as "
        "FILE.json, or as the picture FILE.svg.",
    ),
    _show(
        "--max",
        metavar="MEMORY=LIMIT",
        multiple=True,
        help="Exit with code 1 if the kernel uses more: sbuf=90%, sbuf=20MiB, psum=6 (banks).",
    ),
    _show(
        "--remarks",
        metavar="[=FILE]",
        is_flag=False,
        flag_value=STANDARD,
        help="Report what the stages did with each line of the kernel, what they did not do, and "
        "why, as text or as FILE.json.",
    ),
    _show(
        "--print-changed",
        is_flag=True,
        help="Print what each stage changed in the program, as a diff of its text.",
    ),
    _show("--time-passes", is_flag=True, help="Print each stage's time and memory."),
    _show(
        "--max-errors",
        type=click.IntRange(1),
        default=20,
        show_default=True,
        help="Stop after this many errors.",
    ),
    _show(
        "--time-limit",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        default=900.0,
        show_default=True,
        help="Give up after this many seconds.",
    ),
)

own_options = adding(_OPTIONS)
