"""Call a kernel with the values of a running program; its artifact is cached in this process
and, in a folder (`nkic.base.cache`), across processes.

An artifact is looked up by the request (kernel, types, constants, target, options) and used if
every file that was read for it still has the same content.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
from numpy.lib.array_utils import byte_bounds

from nkic.api import functions, options
from nkic.api.arrays import Array, Names, array_of, type_of
from nkic.api.artifact import Artifact
from nkic.api.compiling import (
    SourceCompilation,
    TracedCompilation,
    compile_options,
    of_live,
    request_options_of,
)
from nkic.api.errors import CompileError, raising, refuse
from nkic.api.loading import LiveLoader
from nkic.api.options import ByName, Calling, Compiling, Preparing, Running, Values
from nkic.api.running import Result, check_ranks, run, run_ranks
from nkic.base import files
from nkic.base.cache import Store, folder, here, stamp
from nkic.base.diagnostics import NkicError, from_json, to_json
from nkic.language.creation import MAX_BYTES

MAX_ENTRIES = 256  # artifacts kept in the process; the least recently used is dropped first
_LOCK = threading.Lock()


@dataclass(frozen=True)
class _Entry:
    """An artifact, and the hashes of the source files it was made from, by module name."""

    files: dict[str, str]
    artifact: Artifact

    def is_current(self, loader: LiveLoader, folders: Sequence[Path]) -> bool:
        """Whether every file is as it was, and data is where this kernel may read it."""
        for name, digest in self.files.items():
            try:
                file = loader.module(name)
            except NkicError:
                return False
            if file is None or _hash(file.text) != digest:
                return False
        with files.confined(folders):
            return all(_data(path) == digest for path, digest in self.artifact.reads.items())


_entries: OrderedDict[str, _Entry] = OrderedDict()


Folder = str | os.PathLike[str] | None  # as the call names it


def _cached_source(job: SourceCompilation, named: Folder) -> Artifact:
    loader = job.loader
    assert isinstance(loader, LiveLoader)

    def compile() -> _Entry:
        artifact = job.compile()
        texts = ((loader.name_of(path), file.text) for path, file in loader.sources.items())
        return _Entry({name: _hash(text) for name, text in texts}, artifact)

    return _cached(_key(job), named, lambda entry: entry.is_current(loader, job.folders), compile)


def _cached(
    key: str, named: Folder, is_current: Callable[[_Entry], bool], compile: Callable[[], _Entry]
) -> Artifact:
    with raising(CompileError):
        path = folder(os.environ, named)
    store = Store(path) if path is not None else None
    with _LOCK:
        entry = _entries.get(key)
    if entry is not None and not is_current(entry):
        entry = None
    if entry is None and store is not None:
        stored = _from_disk(store, key)
        entry = stored if stored is not None and is_current(stored) else None
    is_new = entry is None
    if entry is None:
        entry = compile()
    if store is not None and (is_new or not files.is_file(store.path(key))):
        made = entry.artifact
        facts = {
            **{"files": entry.files, "warnings": to_json(made.warnings)},
            **{"messages": made.messages, "returned": made.returned, "reads": made.reads},
        }
        store.write(key, facts, made.data)
    with _LOCK:
        _entries[key] = entry
        _entries.move_to_end(key)
        while len(_entries) > MAX_ENTRIES:
            _entries.popitem(last=False)
    return entry.artifact


def _key(job: SourceCompilation) -> str:
    """Return a hash of the request that is equal in every process."""
    request = job.request
    consts = {name: repr(getattr(v, "value", v)) for name, v in sorted(request.consts.items())}
    args = {name: str(kind) for name, kind in sorted(request.args.items())}
    parts = {name: str(kind) for name, kind in sorted(request.parts.items())}
    identity = (
        *(stamp(), here(), request.kernel, request.target.name, request.profile.label),
        *(request.grid, request.lnc, request.spread, args, consts, parts, repr(request.entry)),
        *(request.schedule, job.options.key),
    )
    return sha256(repr(identity).encode()).hexdigest()


def _data(path: str) -> str:
    """Return the hash of a data file, as in `Artifact.reads`; empty if it cannot be read."""
    try:
        return sha256(files.read(path, MAX_BYTES)).hexdigest()
    except NkicError:
        return ""


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def clear() -> None:
    with _LOCK:
        _entries.clear()


def _from_disk(store: Store, key: str) -> _Entry | None:
    """Return the stored entry for `key`; None if it is missing or malformed."""
    entry = store.read(key)
    if entry is None:
        return None
    try:
        facts = entry.facts
        messages, form = tuple(map(str, facts["messages"])), _form(facts["returned"])
        warnings = from_json(facts["warnings"])
        artifact = Artifact(entry.data, warnings, messages, form, _texts(facts["reads"]))
        return _Entry(_texts(facts["files"]), artifact)
    except (ValueError, LookupError, TypeError):
        return None


def _texts(value: Any) -> dict[str, str]:
    """Check that `value` maps strings to strings, and return it. Raises `ValueError`."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("not a mapping of strings")
    return value


