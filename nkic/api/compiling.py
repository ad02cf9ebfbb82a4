"""Compile kernels: files, source texts and live functions, some of which Python evaluates."""

from __future__ import annotations

import enum
import os
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from operator import index
from pathlib import Path
from typing import Annotated, Any, SupportsIndex, Unpack

import numpy as np

from nkic.api import describe, errors, functions, options
from nkic.api.arrays import Array, Names, array_of, type_of
from nkic.api.artifact import Artifact
from nkic.api.describe import Describer, shown
from nkic.api.errors import CompileError, no_sources, raising, refuse
from nkic.api.loading import LiveLoader
from nkic.api.options import ByName, Compiling, Count, FilePath, Values, is_path
from nkic.base.cache import Probes, here, stamp
from nkic.base.diagnostics import NkicError
from nkic.base.files import confined, is_file, is_folder
from nkic.base.levels import Settings
from nkic.base.source import SourceFile
from nkic.compiler import pipeline
from nkic.compiler.compiled import DEFAULT, LEVELS, Compiled, CompileOptions
from nkic.compiler.loader import Loader, home_of
from nkic.compiler.pipeline import IS_DESCRIBED, IS_SCHEDULED, PRINTED, SCHEDULED
from nkic.compiler.request import block_of, request_for, request_options
from nkic.language.enums import Operator
from nkic.language.hosted import plain
from nkic.language.trace import active
from nkic.machine import dtypes
from nkic.program.text import program_text
from nkic.specialise.inline import parse_type
from nkic.specialise.native import KEEP, Copier, LiveKernel
from nkic.specialise.request import Request, RequestOptions, RuntimeValue, TensorType

_TENSOR = object()


@dataclass
class Parts:
    """The arrays inside the arguments of one call, by input name."""

    types: dict[str, TensorType] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    def find(self, arguments: Mapping[str, Any]) -> dict[str, RuntimeValue]:
        copier = Copier(self._find_array, enters)
        for name, value in arguments.items():
            copier.value(value, name)
        return {name: RuntimeValue(value, shown(value)) for name, value in arguments.items()}

    def _find_array(self, value: Any, path: str) -> Any:
        array = array_of(value)
        if array is None:
            return KEEP
        if self.names.name(value, array, path) == path:
            self.types[path], self.arrays[path] = type_of(array, path), array
        return _TENSOR

    def replace(self, value: Any, tensors: Mapping[str, Any]) -> Any:
        """Return what the kernel receives for a value: a tensor, a dtype, a number, or the value
        itself.
        """
        name = self.names.of(value)
        if name is not None:
            return tensors[name]
        if isinstance(value, np.generic):
            return value.item()
        dtype = functions.named_dtype(value)
        if dtype is not None:
            return dtypes.find(dtype.name) or KEEP
        nkic_value = plain(value)
        if type(nkic_value) is Operator:
            return value  # the same object that the kernel's Python code reads
        return nkic_value if nkic_value is not value else _of_nki(value)


def _of_nki(value: Any) -> Any:
    """Return nkic's object for a value of any package called nki, looked up by name."""
    is_member = isinstance(value, enum.Enum)
    named = functions.named_nki(type(value) if is_member else value)
    space = active().spaces.get(named.module) if named is not None else None
    if named is None or space is None or "." in named.name:
        return KEEP
    counterpart = getattr(space, named.name, KEEP)
    return getattr(counterpart, value.name, KEEP) if is_member else counterpart


def enters(kind: type) -> bool:
    """Whether to search objects of this class: only those of the user's own."""
    return not functions.is_others(kind.__module__)


def live_kernel(
    function: types.FunctionType, arguments: Mapping[str, Any], parts: Parts, loader: LiveLoader
) -> LiveKernel:
    def source_of(code: types.CodeType, space: Mapping[str, Any]) -> SourceFile | None:
        module = str(space.get("__name__", ""))
        if functions.is_host(module) or functions.module_of_nki(module):
            return None
        try:
            return loader.module(functions.module_of_code(module, code))
        except NkicError:  # an unreadable file has no places
            return None

    return LiveKernel(function, arguments, parts.replace, enters, source_of)


def key_of(tracing: pipeline.Tracing, options: CompileOptions) -> str:
    traced, report = tracing
    files = sorted((path, file.text) for path, file in traced.sources.items())
    diagnostics = tuple(map(repr, report.all))
    identity = (
        stamp(),
        here(),
        program_text(traced.program),
        files,
        traced.program.returned,
        diagnostics,
    )
    return sha256(repr((*identity, options.key)).encode("utf-8", "surrogatepass")).hexdigest()


