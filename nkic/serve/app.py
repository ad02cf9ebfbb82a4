"""The service's addresses, who may use them, and the answers."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import nkic
from nkic.judge import Judge, Pool, Task
from nkic.serve.bodies import read
from nkic.serve.limits import Limits, Refused
from nkic.serve.openapi import document
from nkic.serve.work import Job, Work

Handler = Callable[[Request], Awaitable[Response]]
JSON = "application/json"
BEAT = 15.0  # seconds between signs of life in a stream of events


class Service:
    """The judges of tasks behind HTTP. Without tokens, whoever reaches it may use it."""

    def __init__(
        self,
        judges: Sequence[Judge],
        pool: Pool,
        tokens: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.work = Work({judge.task.name: judge for judge in judges}, pool, self.limits)
        self._tokens = [sha256(token.encode()).digest() for token in tokens]
        routes: list[tuple[str, str, Handler]] = [
            ("POST", "/evaluate", self.evaluate),
            ("GET", "/evaluations/{id}", self.evaluation),
            ("GET", "/events", self.events),
            ("GET", "/tasks", self.tasks),
            ("GET", "/metrics", self.metrics),
            ("GET", "/health", self.health),
            ("GET", "/openapi.json", self.openapi),
        ]
        self.app = Starlette(
            routes=[Route(path, self._counted(does), methods=[how]) for how, path, does in routes],
            exception_handlers={
                Refused: _refused,
                HTTPException: lambda _, e: _error(e.status_code, e.detail, e.headers),
                Exception: lambda *_: _error(500, "the service has a bug; its log says more"),
            },
        )

    async def evaluate(self, request: Request) -> Response:
        """Judge candidates: 200 if all are done in time, 202 if not."""
        token = self._token(request)
        asked = await read(request, self.limits)
        jobs = self.work.accept(asked.task, asked.candidates, token)
        done = await self.work.wait(jobs, asked.wait)
        body = b'{"evaluations": [' + b", ".join(job.json for job in jobs) + b"]}"
        return Response(body, 200 if done else 202, media_type=JSON)

    async def evaluation(self, request: Request) -> Response:
        """Say how far an evaluation is."""
        self._token(request)
        job = self._job(request.path_params["id"])
        return Response(job.json, 200 if job.end else 202, media_type=JSON)

    async def events(self, request: Request) -> Response:
        """Send an event for each evaluation as it ends."""
        self._token(request)
        ids = request.query_params.getlist("id")
        if not 0 < len(ids) <= self.limits.batch:
            raise Refused(422, f"name evaluations: /events?id=…&id=…, up to {self.limits.batch}")
        jobs = [self._job(id) for id in dict.fromkeys(ids)]
        return StreamingResponse(_events(jobs), media_type="text/event-stream")

    async def tasks(self, request: Request) -> Response:
        """List the tasks."""
        self._token(request)
        listed = [_described(judge.task) for judge in self.work.judges.values()]
        return JSONResponse({"tasks": listed})

    async def metrics(self, request: Request) -> Response:
        """Say what Prometheus asks for."""
        self._token(request)
        return Response(generate_latest(self.work.registry), media_type=CONTENT_TYPE_LATEST)

    async def health(self, request: Request) -> Response:
        """Say whether the service takes requests."""
        ending = self.work.stopping
        told = {"status": "ending" if ending else "ok", "held": self.work.held.total()}
        return JSONResponse({**told, "nkic": nkic.__version__}, 503 if ending else 200)

    async def openapi(self, request: Request) -> Response:
        """Describe the service."""
        return JSONResponse(document(self.limits))

    def _job(self, id: str) -> Job:
        job = self.work.jobs.get(id)
        if job is None:
            raise Refused(404, "there is no such evaluation, or it was long ago: ask again")
        return job

    def _token(self, request: Request) -> int:
        """Return whose request it is. Raises `Refused`."""
        if not self._tokens:
            return 0
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        digest = sha256(given.strip().encode("utf-8", "replace")).digest()
        known = [hmac.compare_digest(digest, token) for token in self._tokens]  # always all
        if kind.lower() != "bearer" or True not in known:
            text = "a token is needed: `Authorization: Bearer TOKEN`"
            raise Refused(401, text, {"WWW-Authenticate": "Bearer"})
        return known.index(True)

    def _counted(self, handler: Handler) -> Handler:
        async def counted(request: Request) -> Response:
            try:
                response = await handler(request)
            except Refused as refused:
                response = _refused(request, refused)
            self.work.answers.labels(str(response.status_code)).inc()
            return response

        return counted


async def _events(jobs: Sequence[Job]) -> AsyncIterator[bytes]:
    waiting = {asyncio.ensure_future(job.ended.wait()): job for job in jobs}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, timeout=BEAT, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                yield b": waiting\n\n"
            for each in done:
                yield b"event: evaluation\ndata: " + waiting.pop(each).json + b"\n\n"
        yield b"event: end\ndata: {}\n\n"
    finally:
        for each in waiting:
            each.cancel()


def _described(task: Task) -> dict[str, Any]:
    """Return what a candidate's author may know of a task."""
    cases = [
        {"name": case.name, "inputs": {n: str(k) for n, k in case.inputs.items()}}
        for case in task.cases
        if not case.hidden
    ]
    limits = {"seconds": task.seconds, "memory": task.memory}
    told = {"name": task.name, "sha256": task.sha256, "kernels": task.kernels}
    return {**told, "target": task.target, "nki": task.nki, "cases": cases, "limits": limits}


def _refused(request: Request, error: Any) -> Response:
    return _error(error.status, error.text, error.headers)


def _error(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    if status >= 500:
        logging.getLogger("uvicorn.error").log(logging.ERROR, "%d: %s", status, text)
    return JSONResponse({"error": text}, status, headers)
