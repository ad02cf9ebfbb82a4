"""The judge's side of a candidate's process: requests, answers and their end."""

from __future__ import annotations

import json
import os
import re
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from nkic.api import Artifact, compile, fuzz_order, run
from nkic.api.errors import ApiError, RunError, no_sources, raising
from nkic.artifact import pace
from nkic.artifact.archive import CALL
from nkic.artifact.arrays import Offer, natural
from nkic.artifact.records import Executable
from nkic.base import files
from nkic.base.render import text
from nkic.base.source import SourceFile
from nkic.base.text import clean
from nkic.base.worker import FORKED, NO_MEMORY, answer_requests, started
from nkic.compiler.pipeline import PRINTED, SCHEDULED
from nkic.judge.task import Case, Task
from nkic.machine.codecs import storage
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import TARGETS, likely_error
from nkic.report import run_report
from nkic.report.critical import Noted
from nkic.report.profile import summary
from nkic.simulate.field.domain import cause_in_kernel
from nkic.simulate.field.intervals import proven
from nkic.simulate.inputs import ArrayParameter, Numbers, Signature, numbers

# ---- The words between the judge and a candidate's process --------------------------------------


def compile_request(
    task: Task, case: Case, path: str, text: str, kernel: str | None
) -> dict[str, Any]:
    """Return the request to compile a text for a case.

    The process knows the file by its name alone, and has no other file: a candidate whose
    neighbours count would be another one elsewhere. The task decides on which machine it runs:
    a file's own block does not.
    """
    options: dict[str, Any] = {}
    if not path.endswith(PRINTED):  # else it has its arguments and its machine
        types = {name: str(kind) for name, kind in case.inputs.items()}
        options = {"inputs": types, "consts": dict(case.consts), "name": kernel}
        options |= {"grid": case.grid, "lnc": case.lnc, "target": task.target, "nki": task.nki}
    if task.optimise is not None and not path.endswith(SCHEDULED):
        options["optimise"] = task.optimise
    return {
        "case": case.name,
        "path": clean(Path(path).name).replace("\\", "_"),  # a file's name may be any bytes
        "text": text,
        "options": options,
    }


