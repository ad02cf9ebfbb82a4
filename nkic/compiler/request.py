"""From the user's settings to a request: options, inline block, environment, project, example data.

Sources: the announcement of the changes to NKI's specialization (Neuron 2.33), for
NKI_COMPILER_FRONTEND; "Using Logical NeuronCores (LNC) with NKI" and the page of NCC_EVRF066.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from nkic.base import files, profiles
from nkic.base.diagnostics import CompileFailed, UsageFailed, bad_argument
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.machine import targets
from nkic.machine.targets import Target
from nkic.source.bindings import Kernel
from nkic.source.parse import parse
from nkic.source.resolve import list_kernels
from nkic.source.scopes import parameters
from nkic.specialise.inline import parse_arg, parse_const, parse_grid, read_block, read_settings
from nkic.specialise.request import Request, RequestOptions, TensorType, combine

# ---- The NKI version of a file, inferred from its imports ---------------------------------------

_OLD, _TODAY = "neuronxcc", "nki"
_OLD_IMPORT = re.compile(rf"(?m)^[ \t]*(?:from|import)[ \t]+{_OLD}\b")
_IMPORT = re.compile(rf"(?m)^[ \t]*(?:from|import)[ \t]+{_TODAY}\b(?!\.language\.constants)")
_IMPORTS = re.compile(
    r"(?m)^[ \t]*(?:import[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?"
    r"|from[ \t]+([\w.]+)[ \t]+import[ \t]+([^\n#]+))"
)
_DECORATED = re.compile(r"(?m)^((?:@.*\n(?:[ \t)].*\n)*)+)def[ \t]+(\w+)")


def profile_of(source: SourceFile | None, kernel: str | None = None) -> Profile:
    """Return Beta 1 for a file that imports `neuronxcc` and not `nki`, else the default version.

    If it imports both, as files for either version do, the decorators of the kernel decide,
    provided they come from one package only.
    """
    text = source.text if source is not None else ""
    if _OLD not in text or not _OLD_IMPORT.search(text):
        return profiles.DEFAULT
    if not _IMPORT.search(text):
        return Profile.BETA1
    bound = list(_bound(text))
    used = set(_decorators(text, kernel))
    roots = {root for root, name in bound if name in used}
    return Profile.BETA1 if roots == {_OLD} else profiles.DEFAULT


def _bound(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, each with its root package."""
    for whole, renamed, package, members in _IMPORTS.findall(text):
        root = (whole or package).partition(".")[0]
        for member in members.strip(" ()\\").split(",") if package else ():
            yield root, member.split()[-1] if member.split() else ""
        if whole:
            yield root, renamed or root


def _decorators(text: str, kernel: str | None) -> Iterator[str]:
    """Yield the first name of each decorator of the kernel, or without it of all functions."""
    decorated = _DECORATED.findall(text)
    of_kernel = [lines for lines, name in decorated if name == kernel]
    for lines in of_kernel or [lines for lines, _ in decorated]:
        yield from re.findall(r"(?m)^@[ \t]*(\w+)", lines)


# --------------------------------------------------------------------------------------------------

TARGET_VARIABLE = "NEURON_PLATFORM_TARGET_OVERRIDE"
NKI_VARIABLE = "NKIC_NKI"
FRONTEND_VARIABLE = "NKI_COMPILER_FRONTEND"
FORMER_FRONTEND = ("custom", Profile.NKI_0_6)  # the front end of 0.6, which 0.7 still offers
LNC_VARIABLE = "NEURON_LOGICAL_NC_CONFIG"
COMPILER_FLAGS = "NEURON_CC_FLAGS"  # options of the compiler of whole models
NO_DGE = "--disable-dge"


def request_for(
    source: SourceFile | None,
    explicit: RequestOptions,
    environ: Mapping[str, str],
    file: SourceFile | None = None,
) -> Request:
    """Return the request.

    Precedence, highest first: the values in `explicit`, its `like`, the file's inline block and
    `[tool.nkic.kernels]` of the project (both absent without `source`), the environment,
    `[tool.nkic]`. `file` has the imports from which to infer the NKI version, if that is not
    `source`. Raises `UsageFailed`, also for an unusable block.
    """
    block = stated(source, explicit.kernel)
    inferred = profile_of(file or source, explicit.kernel or block.kernel)
    request = combine(explicit, _with_environment(block, explicit, environ), inferred)
    if request.lnc > request.target.max_cores:
        target = request.target
        text = f"--lnc {request.lnc}: a kernel on {target.name} runs on {target.max_cores} core"
        raise bad_argument(text, "--target trn2 has 2 cores for a kernel")
    _check_lnc(request, environ)
    return request


def _check_lnc(request: Request, environ: Mapping[str, str]) -> None:
    """Check that the kernel runs on as many cores as the model around it (0.7; NCC_EVRF066)."""
    flag = compiler_flag("--lnc", environ)
    cores, origin = (_cores(flag, COMPILER_FLAGS), COMPILER_FLAGS) if flag else _lnc(environ)
    if cores in (None, request.lnc) or request.profile < Profile.NKI_0_7:
        return
    text = f"the kernel is compiled for LNC {request.lnc} (cores that run it together), {origin} "
    help = f"write kernel[{cores}](…) or --lnc {cores}, or change {origin}"
    raise bad_argument(f"{text}says {cores}", help)