# The specialiser changes the interpreter's limits and keeps process-wide tables. Python code runs
# in one thread at a time, so compiling serially loses nothing.
_COMPILING = threading.RLock()

Source = str | os.PathLike[str] | SourceFile
Kernel = Annotated[
    Any,
    Values(
        "the path of a file, a SourceFile or a function",
        lambda value: is_path(value) or not isinstance(value, str | os.PathLike),
    ),
]


def compile_options(call_options: Compiling) -> CompileOptions:
    level = call_options.get("optimise", DEFAULT.level)
    if level not in LEVELS:
        refuse(f"`optimise` is {level!r}; it must be 0, 1 or 2", "leave it out for 1")
    levels = call_options.get("levels") or Settings()
    machine = options.machine_of(call_options.get("machine"))
    serial = call_options.get("serial", False)
    spill = call_options.get("spill", False)
    return CompileOptions(
        serial,
        levels=levels,
        level=level,
        machine=machine,
        spill=spill,
        limits=options.limits_of(call_options.get("limits")),
        keep=frozenset(),
    )


@dataclass(frozen=True)
class Compilation:
    """A compilation that is ready to run."""

    request: Request
    loader: Loader | LiveLoader
    options: CompileOptions

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Turn the errors of the stages into `CompileError`, with a note of the argument types."""
        try:
            with raising(CompileError, self.loader.source, self.loader.relocated):
                yield
        except CompileError as error:
            types = ", ".join(f"{name}: {kind}" for name, kind in self.request.args.items())
            if types:
                error.add_note(f"compiled for {types}")
            raise

    def warn(self, artifact: Artifact) -> None:
        errors.warn(artifact.warnings, _paths(self.loader))


@dataclass(frozen=True)
class SourceCompilation(Compilation):
    """The compilation of a file, or of a function that is evaluated from its file. Either reads
    data where the commands do (docs/security.md).
    """

    source: SourceFile

    @cached_property
    def folders(self) -> list[Path]:
        if isinstance(self.loader, Loader):
            return self.loader.folders
        file = Path(self.loader.paths[self.source.path])
        beside = file.parent if is_file(file) else Path()  # a cell is in no folder
        return [home_of(beside, Probes()), *self.loader.include]

    def compile(self) -> Artifact:
        with self.raising(), _COMPILING, confined(self.folders):
            if self.source.path.endswith(PRINTED):
                neighbour = self.loader.neighbour if isinstance(self.loader, Loader) else no_sources
                compiled = pipeline.compile_text(self.source, neighbour, self.options)
                return _artifact(compiled, self.loader, self.options).returning()
            compiled = pipeline.compile_source(self.source, self.request, self.loader, self.options)
            return _artifact(compiled, self.loader, self.options)


@dataclass(frozen=True)
class TracedCompilation(Compilation):
    """The compilation of one call of a live kernel that Python evaluates."""

    kernel: LiveKernel

    def trace(self) -> pipeline.Tracing:
        with self._raising():
            return pipeline.trace_live(self.kernel, self.request, self.options)

    def finish(self, tracing: pipeline.Tracing) -> Artifact:
        with self._raising():
            compiled = pipeline.compile_traced(tracing, self.options)
            return _artifact(compiled, self.loader, self.options)

    def compile(self) -> Artifact:
        return self.finish(self.trace())

    def key(self, tracing: pipeline.Tracing) -> str:
        return key_of(tracing, self.options)

    @contextmanager
    def _raising(self) -> Iterator[None]:
        try:
            with self.raising():
                yield
        except CompileError as error:
            if error.frames is None:
                error.frames = errors.of_places(error.diagnostics, _paths(self.loader))
            raise


def _artifact(
    compiled: Compiled, loader: Loader | LiveLoader, settings: CompileOptions
) -> Artifact:
    """Return the artifact, with warnings at the requested levels."""
    program = compiled.program
    if program is None:  # of printed records
        return Artifact(compiled.data)
    warnings = tuple(loader.relocated(compiled.remarks(settings.levels, loader.sources)))
    return Artifact(
        compiled.data, warnings, program.messages, program.returned, dict(program.reads)
    )


def _paths(loader: Loader | LiveLoader) -> Callable[[str], str]:
    """Return a function from a printed path to the file on this machine."""
    paths = getattr(loader, "paths", {})
    files = {loader.shown(path): file for path, file in paths.items()}
    return lambda shown: files.get(shown) or shown


@options.public(CompileError)
@options.documented(Compiling)
def compile(
    kernel: Kernel,
    *,
    name: str | None = None,
    inputs: ByName | None = None,
    consts: ByName | None = None,
    include: Sequence[FilePath] = (),
    modules: Mapping[str, FilePath] | None = None,
    embed_source: bool = False,
    max_errors: Count = 20,
    **call_options: Unpack[Compiling],
) -> Artifact:
    """Compile a kernel: the path of its file, its text as a `SourceFile`, or the function. A file
    may also be a printed program (.ir, .sched, .asm), which has its arguments already.

    `name` chooses among the kernels of a file. `inputs` gives tensor arguments as arrays or as
    types ("bf16[128,512]"), `consts` all other arguments; those of a function may contain arrays.
    `include` and `modules` tell where to find a file's imports and data; a function's imports are
    found as Python finds them. These, `embed_source` and `max_errors` are the command's options.
    Raises `CompileError`.
    """
    job: SourceCompilation | TracedCompilation
    with raising(CompileError):
        call_options = options.joined(functions.jit_options(kernel), call_options)
        settings = replace(
            compile_options(call_options), embed_source=embed_source, max_errors=max_errors
        )
        types = {each: _type(each, value) for each, value in (inputs or {}).items()}
        request = replace(request_options_of(call_options), kernel=name, args=types)
        if isinstance(kernel, str | os.PathLike | SourceFile):
            job = _of_source(kernel, request, consts or {}, include, modules or {}, settings)
        else:
            if modules or name is not None:
                refuse("name and modules apply to files only; a function has its own")
            evaluate = call_options.get("evaluate")
            job, _ = of_live(kernel, request, consts or {}, evaluate, settings, include=include)
    artifact = job.compile()
    job.warn(artifact)
    return artifact


def request_options_of(call_options: Compiling) -> RequestOptions:
    """Return the options of a call other than its arguments. Raises `UsageFailed`."""
    grid = call_options.get("grid")
    sizes = (grid,) if isinstance(grid, SupportsIndex) else grid
    return request_options(
        {**call_options, "nki": call_options.get("nki") or options.CALLS.nki},
        grid=tuple(map(index, sizes)) if sizes is not None else None,
        spread=call_options.get("spread"),
        schedule=tuple(call_options.get("schedule") or ()),
        dge=call_options.get("dge"),
    )


def _type(name: str, value: Any) -> TensorType:
    if isinstance(value, TensorType):
        return value
    if isinstance(value, str):
        return parse_type(value, f"input {name}")
    array = array_of(value)
    if array is None:
        refuse(
            f"input `{name}` is a {type(value).__qualname__}",
            'pass an array, or a type such as "bf16[128,512]"; other values go in `consts`',
        )
    return type_of(array, name)


def _of_source(
    kernel: Source,
    request_options: RequestOptions,
    consts: Mapping[str, Any],
    include: Sequence[FilePath],
    modules: Mapping[str, FilePath],
    settings: CompileOptions,
) -> SourceCompilation:
    text = kernel if isinstance(kernel, SourceFile) else None
    path = text.path if text is not None else os.fspath(kernel)  # type: ignore[arg-type]
    told = consts or include or modules or request_options != request_options_of({})
    if told and path.endswith(PRINTED):
        refuse(f"`{path}`: {IS_DESCRIBED}", "leave out what describes the kernel")
    how = (settings.level, settings.serial, settings.spill, settings.machine)
    if path.endswith(SCHEDULED) and how != (DEFAULT.level, DEFAULT.serial, DEFAULT.spill, None):
        refuse(f"`{path}`: {IS_SCHEDULED}", "leave out optimise, serial, spill and machine")
    named = {name: os.fspath(file) for name, file in modules.items()}
    loader = Loader.beside(path, [os.fspath(each) for each in include], named)
    with raising(CompileError, loader.source, loader.relocated):
        source = loader.main(path, text.text.encode() if text is not None else None)
        describer = Describer()
        values = {name: describer.argument(value, name) for name, value in consts.items()}
        request = request_for(source, replace(request_options, consts=values), os.environ)
    return SourceCompilation(replace(request, parts=describer.parts), loader, settings, source)


def of_live(
    kernel: Any,
    request_options: RequestOptions,
    consts: Mapping[str, Any],
    evaluate: str | None,
    settings: CompileOptions,
    arrays: Names | None = None,
    include: Sequence[FilePath] = (),
) -> tuple[SourceCompilation | TracedCompilation, Mapping[str, Any]]:
    """Return the compilation of a live function, and the arrays inside its arguments.

    `arrays` has the names of arguments that are arrays themselves.
    """
    arrays = arrays or Names()
    function = functions.kernel(kernel)
    if not functions.is_native(evaluate, function):
        for folder in [os.fspath(each) for each in include]:
            if not folder or not is_folder(folder):
                refuse(f"include: there is no folder `{folder}`", "pass the paths of folders")
        loader = LiveLoader([Path(folder) for folder in include])
        return _of_function(function, request_options, consts, settings, arrays, loader)
    for name, text in {
        "limits": "it has no `limits`" if settings.limits is not None else "",
        "include": "it reads data from anywhere" if include else "",
    }.items():
        if text:
            refuse(
                f"Python itself evaluates `{function.__qualname__}`, and {text}",
                f'leave out {name}=, or pass evaluate="closed" too',
            )
    loader, inner_arrays = LiveLoader(), Parts(names=arrays)
    with raising(CompileError, loader.source, loader.relocated):
        source = _source(function, loader)
        request_options = _with_file_version(request_options, source)
    values = _all_values(request_options, function, consts)
    request = _request(function, request_options, source)
    request = replace(request, consts=inner_arrays.find(values), parts=inner_arrays.types)
    live = live_kernel(function, values, inner_arrays, loader)
    return TracedCompilation(request, loader, settings, live), inner_arrays.arrays


def _source(function: Any, loader: LiveLoader) -> SourceFile | None:
    """Return the file of a function; None if it cannot be read."""
    try:
        return loader.module(functions.module_of(function))
    except NkicError:
        return None


def _request(function: Any, request_options: RequestOptions, source: SourceFile | None) -> Request:
    """Return the request of a call, in the NKI version of the function's file."""
    return request_for(None, replace(request_options, kernel=function.__name__), os.environ, source)