def arrays_of(case: Case, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return inputs as a request has them."""
    return {
        name: (case.inputs[name].dtype.name, list(array.shape), array.tobytes())
        for name, array in arrays.items()
    }


def numbers_of(signature: Signature, outputs: Any) -> dict[str, Numbers]:
    """Return the values of an answer's outputs. Raises `ValueError` unless they fit."""
    return {p.name: numbers(stored_of(p, outputs), p.dtype) for p in signature.outputs}


def stored_of(parameter: ArrayParameter, outputs: Any) -> NDArray[Any]:
    """Return an output of an answer in its storage type. Raises `ValueError` unless it fits."""
    data = outputs.get(parameter.name) if isinstance(outputs, dict) else None
    if not isinstance(data, bytes) or len(data) != parameter.bytes:
        raise ValueError(f"the answer has no output `{parameter.name}` of its size")
    return np.frombuffer(data, storage(parameter.dtype)).reshape(parameter.shape)


# ------------------------------------------------------------------------------------------------
# How far a program's time follows the figures of the clock that are not known exactly.
# A kernel can win because the clock is wrong, not because it is fast. So its program is timed
# again with each figure at either end of its likely error. A figure's share of the critical path
# says what a small change does; timing again also finds the paths that a change makes critical.

# Items that are simulated at most, in all timings of a program together; the figures with the
# least effect are left out first.
ITEMS = 100_000
LEAST = 0.0005  # change of the time that is kept, as a share of it


def sensitivity(
    executable: Executable, shares: Mapping[str, float]
) -> dict[str, tuple[float, float, float]]:
    """Return by figure the changes of the time, as shares of it, with the figure at the upper and
    at the lower end of its likely error, and that error.

    `shares` of the critical path by figure say which figures to try first. The result is empty for
    a program that is too long.
    """
    target = TARGETS[executable.target].used_by(executable.cores)
    most = ITEMS // (2 * max(1, pace.items(executable)))
    noted = Noted(target.figures)
    time = pace.duration(executable, replace(target, figures=noted)) if most else None
    if not time:
        return {}

    def changed(name: str, factor: float) -> float:
        figures = {**target.figures, name: target.figures[name] * factor}
        return round(
            (pace.duration(executable, replace(target, figures=figures)) or 0) / time - 1, 4
        )

    errors = {name: likely_error(name, target) for name in noted.read}
    effects = {name: abs(shares.get(name, 0.0)) * error for name, error in errors.items()}
    found = {}
    for name in sorted(errors, key=lambda name: (-effects[name], -errors[name], name))[:most]:
        more, less = changed(name, 1 + errors[name]), changed(name, 1 / (1 + errors[name]))
        if max(abs(more), abs(less)) >= LEAST:
            found[name] = more, less, round(errors[name], 4)
    return found


# ---- The process of one candidate: it compiles and runs, and answers in bytes -------------------
# Nothing here knows what is expected. The candidate's text is evaluated in the closed world, under
# limits that the process sets itself before it reads a word of it.

Message = Mapping[str, Any]
STEPS = 1_000_000_000  # of the evaluation of one specialisation: the time limit comes first


def serve(connection: Connection, memory: int, folder: str) -> None:
    """Answer requests until the connection ends. A candidate may import what `folder` holds."""
    os.chdir(folder)
    Path(files.FILE).touch()  # no settings of folders above
    for name in files.DECIDING:  # nor of whoever judges: an evaluation is the same everywhere
        os.environ.pop(name, None)
    warnings.simplefilter("ignore")  # the artifact has them
    with files.confined([Path(folder)]):  # `nl.shared_constant("…/expected.npy")`
        answer_requests(connection, memory, _Candidate().answer, lambda: None)


class _Candidate:
    """A candidate's artifacts, by case."""

    def __init__(self) -> None:
        self.artifacts: dict[str, Artifact] = {}

    def answer(self, request: Message) -> dict[str, Any]:
        """Do what a request asks; a failure of the candidate is an answer, too."""
        does: Callable[[Message], dict[str, Any]] = getattr(self, f"_{request['do']}")
        try:
            return does(request)
        except ApiError as error:
            found = [json.loads(text.json_line(d, no_sources)) for d in error.diagnostics]
            return {"failed": str(error), "diagnostics": found}
        except MemoryError:
            return NO_MEMORY
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__} in {Path(at.filename).name}, line {at.lineno}: {error}"
            return {"failed": f"nkic itself failed, please report it: {said}", "diagnostics": []}

    def _load(self, request: Message) -> dict[str, Any]:
        """Take a compiled kernel for a case."""
        artifact = self.artifacts[request["case"]] = Artifact(request["data"])
        with raising(RunError):
            artifact.executable  # noqa: B018 - verified on first use
        return {"data": artifact.data, "warnings": []}

    def _compile(self, request: Message) -> dict[str, Any]:
        """Compile the candidate's text for a case."""
        artifact = compile(
            SourceFile(request["path"], request["text"]),
            limits={"steps": STEPS},
            **request["options"],
        )
        self.artifacts[request["case"]] = artifact
        found = [json.loads(text.json_line(d, no_sources)) for d in artifact.warnings]
        return {"data": artifact.data, "warnings": found}

    def _run(self, request: Message) -> dict[str, Any]:
        result = run(
            self.artifacts[request["case"]],
            _offers(request["arrays"]),
            init_check=True,
            race_check=True,
        )
        outputs = {name: np.ascontiguousarray(v).tobytes() for name, v in result.outputs.items()}
        answer: dict[str, Any] = {"outputs": outputs, "time_ns": result.time_ns}
        if request["analyse"]:
            insight = result.insight
            verdict = insight.verdict.as_json() if insight else None
            answer |= {
                "report": json.loads(run_report.as_json(replace(result.run, verdict=verdict))),
                "metrics": summary(insight) if insight else {},
                "verdict": result.verdict.splitlines(),
                "what_if": [
                    {"name": a.name, "text": a.text, "gain": a.gain, "advice": a.is_advice}
                    for a in (insight.verdict.answers if insight else ())
                ],
            }
        return answer

    def _cause(self, request: Message) -> dict[str, Any]:
        """Tell which instruction fails on the second of two inputs, and not on the first."""
        executable = self.artifacts[request["case"]].executable
        good, bad = (
            {name: offer.read() for name, offer in _offers(request[key]).items()}
            for key in ("good", "bad")
        )
        with raising(RunError):
            return {"cause": list(cause_in_kernel(executable, good, bad))}

    def _proof(self, request: Message) -> dict[str, Any]:
        """Tell up to which size of inputs a case's program is proven to stay finite."""
        executable = self.artifacts[request["case"]].executable
        arrays = {name: offer.read() for name, offer in _offers(request["arrays"]).items()}
        with raising(RunError):
            return {"proof": list(proven(executable, arrays))}

    def _time(self, request: Message) -> dict[str, Any]:
        """Time a case's program again with other figures of the clock."""
        executable = self.artifacts[request["case"]].executable
        return {"sensitivity": sensitivity(executable, request["shares"])}

    def _fuzz(self, request: Message) -> dict[str, Any]:
        """Run a case in other orders that its semaphores allow."""
        artifact, arrays = self.artifacts[request["case"]], _offers(request["arrays"])
        fuzz_order(artifact, arrays, orders=request["orders"])
        return {}