def _form(value: Any) -> Any:
    """Return the form of a kernel's result from JSON. Raises `ValueError`."""
    if isinstance(value, list):
        return tuple(map(_form, value))
    if value is not None and type(value) is not int:
        raise ValueError("not the form of a result")
    return value


# An array is no sequence of arguments: its rows would become the arguments.
Arguments = Annotated[
    Sequence[Any], Values("a sequence of arguments", help="pass a tuple: (a, b), or (a,) for one")
]
_OVERLAP_WORK = 10_000  # candidates to try where two arrays interleave


@dataclass(frozen=True)
class Called:
    """The result of a call. `values` is what the kernel returns: an array, a tuple of arrays, or
    None.

    `updated` maps the names of the inputs that the kernel wrote to their new contents; the caller's
    own arrays are left unchanged. `inputs` maps the names of tensor arguments to the caller's
    arrays.
    """

    values: Any
    updated: Mapping[str, Array]
    result: Result
    artifact: Artifact
    inputs: Mapping[str, Array]

    def _repr_html_(self) -> str:
        """The run, for notebooks."""
        return self.result._repr_html_()


@dataclass(frozen=True)
class Prepared:
    """A call whose kernel is compiled: the artifact, and the arrays by input name."""

    artifact: Artifact
    inputs: Mapping[str, Array]


@options.public(CompileError)
@options.documented(Compiling, Preparing)
def prepare(
    function: Any,
    args: Arguments = (),
    kwargs: ByName | None = None,
    **call_options: Unpack[Preparing],
) -> Prepared:
    """Compile `function` for the arguments of a call, or take it from the cache.

    Arrays become tensors, wherever they occur in an argument; all other values are compile-time
    constants. The settings of `function` under `nki.jit` (grid in brackets, schedule, target, Beta
    1) apply unless an option overrides them. Raises `TypeError` if the arguments do not fit the
    signature, `CompileError`, and whatever a kernel that Python evaluates raises.
    """
    with raising(CompileError):
        kernel = functions.kernel(function)
        call_options = options.joined(functions.jit_options(function), call_options)
        try:
            bound = inspect.signature(kernel).bind(*args, **dict(kwargs or {}))
        except TypeError as error:
            error.args = (f"{kernel.__name__}(): {error}",)
            raise
        inputs = Names()
        arrays = dict(_arrays(bound.arguments, inputs))
        consts = {name: v for name, v in bound.arguments.items() if name not in arrays}
        types = {name: type_of(array, name) for name, array in arrays.items()}
        request = replace(request_options_of(call_options), args=types)
        evaluate, settings = call_options.get("evaluate"), compile_options(call_options)
        include = call_options.get("include", ())
        job, inside = of_live(kernel, request, consts, evaluate, settings, inputs, include)
    folder = call_options.get("cache_dir")
    if isinstance(job, TracedCompilation):
        # What it depends on is unknown: it is called each time, and looked up by its program.
        tracing = job.trace()
        key = job.key(tracing)
        artifact = _cached(key, folder, lambda entry: True, lambda: _Entry({}, job.finish(tracing)))
    else:
        artifact = _cached_source(job, folder)
    job.warn(artifact)
    given = {**arrays, **inside}
    with raising(CompileError):
        _check_overlaps(artifact, given)
    return Prepared(artifact, given)


