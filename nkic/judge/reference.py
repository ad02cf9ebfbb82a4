"""What is expected of a candidate: a function, arrays in a file, or another kernel.

It is computed here, on arrays of its own, and never reaches a candidate's process.
"""

from __future__ import annotations

import inspect
import io
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.read import load
from nkic.base.diagnostics import bad_value, suggestion
from nkic.base.text import clean
from nkic.judge.process import Ended, Process, arrays_of, compile_request, numbers_of
from nkic.judge.task import Case, Task, values_of
from nkic.machine.dtypes import FLOAT32, DType
from nkic.simulate.compare import EVERY
from nkic.simulate.inputs import (
    Generator,
    Numbers,
    numbers,
    signature_of,
    to_storage,
    unpacked_shape,
)

Arrays = Mapping[str, NDArray[Any]]  # in storage types
KEPT_BYTES = 1 << 30  # of inputs and expected outputs, which candidates share


def _array(case: Case, name: str, seed: int, family: str | None) -> NDArray[Any]:
    """Return an input in its storage type; the same on every machine."""
    (dtype, shape), given = case.inputs[name], case.values.get(name)
    if family is not None and dtype.is_float:
        wanted = unpacked_shape(shape, dtype)
        return to_storage(values_of(family, name, dtype, prod(wanted), seed).reshape(wanted), dtype)
    if given is None:
        given = Generator("randn" if dtype.is_float else "iota", (seed,) if dtype.is_float else ())
    elif given.name in ("randn", "uniform"):
        given = Generator(given.name, (*given.numbers[:-1], (given.numbers[-1] + seed) % 2**32))
    return given.array(name, dtype, shape)


class Reference:
    """The inputs of a task and what it expects of the outputs, made when they are asked for."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._kept: OrderedDict[tuple[Any, ...], Arrays] = OrderedDict()  # the latest is last
        # Candidates are judged in several threads: one computes what others wait for.
        self._lock, self._computing = threading.Lock(), threading.Lock()
        kind, where = task.reference
        self._compute: Callable[[Case, int, Arrays], Mapping[str, Numbers]] = {
            "function": self._called,
            "npz": self._read,
            "kernel": self._run,
        }[kind]
        self._name = where.partition(":")[2]
        self._path, self._data = task.folder / task.reference_file, task.files[task.reference_file]
        self.has_seeds = kind != "npz"
        self.has_families = self.has_seeds and not task.inputs
        function = (self._name or "reference") if kind == "function" else ""
        found = self._imported([name for name in (function, task.inputs) if name])
        self._function, self._make = found.get(function), found.get(task.inputs)

    def inputs(self, case: Case, seed: int, family: str | None) -> Arrays:
        """Return a case's inputs, which nobody may change."""
        key = ("inputs", case.name, seed, family)
        if (known := self._known(key)) is not None:
            return known
        made = self._made(case, seed, family)
        for array in made.values():
            array.setflags(write=False)
        return self._keep(key, made)

    def expected(self, case: Case, seed: int, family: str | None) -> Mapping[str, Numbers]:
        """Return what the outputs must be, by name."""
        key = ("expected", case.name, seed, family)
        with self._computing:
            if (known := self._known(key)) is not None:
                return known
            made = self._compute(case, seed, self.inputs(case, seed, family))
            said = {name for each in self.task.outputs.by_name.values() for name in each}
            for name in sorted({*said, *self.task.types} - {EVERY, *made}):
                text = f"[outputs.{clean(name)}]: the reference returns no `{clean(name)}`"
                raise bad_value(text, suggestion(name, made, "it returns"))
            return self._keep(key, made)

    def filled(self, case: Case, fills: Mapping[str, Generator]) -> Arrays:
        """Return a case's inputs, some of them by these generators."""
        return {
            name: fills[name].array(name, dtype, shape)
            if name in fills
            else _array(case, name, case.seeds[0], None)
            for name, (dtype, shape) in case.inputs.items()
        }

    def at(self, case: Case, arrays: Arrays) -> Mapping[str, Numbers]:
        """Return what the outputs must be for inputs that are not kept."""
        with self._computing:
            return self._compute(case, case.seeds[0], arrays)

    def _known(self, key: tuple[Any, ...]) -> Arrays | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: tuple[Any, ...], made: Arrays) -> Arrays:
        """Keep arrays, and forget the oldest of more than KEPT_BYTES."""
        with self._lock:
            self._kept[key] = made
            sizes = {k: sum(a.nbytes for a in each.values()) for k, each in self._kept.items()}
            while sum(sizes.values()) > KEPT_BYTES and len(sizes) > 1:
                del sizes[self._kept.popitem(last=False)[0]]
        return made

    def _made(self, case: Case, seed: int, family: str | None) -> dict[str, NDArray[Any]]:
        """Make a case's inputs: by generators, or as the task's own function does."""
        if self._make is None:
            return {name: _array(case, name, seed, family) for name in case.inputs}
        found, made = _answer(self._make, case, {"seed": seed}, {}), {}
        if not isinstance(found, Mapping):
            found = dict(zip(case.inputs, _several(found, len(case.inputs)), strict=False))
        for name, (dtype, shape) in case.inputs.items():
            array = _array_of(found.get(name, ()), f"{self.task.inputs}, case {case.name}: {name}")
            wanted = unpacked_shape(shape, dtype)
            if array.shape != wanted:
                text = f"[reference] {self.task.inputs} makes no `{name}` of shape {list(wanted)}"
                raise bad_value(text, "it returns the inputs by name, or in the case's order")
            same = dtype is FLOAT32 and array.dtype == np.float32
            made[name] = array.copy() if same else to_storage(array.astype(np.float64), dtype)
        return made

    def _called(self, case: Case, seed: int, arrays: Arrays) -> Mapping[str, Numbers]:
        given = {name: _natural(array, case.inputs[name].dtype) for name, array in arrays.items()}
        assert self._function is not None
        found = _answer(self._function, case, given, {"seed": seed} if self._make else {})
        if not isinstance(found, Mapping):
            found = {f"output_{number}": value for number, value in enumerate(_several(found))}
        if not found:
            raise bad_value(f"[reference] returns nothing for case {case.name}", "return an array")
        where = f"{self._name or 'reference'}, case {case.name}: "
        return {
            name: _array_of(value, f"{where}{name}").astype(np.float64)
            for name, value in found.items()
        }

    def _read(self, case: Case, seed: int, arrays: Arrays) -> Mapping[str, Numbers]:
        try:
            with np.load(io.BytesIO(self._data), allow_pickle=False) as archive:
                found = {name: archive[name] for name in archive.files}
        except Exception as error:  # a zip file has many ways of being none
            text = f"[reference] `{self._path.name}` is no npz file of numbers"
            raise bad_value(text, "write it with np.savez") from error
        return {name: _array_of(a, f"npz: {name}").astype(np.float64) for name, a in found.items()}

    def _run(self, case: Case, seed: int, arrays: Arrays) -> Mapping[str, Numbers]:
        text = self._data.decode("utf-8", "replace")
        request = compile_request(self.task, case, str(self._path), text, self._name or None)
        run = {"case": case.name, "arrays": arrays_of(case, arrays), "analyse": False}
        with Process(self.task.seconds, self.task.memory) as process:
            try:
                answer = process.ask("compile", **request)
                if "failed" not in answer:
                    data = answer["data"]
                    answer = process.ask("run", **run)
                failed = answer.get("failed", "")
            except Ended as ended:
                failed = str(ended)
        if failed:
            raise bad_value(f"[reference] kernel: {failed}", "")
        return numbers_of(signature_of(load(data)), answer["outputs"])

    def _imported(self, names: Sequence[str]) -> dict[str, Callable[..., Any]]:
        """Import functions of the reference's file: the task's author is trusted."""
        if not names:
            return {}
        module = ModuleType(f"nkic_reference_{self.task.sha256}")
        module.__file__ = str(self._path)
        vars(module)["print"] = _print
        sys.modules[module.__name__] = module  # where dataclasses look their types up
        try:
            exec(compile(self._data, str(self._path), "exec"), vars(module))
        except (Exception, SystemExit) as error:
            raise bad_value(f"[reference] `{self._path.name}`: {_said(error)}", "") from error
        for name in names:
            if not callable(getattr(module, name, None)):
                text = f"[reference] function: `{self._path.name}` has no function `{name}`"
                raise bad_value(text, "write FILE.py:NAME")
        return {name: getattr(module, name) for name in names}


