"""Calls a kernel with values of the running program."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nkic.api import cache, functions
from nkic.api.arrays import Array, array_of, type_of
from nkic.api.artifact import Artifact
from nkic.api.compiling import Grid, How, Job, given_for, of_function
from nkic.api.describe import Describer
from nkic.api.errors import CompileError, raising, refuse
from nkic.api.running import Result, run, run_ranks
from nkic.base.levels import Settings


@dataclass(frozen=True)
class Called:
    """What a call gave. `values` is what the kernel returns: an array, a tuple of arrays, None.

    `updated` are the inputs that the kernel wrote, by name; the caller's own arrays are left as
    they were. `inputs` are the caller's values of tensor arguments by name.
    """

    values: Any
    updated: Mapping[str, Array]
    result: Result
    artifact: Artifact
    inputs: Mapping[str, Array]


@dataclass(frozen=True)
class Prepared:
    """A call whose kernel is compiled: its arrays by the names of the inputs."""

    artifact: Artifact
    inputs: Mapping[str, Array]


def prepare(
    function: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    grid: Grid | None = None,
    lnc: int | None = None,
    target: str | None = None,
    nki: str | None = None,
    serial: bool = False,
    schedule: Sequence[Any] = (),
    levels: Settings | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Prepared:
    """Compiles `function` for the arguments of a call, or takes it from the cache.

    Arrays become tensors, wherever they sit in an argument; all else becomes compile-time
    values. `schedule` is what `with_schedule` takes. `cache_dir` (by default NKIC_CACHE_DIR) keeps
    artifacts for other processes. Raises `TypeError` where the arguments do not fit the
    signature, and `CompileError`.
    """
    with raising(CompileError):
        kernel = functions.kernel(function)
        bound = inspect.signature(kernel).bind(*args, **dict(kwargs or {}))
        describer = Describer()
        arrays = {name: a for name, v in bound.arguments.items() if (a := array_of(v)) is not None}
        consts = {name: v for name, v in bound.arguments.items() if name not in arrays}
        given = replace(given_for(target, nki, grid, lnc), schedule=tuple(schedule))
        given = replace(given, args={name: type_of(a, name) for name, a in arrays.items()})
        how = How(serial, levels=levels or Settings())
        job = of_function(kernel, given, consts, describer, how)
    return Prepared(_compiled(job, cache_dir), {**arrays, **describer.arrays})


def _compiled(job: Job, folder: str | os.PathLike[str] | None) -> Artifact:
    return cache.compiled(job, folder if folder is not None else os.environ.get(cache.VARIABLE))


def call(
    function: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    grid: Grid | None = None,
    lnc: int | None = None,
    target: str | None = None,
    nki: str | None = None,
    serial: bool = False,
    schedule: Sequence[Any] = (),
    levels: Settings | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    init_check: bool = True,
    precise_fp: bool | None = None,
    max_cycles: int | None = None,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> Called:
    """Calls a kernel in the simulator: `prepare`, then `run`, whose options these are."""
    prepared = prepare(
        function,
        args,
        kwargs,
        grid=grid,
        lnc=lnc,
        target=target,
        nki=nki,
        serial=serial,
        schedule=schedule,
        levels=levels,
        cache_dir=cache_dir,
    )
    result = run(
        prepared.artifact,
        prepared.inputs,
        init_check=init_check,
        precise_fp=precise_fp,
        max_cycles=max_cycles,
        max_memory=max_memory,
        timeout=timeout,
    )
    return called(prepared, result)


def call_ranks(
    function: Any,
    inputs: Sequence[Mapping[str, Any]],
    *,
    lnc: int | None = None,
    target: str | None = None,
    nki: str | None = None,
    serial: bool = False,
    levels: Settings | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    init_check: bool = True,
    precise_fp: bool | None = None,
    max_cycles: int | None = None,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> list[Called]:
    """Calls a kernel as ranks 0, 1, … together: `inputs` are the arguments of each by name.

    One compiled kernel runs on all ranks, so that arguments other than arrays must be the same.
    Options are as in `call`. Raises `CompileError` and `RunError`.
    """
    how: dict[str, Any] = {"lnc": lnc, "target": target, "nki": nki, "serial": serial}
    how |= {"levels": levels, "cache_dir": cache_dir}
    ready = [prepare(function, (), one, **how) for one in inputs]
    for rank, one in enumerate(ready):
        if one.artifact.data != ready[0].artifact.data:
            with raising(CompileError):
                refuse(
                    f"rank {rank} and rank 0 need different programs",
                    "give all ranks the same arguments but for the contents of arrays",
                )
    results = run_ranks(
        ready[0].artifact,
        [one.inputs for one in ready],
        init_check=init_check,
        precise_fp=precise_fp,
        max_cycles=max_cycles,
        max_memory=max_memory,
        timeout=timeout,
    )
    return [called(one, result) for one, result in zip(ready, results, strict=True)]


def called(prepared: Prepared, result: Result) -> Called:
    """The values of a call from the outputs of its run."""
    names = {p.name for p in prepared.artifact.signature.inputs}
    updated = {name: array for name, array in result.outputs.items() if name in names}
    values = _values(prepared.artifact.returned, result.outputs)
    return Called(values, updated, result, prepared.artifact, prepared.inputs)


def _values(form: Any, outputs: Mapping[str, Array]) -> Any:
    if form is None:
        return None
    if isinstance(form, int):
        return outputs[f"output_{form}"]
    return tuple(_values(one, outputs) for one in form)