def _lnc(environ: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the number of cores that the environment sets for all kernels, and its origin."""
    setting = environ.get(LNC_VARIABLE)
    return (_cores(setting, LNC_VARIABLE) if setting else None), LNC_VARIABLE


def _cores(text: str, origin: str) -> int:
    if text not in ("1", "2"):
        raise bad_argument(f"{origin}: a kernel runs on 1 or 2 cores, not on `{text}`")
    return int(text)


def compiler_flag(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the value of an option in NEURON_CC_FLAGS."""
    words = environ.get(COMPILER_FLAGS, "").replace("=", " ").split()
    return words[words.index(name) + 1] if name in words[:-1] else None


def _with_environment(
    block: RequestOptions, options: RequestOptions, environ: Mapping[str, str]
) -> RequestOptions:
    """Add the environment's and the project's settings to those that the block leaves open."""
    name = environ.get(TARGET_VARIABLE)
    if block.target is None and name:
        block = replace(block, target=find_target(name, TARGET_VARIABLE))
    if block.profile is None and options.profile is None:
        block = replace(block, profile=_version(environ)[0])
    if (options.lnc, options.grid, block.lnc, block.grid) == (None, None, None, None):
        block = replace(block, lnc=_lnc(environ)[0])
    if block.dge is None and NO_DGE in environ.get(COMPILER_FLAGS, "").split():
        block = replace(block, dge=False)
    return block


def _version(environ: Mapping[str, str]) -> tuple[Profile | None, str]:
    """Return the NKI version of environment or project, and its origin. Raises `UsageFailed`."""
    if label := environ.get(NKI_VARIABLE):
        return find_profile(label, NKI_VARIABLE), NKI_VARIABLE
    frontend, profile = FORMER_FRONTEND
    if environ.get(FRONTEND_VARIABLE) == frontend:
        return profile, FRONTEND_VARIABLE
    if (configured := files.setting("nki")) is not None:
        origin = files.origin("nki")
        return find_profile(str(configured), origin), origin
    return None, DEFAULT


def block_of(source: SourceFile | None) -> RequestOptions:
    """Return the settings of the file's inline block. Raises `UsageFailed` for errors in it."""
    try:
        return read_block(source) if source is not None else RequestOptions()
    except CompileFailed as failed:
        raise UsageFailed(failed.diagnostics) from failed


def stated(source: SourceFile | None, kernel: str | None) -> RequestOptions:
    """Return what a file's block and then its project say of a kernel, or of the only one.

    A block that names no kernel gives each of several the types that it has parameters for.
    """
    block = block_of(source)
    project = of_project(source, kernel or block.kernel)
    if kernel is not None and block.kernel is None and (block.args or block.consts):
        kernels = _kernels(source)
        own = next((k.node for k in kernels if k.name == kernel), None)
        if own is not None and len(kernels) > 1:
            names = {p.name for p in parameters(own.args)}
            args = {name: kind for name, kind in block.args.items() if name in names}
            consts = {n: v for n, v in block.consts.items() if n.partition(".")[0] in names}
            block = replace(block, args=args, consts=consts)
    is_of_another = kernel is not None and block.kernel not in (None, kernel)
    first, then = (project, block) if is_of_another else (block, project)
    return replace(
        block,
        kernel=block.kernel or project.kernel,
        target=first.target or then.target,
        profile=first.profile or then.profile,
        grid=then.grid if first.grid is None else first.grid,
        lnc=first.lnc or then.lnc,
        args={**{n: t for n, t in then.args.items() if n not in first.consts}, **first.args},
        consts={**{n: v for n, v in then.consts.items() if n not in first.args}, **first.consts},
    )


def of_project(source: SourceFile | None, kernel: str | None) -> RequestOptions:
    """Return `[tool.nkic.kernels]` for a kernel, or for the only one. Raises `UsageFailed`."""
    if source is None or not (tables := files.setting(files.KERNELS)):
        return RequestOptions()
    known = {kernel} if kernel else {name for _, name in _DECORATED.findall(source.text)}
    if len(found := known & tables.keys()) != 1:
        return RequestOptions()
    (name,) = found
    where = f"[tool.nkic.kernels.{name}] in {files.FILE}"
    return replace(read_settings(tables[name], where), kernel=name)


def typed_kernels(
    source: SourceFile, explicit: RequestOptions, environ: Mapping[str, str]
) -> list[str]:
    """Return the kernels of a file whose arguments all have types, or values.

    Of a file whose block names a kernel, these are that one and those with settings of the project.
    Raises `CompileFailed` or `UsageFailed`.
    """
    named, found = block_of(source).kernel, []
    for kernel in _kernels(source):
        own = replace(explicit, kernel=kernel.name)
        if named not in (None, kernel.name) and not of_project(source, kernel.name).args:
            continue
        request = request_for(source, own, environ)
        a = kernel.node.args
        plain = [p.name for p in (*a.posonlyargs, *a.args)]
        needed = plain[: len(plain) - len(a.defaults)]
        pairs = zip(a.kwonlyargs, a.kw_defaults, strict=True)
        needed += [p.name for p, default in pairs if default is None]
        given = {*request.args, *request.like, *(n.partition(".")[0] for n in request.consts)}
        if given.issuperset(needed):
            found.append(kernel.name)
    return found


def _kernels(source: SourceFile | None) -> Sequence[Kernel]:
    try:
        return list_kernels(source, parse) if source is not None else ()
    except CompileFailed:  # the compiler reports it
        return ()


def request_options(given: Mapping[str, Any], origin: str = "", **more: Any) -> RequestOptions:
    """Return a user's settings of a kernel, of which `given` may hold others, too.

    `origin` is what stands before their names in messages. Raises `UsageFailed`.
    """
    target, nki = given.get("target"), given.get("nki")
    return RequestOptions(
        kernel=given.get("kernel"),
        target=find_target(target, f"{origin}target") if target is not None else None,
        profile=find_profile(nki, f"{origin}nki") if nki is not None else None,
        lnc=given.get("lnc"),
        **more,
    )


def parse_options(
    *,
    args: Sequence[str] = (),
    consts: Sequence[str] = (),
    grid: str | None = None,
    like: str | None = None,
    **given: Any,
) -> RequestOptions:
    """Return the settings of a command line; `like` is the path of a file. Raises `UsageFailed`."""
    types, values = _pairs(args, parse_arg, "--arg"), _pairs(consts, parse_const, "--const")
    if twice := sorted(types.keys() & values.keys()):
        raise bad_argument(f"`{twice[0]}` is given both by --arg and by --const")
    options = request_options(given, "--", args=types, consts=values)
    if grid is not None:
        options = replace(options, grid=parse_grid(grid, "--grid"))
    return options if like is None else replace(options, like=_read(like))


def _read(path: str) -> Mapping[str, TensorType]:
    from nkic.compiler.like import read_like  # NumPy is slow to import, and rarely needed

    return read_like(path)


def find_target(name: str, origin: str) -> Target:
    """Return the target called `name`; `origin` is who names it. Raises `UsageFailed`."""
    target = targets.find(name)
    if target is None:
        # No nearest name is suggested: a future target's name is close to every known one.
        names = ", ".join((*targets.TARGETS, *targets.ALIASES))
        raise bad_argument(f"{origin}: there is no target `{name}`", f"known are: {names}")
    return target


def find_profile(label: str, origin: str) -> Profile:
    """Return the NKI version called `label`. Raises `UsageFailed`."""
    profile = profiles.find(label)
    if profile is None:
        raise bad_argument(f"{origin}: there is no version `{label}` of NKI", profiles.KNOWN)
    return profile


Value = TypeVar("Value")


def _pairs(
    texts: Sequence[str], read: Callable[[str], tuple[str, Value]], option: str
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for text in texts:
        name, value = read(text)
        if name in values:
            raise bad_argument(f"{option}: `{name}` is given twice")
        values[name] = value
    return values


# ---- settings and their origins
# --------------------------------------------------------------------

COMMAND_LINE, DEFAULT = "command line", "default"
Setting = tuple[str, str, str]
"""A setting's name, value and origin."""


def settings(
    source: SourceFile | None, command: RequestOptions, environ: Mapping[str, str]
) -> Iterator[Setting]:
    """Yield the settings that `request_for` finds; without `source` there is no inline block."""
    request = request_for(source, command, environ)
    block = stated(source, command.kernel)
    block_origin = f"inline block of {source.path}" if source is not None else ""
    values = {
        "kernel": request.kernel or "the file's only one",
        "target": request.target.name,
        "profile": profiles.LABELS[request.profile],
        "grid": "x".join(map(str, request.grid)) or "none",
        "lnc": str(request.lnc),
    }
    for name, value in values.items():
        if getattr(command, name) is not None:
            origin = COMMAND_LINE
        elif getattr(block, name) is not None:
            origin = block_origin
        else:
            origin = _environment_origin(name, request, environ)
        yield "nki" if name == "profile" else name, value, origin
    for name, kind in {**request.like, **request.args}.items():
        yield f"argument {name}", str(kind), kind.origin
    for name, constant in request.consts.items():
        yield (
            f"argument {name}",
            repr(constant),
            COMMAND_LINE if name in command.consts else block_origin,
        )


def _environment_origin(name: str, request: Request, environ: Mapping[str, str]) -> str:
    """Return the variable or project file that gives a setting, else DEFAULT."""
    if name == "target" and environ.get(TARGET_VARIABLE):
        return TARGET_VARIABLE
    if name == "profile":
        return _version(environ)[1]
    if name == "lnc" and not request.grid and _lnc(environ)[0]:
        return LNC_VARIABLE
    return DEFAULT