def _answer(
    function: Callable[..., Any],
    case: Case,
    given: Mapping[str, Any],
    offered: Mapping[str, Any],
) -> Any:
    """Call a function of the task's author, which also gets what it has parameters for."""
    try:
        takes = inspect.signature(function).parameters
        more = any(p.kind is p.VAR_KEYWORD for p in takes.values())
        chosen = {n: v for n, v in {**offered, **case.consts}.items() if more or n in takes}
        with np.errstate(all="ignore"):
            return function(**given, **chosen)
    except (Exception, SystemExit) as error:
        name = getattr(function, "__name__", "function")
        text = f"[reference] {name}, case {case.name}: {_said(error)}"
        called = error.__traceback__ and error.__traceback__.tb_next
        help = "" if called else "its parameters are the inputs by name, and constants"
        raise bad_value(text, help) from error


def _print(*words: Any, **how: Any) -> None:
    """Print to standard error, since standard output has results."""
    print(*words, **{"file": sys.stderr, **how})


def _several(found: Any, wanted: int = 1) -> Sequence[Any]:
    """Return what a function of the author returns as a sequence; an array may hold several."""
    is_stack = wanted > 1 and isinstance(found, np.ndarray)
    return found if is_stack or isinstance(found, tuple | list) else (found,)


def _array_of(value: Any, what: str) -> NDArray[Any]:
    """Return an array of real numbers, as the task's author must give it."""
    said = ""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array
        if array.dtype.kind == "V" and array.dtype.names is None:  # ml_dtypes': bfloat16, float8
            return array.astype(np.float64)
    except Exception as error:  # rows of several lengths; of another library: any
        said = f": {_said(error)}"
    text = f"[reference] {what} is no array of real numbers{said}"
    raise bad_value(text, "give NumPy's arrays; np.savez loses bfloat16 and float8: save float32")


def _natural(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Return an array as a reference expects it: floats as float32, integers as they are."""
    return numbers(array, dtype).astype(np.float32) if dtype.is_float else array.copy()


def _said(error: BaseException) -> str:
    """Return what an exception says, with the line of the task's file that led to it."""
    called = error.__traceback__ and error.__traceback__.tb_next
    return f"{type(error).__name__}: {error}" + (f" (line {called.tb_lineno})" if called else "")