def _with_file_version(
    request_options: RequestOptions, source: SourceFile | None
) -> RequestOptions:
    """Add the NKI version from the inline block of the kernel's file, if the call names none.

    The block's other settings apply to the command only. Raises `UsageFailed`.
    """
    if request_options.profile is not None or source is None:
        return request_options
    return replace(request_options, profile=block_of(source).profile)


def _all_values(
    request_options: RequestOptions, function: Any, consts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that are not themselves tensors, including omitted ones with their
    defaults, and those of `**kwargs` in one dictionary.
    """
    into, names = functions.parameters(function)
    more = {name: value for name, value in consts.items() if name not in names}
    if into is not None and more:
        consts = {**{name: consts[name] for name in consts if name in names}, into: more}
    given_names = {*request_options.args, *consts}
    defaults = {
        name: value for name, value in functions.defaults(function) if name not in given_names
    }
    return {**consts, **defaults}


def _of_function(
    function: Any,
    request_options: RequestOptions,
    consts: Mapping[str, Any],
    settings: CompileOptions,
    arrays: Names,
    loader: LiveLoader,
) -> tuple[SourceCompilation, Mapping[str, Any]]:
    """Return the compilation of a live function from its source, and the arrays inside `consts`."""
    describer = Describer(tensors=arrays)
    with raising(CompileError, loader.source, loader.relocated):
        source = loader.module(functions.module_of(function))
        if source is None:
            refuse(
                f"nkic cannot find the source of `{function.__qualname__}`",
                "write the kernel to a file, or compile its text with nkic.SourceFile",
            )
        request_options = _with_file_version(request_options, source)
        values = _all_values(request_options, function, consts)
        described_values = {n: describer.argument(value, n) for n, value in values.items()}
        request_options = replace(request_options, consts=described_values)
        entry = describe.entry(_without_defaults(function), describer)
        request = _request(function, request_options, source)
    request = replace(request, entry=entry, parts=dict(describer.parts))
    return SourceCompilation(request, loader, settings, source), describer.arrays


def _without_defaults(function: Any) -> Any:
    """Return the function without its defaults, which have become arguments."""
    code, space = function.__code__, function.__globals__
    copy = type(function)(code, space, function.__name__, None, function.__closure__)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    return copy
