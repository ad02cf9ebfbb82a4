"""Comparison of a call's results with expected ones, as in `nki-run --expected`, of the times of
several runs, and of two kernels as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nkic.api.arrays import array_of, dtype_of
from nkic.api.artifact import Artifact, Compiled
from nkic.api.calling import Called
from nkic.api.errors import RunError, no_sources, raising, refuse
from nkic.api.options import ByName, Seed, Values, public
from nkic.api.running import Result, wanted
from nkic.base.render import render
from nkic.machine.codecs import storage
from nkic.program.program import Returned
from nkic.report.compare import Ranking, Timed, ranked
from nkic.simulate import compare
from nkic.simulate.compare import Comparison, ToleranceSettings
from nkic.simulate.expectations import transposed_input
from nkic.simulate.field import batch
from nkic.simulate.field.batch import Invariance
from nkic.simulate.field.decide import Equality
from nkic.simulate.field.decide import equal as decided
from nkic.simulate.inputs import ArrayParameter, Numbers, bind, numbers, to_storage, unpacked_shape
from nkic.simulate.outcome import RunOptions


def compared(
    called: Called,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    outputs: Mapping[str, Any] | None = None,
) -> list[Comparison]:
    """Compare every expected output with the result, or with `outputs` of another run.

    `expected` is an array if the kernel returns one, a tuple in the form of its result, or a
    dictionary by output name, which may also include inputs that the kernel writes. Raises
    `ValueError` if the kernel has no such outputs or their shapes differ.
    """
    settings = ToleranceSettings.of_all(rtol=rtol, atol=atol)
    parameters = {p.name: p for p in called.artifact.signature.outputs}
    is_named, form = isinstance(expected, Mapping), called.artifact.returned
    references = dict(expected if is_named else _pairs(form, expected))
    comparisons = []
    for name, reference in references.items():
        parameter = parameters.get(name)
        if parameter is None:
            raise ValueError(f"the kernel has no output `{name}`; it has {', '.join(parameters)}")
        output = (outputs or called.result.outputs)[name].view(storage(parameter.dtype))
        rule = settings.rule(name, parameter.dtype)
        comparisons.append(
            compare.compare(name, output, parameter.dtype, _numbers(reference, parameter), rule)
        )
    return comparisons


def differences(
    called: Called, expected: Any, rtol: float | None = None, atol: float | None = None
) -> str:
    """Return what `nki-run` would print for the outputs that differ; empty if none does."""
    wrong = [each for each in compared(called, expected, rtol, atol) if not each.passed]
    if not wrong:
        return ""
    cause = _cause(called, lambda outputs: compared(called, expected, rtol, atol, outputs))
    found = [compare.diagnostic(comparison, cause) for comparison in wrong]
    return render(found, "human", no_sources)


def _cause(called: Called, comparing: Callable[[Mapping[str, Any]], list[Comparison]]) -> str:
    """Return why the outputs of a call are not as expected, or "", if other inputs tell it."""
    artifact = called.artifact
    if artifact.signature.updates:
        return ""  # the caller's arrays may hold their new contents
    return transposed_input(
        artifact.executable,
        bind(artifact.signature, wanted(called.inputs, None, False)).arrays,
        called.result.run.instructions,
        RunOptions(),
        lambda outputs: all(comparison.passed for comparison in comparing(outputs)),
    )


Runs = Annotated[
    Mapping[Any, Called | Result] | Iterable[Called | Result],
    Values("results of nkic.run or nkic.call, one after another or by name"),
]


@public(RunError)
def rank(runs: Runs) -> Ranking:
    """Order runs by their time, as far as the clock lets it be told.

    Each gets its time relative to the fastest run's, with the band in which that likely is on a
    device, and the place of the fastest run that it cannot be told from: errors of figures that two
    runs share cancel. `print` shows a table.
    """
    named: Mapping[Any, Called | Result]
    named = runs if isinstance(runs, Mapping) else {f"run {i}": r for i, r in enumerate(runs)}
    help = "pass the results of nkic.run or nkic.call"
    with raising(RunError):
        if not named:
            refuse("nkic.rank(): runs is empty", help)
        for name, one in named.items():
            if not isinstance(one, Called | Result):
                refuse(f"nkic.rank(): {name} is a {type(one).__qualname__}, not a result", help)
    results = {n: r.result if isinstance(r, Called) else r for n, r in named.items()}
    return ranked([Timed.of(str(name), result.run) for name, result in results.items()])


@public(RunError)
def equal(
    first: Compiled,
    second: Artifact | Callable[..., Any],
    inputs: ByName | None = None,
    *,
    seed: Seed = 0,
) -> Equality:
    """Tell whether two kernels compute the same function, whatever their tiles, order and types.

    The second may be a reference: a function of NumPy arrays or torch tensors. Both are run over a
    finite field, where nothing is rounded (docs/equality.md). The answer is true if they are equal;
    its `text` says so, or shows inputs at which they differ, or the lines that the method cannot
    decide. `inputs` gives integer inputs, such as indices, which are taken as they are; other
    integer inputs are 0 and 1 at random. Raises `RunError`.
    """
    with raising(RunError):
        other = second.executable if isinstance(second, Artifact) else second
        return decided(first.executable, other, _integers(first, inputs), seed)


@public(RunError)
def batch_invariant(few: Compiled, many: Compiled, inputs: ByName | None = None) -> Invariance:
    """Tell whether each row gets the same bits however many other rows there are.

    `few` and `many` are one kernel, compiled for two numbers of rows. The answer is true if it is
    proven (docs/equality.md); its `text` says so, or names the first instruction that computes rows
    in another way. `inputs` gives integer inputs of `many`, such as indices; others are 0 and 1 at
    random. Raises `RunError`.
    """
    with raising(RunError):
        given = _integers(many, inputs)
        return batch.batch_invariant(few.executable, many.executable, given)


def _integers(artifact: Artifact, inputs: ByName | None) -> dict[str, NDArray[Any]]:
    """Return given integer inputs as they are stored. Raises `UsageFailed` for others."""
    kinds = {p.name: p for p in artifact.signature.inputs if not p.dtype.is_float}
    given = {}
    for name, array in (inputs or {}).items():
        if name not in kinds or np.shape(array) != kinds[name].shape:
            refuse(
                f"`{name}` is not an integer input of the shape {np.shape(array)}",
                "give integer inputs alone: others stand for all numbers",
            )
        given[name] = to_storage(np.asarray(array, np.float64), kinds[name].dtype)
    return given


def _pairs(form: Returned, expected: Any) -> Iterator[tuple[str, Any]]:
    if form is None:
        raise ValueError(
            "the kernel returns nothing; pass the arrays that it writes by name: {'c': array}"
        )
    if isinstance(form, int):
        yield f"output_{form}", expected
        return
    if not isinstance(expected, tuple | list) or len(expected) != len(form):
        raise ValueError(f"the kernel returns {len(form)} tensors; pass a tuple of as many arrays")
    for inner, value in zip(form, expected, strict=True):
        yield from _pairs(inner, value)


def _numbers(wanted: Any, parameter: ArrayParameter) -> Numbers:
    array = array_of(wanted)
    array = np.asarray(wanted) if array is None else np.asarray(array)
    dtype = dtype_of(array.dtype)
    if dtype is not None and dtype.lanes > 1:
        values = numbers(array.view(storage(dtype)), dtype)
    else:
        values = array.astype(np.float64)
    shape = unpacked_shape(parameter.shape, parameter.dtype)
    if values.shape != shape:
        raise ValueError(f"`{parameter.name}` has the shape {shape}, expected is {values.shape}")
    return values