def _offers(arrays: Mapping[str, Sequence[Any]]) -> dict[str, Offer]:
    return {name: _offer(*array) for name, array in arrays.items()}


def _offer(name: str, shape: Sequence[int], data: bytes) -> Offer:
    dtype = DTYPES[name]
    array = np.frombuffer(data, storage(dtype)).reshape(shape).copy()
    return Offer(CALL, natural(dtype), array.shape, dtype, lambda: array)


# --------------------------------------------------------------------------------------------------

FORKED.set_forkserver_preload([__name__, "nkic.api.preloaded"])
_LARGEST = (1 << 31) - 1  # bytes of an answer
# What an answer must hold, unless it says that the candidate failed.
_ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "compile": {"data": bytes, "warnings": list},
    "load": {"data": bytes, "warnings": list},
    "run": {"outputs": dict, "time_ns": (int, float)},
    "cause": {"cause": list},
    "proof": {"proof": list},
    "time": {"sensitivity": dict},
    "fuzz": {},
}
_GRACE = 5  # seconds for a process to end


class Ended(Exception):
    """The candidate's process ended, or was ended, before it answered; the text says why.

    `by` says what ended it: "time", "memory", or the "process" itself.
    """

    def __init__(self, text: str, by: str = "process") -> None:
        super().__init__(text)
        self.by = by


_live: set[Process] = set()


def end_those_of(threads: Collection[threading.Thread]) -> None:
    """End the processes that these threads wait for."""
    for process in [*_live]:
        if process.thread in threads:
            process.kill()


class Process:
    """The process of one candidate, which lives no longer than the `with` block."""

    def __init__(self, seconds: float, memory: int) -> None:
        self.seconds, self.memory, self.thread = seconds, memory, threading.current_thread()

    def __enter__(self) -> Process:
        self._folder = TemporaryDirectory(prefix="nkic-candidate-")  # empty: it has no neighbours
        self._process, self._connection = started(serve, self.memory, self._folder.name)
        self._left = self.seconds  # of its own work, not of the reference's
        _live.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        _live.discard(self)
        self._connection.close()
        self.kill()
        self._process.join(_GRACE)
        self._folder.cleanup()

    def kill(self) -> None:
        self._process.kill()

    def mib(self) -> float | None:
        """Return the most memory that the process has held so far, as the system counts it; None if
        the process has ended, or the system does not say.
        """
        with suppress(OSError):
            text = Path(f"/proc/{self._process.pid}/status").read_text()
            if (found := re.search(r"^VmHWM:\s*(\d+) kB$", text, re.MULTILINE)) is not None:
                return round(int(found[1]) / 1024, 1)
        return None

    def ask(self, do: str, **request: Any) -> Mapping[str, Any]:
        """Return the answer to a request. Raises `Ended`."""
        began = time.monotonic()
        try:
            self._connection.send_bytes(msgpack.packb({"do": do, **request}))
            is_done = self._connection.poll(max(0.0, self._left))
            self._left -= time.monotonic() - began
            if not is_done:
                text = f"it takes more than the {self.seconds:g} s that the task allows"
                raise Ended(text, "time")
            answer: Any = msgpack.unpackb(self._connection.recv_bytes(_LARGEST))
        except (EOFError, OSError, ValueError) as error:
            self._process.join(_GRACE)
            code = self._process.exitcode
            raise Ended(f"its process ended with code {code}, without an answer") from error
        wanted = _ANSWERS[do] if isinstance(answer, dict) and "failed" not in answer else {}
        if not isinstance(answer, dict) or not all(
            isinstance(answer.get(key), kinds) for key, kinds in wanted.items()
        ):
            raise Ended("its process gave an answer that is none")
        if answer.get("by") == "memory":
            raise Ended("it takes more memory than the task allows", "memory")
        return answer