def _arrays(arguments: Mapping[str, Any], inputs: Names) -> Iterator[tuple[str, Array]]:
    """Yield the arguments that are arrays of their own.

    An array that is passed again is the same tensor, unless it is read-only: then the kernel's
    writes make a new array, as JAX's do.
    """
    for name, value in arguments.items():
        array = array_of(value)
        if array is not None and (
            not array.flags.writeable or inputs.name(value, array, name) == name
        ):
            yield name, array


def _check_overlaps(artifact: Artifact, arrays: Mapping[str, Array]) -> None:
    """Raise `UsageFailed` if the kernel writes an array that shares a part of its memory."""
    own = {name: array for name, array in arrays.items() if array.flags.writeable}
    for name, other in _near(own):
        updates = artifact.signature.updates
        written = next((one for one in (name, other) if one in updates), None)
        if written is not None and _overlap(own[name], own[other]):
            refuse(
                f"arguments `{name}` and `{other}` share a part of their memory, and the kernel "
                f"writes `{written}`",
                "pass the whole array once, and slice it in the kernel; or pass a copy",
            )


def _near(arrays: Mapping[str, Array]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of arrays whose ranges of addresses intersect."""
    before: list[tuple[int, str]] = []
    for first, end, name in sorted((*byte_bounds(a), name) for name, a in arrays.items()):
        before = [one for one in before if one[0] > first]
        yield from ((other, name) for _, other in before)
        before.append((end, name))


def _overlap(first: Array, second: Array) -> bool:
    try:
        work: Any = _OVERLAP_WORK  # NumPy's stubs know only of its two special values
        return bool(np.shares_memory(first, second, max_work=work))
    except np.exceptions.TooHardError:
        return False


@options.public(CompileError)
@options.documented(Compiling, Preparing, Running)
def call(
    function: Any,
    args: Arguments = (),
    kwargs: ByName | None = None,
    **call_options: Unpack[Calling],
) -> Called:
    """Call a kernel in the simulator: `prepare`, then `run`, with the options of both."""
    prepared = prepare(function, args, kwargs, **options.preparing(call_options))
    return called(
        prepared, run(prepared.artifact, prepared.inputs, **options.running(call_options))
    )


@options.public(CompileError)
@options.documented(Compiling, Preparing, Running)
def call_ranks(
    function: Any,
    inputs: Sequence[Arguments | ByName],
    **call_options: Unpack[Calling],
) -> list[Called]:
    """Call a kernel as ranks 0, 1, … together; `inputs` are each rank's arguments, by name or
    position.

    All ranks run the same compiled kernel, so arguments other than arrays must be equal. Options
    are those of `call`. Raises `CompileError` and `RunError`.
    """
    with raising(CompileError):
        check_ranks(inputs, "arguments")
    calls: list[tuple[Any, Any]] = [
        ((), arguments) if isinstance(arguments, Mapping) else (arguments, {})
        for arguments in inputs
    ]
    compile_time = options.preparing(call_options)
    prepared = [prepare(function, *arguments, **compile_time) for arguments in calls]
    for rank, other in enumerate(prepared):
        if other.artifact.data != prepared[0].artifact.data:
            with raising(CompileError):
                refuse(
                    f"rank {rank} and rank 0 need different programs",
                    "give all ranks the same arguments; only the contents of arrays may differ",
                )
    arrays = [call.inputs for call in prepared]
    results = run_ranks(prepared[0].artifact, arrays, **options.running(call_options))
    return [called(call, result) for call, result in zip(prepared, results, strict=True)]


def called(prepared: Prepared, result: Result) -> Called:
    names = {p.name for p in prepared.artifact.signature.inputs}
    updated = {name: array for name, array in result.outputs.items() if name in names}
    values = _values(prepared.artifact.returned, result.outputs)
    return Called(values, updated, result, prepared.artifact, prepared.inputs)


def _values(form: Any, outputs: Mapping[str, Array]) -> Any:
    if form is None:
        return None
    if isinstance(form, int):
        return outputs[f"output_{form}"]
    return tuple(_values(inner, outputs) for inner in form)
