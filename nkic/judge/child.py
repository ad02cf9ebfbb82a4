"""The process of one candidate: it compiles and runs, and answers in bytes.

Nothing here knows what is expected. The candidate's text is evaluated in the closed world, under
limits that the process sets itself before it reads a word of it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from nkic.api import Artifact, compile, fuzz_order, run
from nkic.api.errors import ApiError, RunError, raising
from nkic.arrays.failures import CALL
from nkic.arrays.offers import Offer, natural
from nkic.base.render import json_lines
from nkic.base.source import SourceFile
from nkic.judge.sensitivity import sensitivity
from nkic.limits.worker import answer_requests
from nkic.machine.codecs import storage
from nkic.machine.dtypes import DTYPES
from nkic.report.views.summary import summary

Message = Mapping[str, Any]
STEPS = 1_000_000_000  # of the evaluation of one specialisation: the time limit comes first


def serve(connection: Connection, memory: int, folder: str) -> None:
    """Answer requests until the connection ends. A candidate may import what `folder` holds."""
    os.chdir(folder)
    warnings.simplefilter("ignore")  # the artifact has them
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
            found = [json.loads(json_lines.line(d, _no_source)) for d in error.diagnostics]
            return {"failed": str(error), "diagnostics": found}
        except MemoryError:
            return {"failed": "it takes more memory than the task allows", "diagnostics": []}

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
            name=request["kernel"],
            inputs=request["inputs"],
            consts=request["consts"],
            target=request["target"],
            nki=request["nki"],
            grid=request["grid"],
            lnc=request["lnc"],
            **request["optimise"],
            limits={"steps": STEPS},
        )
        self.artifacts[request["case"]] = artifact
        found = [json.loads(json_lines.line(d, _no_source)) for d in artifact.warnings]
        return {"data": artifact.data, "warnings": found}

    def _run(self, request: Message) -> dict[str, Any]:
        """Run a case on inputs."""
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
            answer |= {
                "report": json.loads(result.json),
                "metrics": summary(insight) if insight else {},
                "verdict": result.verdict.splitlines(),
                "what_if": [
                    {"name": a.name, "text": a.text, "gain": a.gain, "advice": a.is_advice}
                    for a in (insight.verdict.answers if insight else ())
                ],
            }
        return answer

    def _time(self, request: Message) -> dict[str, Any]:
        """Time a case's program again with other figures of the clock."""
        executable = self.artifacts[request["case"]].executable
        return {"sensitivity": sensitivity(executable, request["shares"])}

    def _fuzz(self, request: Message) -> dict[str, Any]:
        """Run a case in other orders that its semaphores allow."""
        artifact, arrays = self.artifacts[request["case"]], _offers(request["arrays"])
        fuzz_order(artifact, arrays, orders=request["orders"])
        return {}


def _no_source(path: str) -> None:
    """Return no source: the reader of an evaluation has the candidate's text."""


def _offers(arrays: Mapping[str, Sequence[Any]]) -> dict[str, Offer]:
    return {name: _offer(*array) for name, array in arrays.items()}


def _offer(name: str, shape: Sequence[int], data: bytes) -> Offer:
    dtype = DTYPES[name]
    array = np.frombuffer(data, storage(dtype)).reshape(shape).copy()
    return Offer(CALL, natural(dtype), array.shape, dtype, lambda: array)
