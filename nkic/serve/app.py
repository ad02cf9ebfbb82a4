"""The service's addresses, who may use them, and the answers."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from hashlib import sha256
from math import inf
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import uvicorn
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client import Counter as Total
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import nkic
from nkic.base.diagnostics import NkicError, bad_value
from nkic.judge import Candidate, Evaluation, Judge, Pool, Task
from nkic.judge.schemas import OBJECT, TEXT, evaluation_schema, list_of
from nkic.serve.limits import Limits, Refused, is_here

# ------------------------------------------------------------------------------------------------
# Reads what strangers send: every body becomes a request, or an error with a status of 4xx.

LONGEST_NAME = 255
WAIT = 60.0  # seconds that a request waits, unless it says another number


class Asked(NamedTuple):
    """Candidates of a task, and for how many seconds the answer may wait for them."""

    task: str
    candidates: list[Candidate]
    wait: float


async def read(request: Request, limits: Limits) -> Asked:
    """Return what a request asks. Raises `Refused`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "the content type must be application/json")
    try:
        async with asyncio.timeout(limits.slow):
            body = await _bytes(request, limits.body)
    except TimeoutError:
        raise Refused(408, f"the body did not come within {limits.slow:g} s") from None
    except ClientDisconnect:
        raise Refused(400, "the body ended early") from None
    try:
        value = json.loads(
            body.decode(),
            parse_constant=_no_number,
            parse_int=_integer,
            object_pairs_hook=_distinct,
        )
    except RecursionError:
        raise Refused(400, "the body nests too deeply") from None
    except ValueError as error:  # also of decoding
        raise Refused(400, f"the body is not JSON: {error}") from None
    return asked(value, limits)


async def _bytes(request: Request, most: int) -> bytes:
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 18 or int(length) > most:
        raise Refused(413, f"the body is larger than {most:,} bytes")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise Refused(413, f"the body is larger than {most:,} bytes")
    return bytes(body)


def asked(value: Any, limits: Limits) -> Asked:
    """Return what a value of JSON asks. Raises `Refused`."""
    table = _object(value, "the body", {"task", "candidate", "candidates", "wait"})
    task, wait = table.get("task"), table.get("wait", WAIT)
    if not isinstance(task, str):
        _refuse("`task` must be the name of a task")
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= limits.wait:
        _refuse(f"`wait` must be a number of seconds up to {limits.wait:g}")
    if ("candidate" in table) == ("candidates" in table):
        _refuse("the body must have `candidate` or `candidates`")
    given = table.get("candidates", [table.get("candidate")])
    if not isinstance(given, list) or not given:
        _refuse("`candidates` must be a list of at least one")
    if len(given) > limits.batch:
        raise Refused(413, f"there are more than {limits.batch} candidates")
    return Asked(task, [_candidate(one) for one in given], float(wait))


def _candidate(value: Any) -> Candidate:
    table = _object(value, "a candidate", {"name", "text", "neff"})
    name = table.get("name", "candidate.py" if "text" in table else "candidate.neff")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        _refuse(f"`name` must be up to {LONGEST_NAME} printable characters")
    text, neff = table.get("text"), table.get("neff")
    if (text is None) == (neff is None) or not isinstance(text if neff is None else neff, str):
        _refuse("a candidate must have `text`, or `neff` in base64")
    try:
        name.encode()
        data = text.encode() if text is not None else base64.b64decode(str(neff), validate=True)
    except ValueError:  # lone surrogates; binascii.Error
        _refuse("a candidate is neither text nor base64")
    candidate = Candidate(name, data)
    if candidate.is_compiled != (text is None):
        _refuse("a compiled kernel must come as `neff`, and a text as `text`")
    return candidate


def _object(value: Any, what: str, keys: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(f"{what} must be an object")
    unknown = sorted(value.keys() - keys)
    if unknown:
        _refuse(f"{what} has no `{unknown[0][:40]}`; it may have {', '.join(sorted(keys))}")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _integer(text: str) -> int:
    if len(text) > 20:
        raise ValueError(f"a number has {len(text):,} digits")
    return int(text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is there twice: another reader would take the other value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _refuse(text: str) -> NoReturn:
    raise Refused(422, text)


# ---- The service's description, as OpenAPI has it -----------------------------------------------

Json = dict[str, Any]


def document(limits: Limits) -> Json:
    """Return the document of `/openapi.json`."""
    one = _body({"$ref": "#/components/schemas/Job"})
    many = _body(_object_schema({"evaluations": list_of({"$ref": "#/components/schemas/Job"})}))
    error = _body(_object_schema({"error": TEXT}))
    refusals = {
        "400": "The body is not JSON.",
        "401": "A token is needed.",
        "404": "There is no such task or evaluation.",
        "408": "The body came too slowly.",
        "413": "The body or the batch is too large.",
        "415": "The body is of another content type.",
        "422": "The body is JSON, but not what it must be.",
        "429": "Too much is not done yet: Retry-After says when to come again.",
        "503": "The service is about to end.",
    }

    def answers(*codes: str, **good: Json) -> Json:
        bad = {code: {"description": refusals[code], "content": error} for code in codes}
        return {"responses": {code.strip("_"): told for code, told in good.items()} | bad}

    done = {"description": "All are done.", "content": many}
    later = {"description": "Some are not done; ask again by id.", "content": many}
    text = {"text/event-stream": {"schema": TEXT}}
    found: Json = {"description": "How far it is.", "content": one}
    ids = _parameter("id", "query", list_of(TEXT))
    anything = {"description": "Told.", "content": _body(OBJECT)}
    asked = {"required": True, "content": _body({"$ref": "#/components/schemas/Asked"})}
    evaluate = answers(*refusals, _200=done, _202=later) | {"requestBody": asked}
    plain = {"description": "In Prometheus's form.", "content": {"text/plain": {}}}
    free: Json = {"security": []}
    return {
        "openapi": "3.1.0",
        "info": {"title": "nkic serve", "version": nkic.__version__},
        "security": [{"token": []}],
        "paths": {
            "/evaluate": {"post": evaluate},
            "/evaluations/{id}": {
                "get": answers("401", "404", _200=found, _202=found)
                | {"parameters": [_parameter("id", "path", TEXT)]}
            },
            "/events": {
                "get": answers("401", "404", "422", _200={"description": "Ends.", "content": text})
                | {"parameters": [ids]}
            },
            "/tasks": {"get": answers("401", _200=anything)},
            "/metrics": {"get": answers("401", _200=plain)},
            "/health": {"get": answers("503", _200=anything) | free},
            "/openapi.json": {"get": answers(_200=anything) | free},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Asked": _asked(limits), "Job": _job()},
        },
    }


def _asked(limits: Limits) -> Json:
    candidate = _object_schema(dict.fromkeys(("name", "text", "neff"), TEXT), required=[])
    many = list_of(candidate, 1) | {"maxItems": limits.batch}
    wait = {"type": "number", "minimum": 0, "maximum": limits.wait}
    fields = {"task": TEXT, "candidate": candidate, "candidates": many, "wait": wait}
    either = [{"required": ["candidate"]}, {"required": ["candidates"]}]
    return _object_schema(fields, required=["task"]) | {"oneOf": either}


def _job() -> Json:
    states = {"enum": ["queued", "running", "done", "failed", "returned"]}
    evaluation = {"anyOf": [evaluation_schema(), {"type": "null"}]}
    fields = {"id": TEXT, "task": TEXT, "state": states, "evaluation": evaluation, "problem": TEXT}
    return _object_schema(fields, required=["id", "task", "state", "evaluation"])


def _object_schema(properties: Json, required: list[str] | None = None) -> Json:
    names = sorted(properties) if required is None else required
    table: Json = {**OBJECT, "properties": properties, "additionalProperties": False}
    return table | ({"required": names} if names else {})


def _body(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _parameter(name: str, where: str, schema: Json) -> Json:
    return {"name": name, "in": where, "required": True, "schema": schema}


# ---- What the service holds: evaluations that are asked for, and those that are done ------------
# The pool has the queue. An evaluation's id is the hash of all that it depends on, so that asking
# again is the same evaluation.

AGAIN = ("failed", "returned")  # ends after which asking again begins again


class Job:
    """One evaluation: queued, running, then done, failed (by the task) or returned undone."""

    def __init__(self, id: str, task: str, token: int) -> None:
        self.id, self.task, self.token = id, task, token
        self.ended = asyncio.Event()
        self.future: Future[Evaluation] | None = None
        self.evaluation, self.problem, self.end = b"", "", ""

    @property
    def state(self) -> str:
        running = self.future is not None and self.future.running()
        return self.end or ("running" if running else "queued")

    @property
    def json(self) -> bytes:
        told = {"id": self.id, "task": self.task, "state": self.state}
        head = json.dumps(told | ({"problem": self.problem} if self.problem else {}))
        return head[:-1].encode() + b', "evaluation": ' + (self.evaluation or b"null") + b"}"


class Work:
    """The jobs of the service. Every method runs in the thread of the event loop."""

    def __init__(self, judges: Mapping[str, Judge], pool: Pool, limits: Limits) -> None:
        self.judges, self.pool, self.limits = judges, pool, limits
        self.jobs: dict[str, Job] = {}  # those that are done: the oldest first
        self.held: Counter[int] = Counter()  # jobs that are not done, by token
        self.bytes, self.stopping = 0, False
        self.spent, self.judged = 0.0, 0  # seconds, and candidates that took them
        to = self.registry = CollectorRegistry()
        labels = ("task", "status")
        self.done = Total("nkic_evaluations", "Evaluations that are done.", labels, registry=to)
        self.seconds = Histogram(
            "nkic_evaluation_seconds", "What they took.", ("task",), registry=to
        )
        self.answers = Total("nkic_answers", "Answers, by HTTP status.", ("code",), registry=to)
        Gauge("nkic_held", "Candidates that are not done.", registry=to).set_function(
            self.held.total
        )

    def accept(self, task: str, candidates: Sequence[Candidate], token: int) -> list[Job]:
        """Return the jobs of candidates; all are taken, or none. Raises `Refused`."""
        judge = self.judges.get(task)
        if judge is None:
            known = ", ".join(list(self.judges)[:8])
            raise Refused(404, f"there is no such task; GET /tasks lists them: {known}")
        if self.stopping:
            raise Refused(503, "the service is about to end", {"Retry-After": "30"})
        asked = {judge.key(candidate): candidate for candidate in candidates}
        new = [key for key in asked if key not in self.jobs or self.jobs[key].end in AGAIN]
        for what, held, most in (
            ("queue", self.held.total(), self.limits.queue),
            ("token", self.held[token], self.limits.token),
        ):
            if new and held + len(new) > most:
                text = f"{held} candidates of this {what} are not done; {most} may be"
                raise Refused(429, text, {"Retry-After": str(self._pause(len(new)))})
        for key in new:
            self._begin(judge, key, asked[key], token)
        return [self.jobs[judge.key(candidate)] for candidate in candidates]

    def _begin(self, judge: Judge, key: str, candidate: Candidate, token: int) -> None:
        job = self.jobs[key] = Job(key, judge.task.name, token)
        self.held[token] += 1
        loop = asyncio.get_running_loop()

        def told(_: object) -> None:
            with suppress(RuntimeError):  # the service has ended
                loop.call_soon_threadsafe(self._finish, job)

        job.future = self.pool.submit(judge, candidate)
        job.future.add_done_callback(told)

    def _finish(self, job: Job) -> None:
        if job.end or job.future is None:
            return
        try:
            found = job.future.result(0)
        except NkicError as error:
            self._end(job, "failed", str(error))
        except BaseException as error:
            returned = self.stopping or job.future.cancelled()
            self._end(job, "returned" if returned else "failed", f"{type(error).__name__}")
        else:
            job.evaluation = found.json().encode()
            self.done.labels(job.task, found.status).inc()
            self.seconds.labels(job.task).observe(found.seconds)
            self.spent, self.judged = self.spent + found.seconds, self.judged + 1
            self._end(job, "done")
            self._keep(job)

    def _end(self, job: Job, end: str, problem: str = "") -> None:
        job.end, job.problem, job.future = end, problem, None
        self.held[job.token] -= 1
        job.ended.set()

    def _keep(self, job: Job) -> None:
        self.jobs[job.id] = self.jobs.pop(job.id)  # the youngest
        self.bytes += len(job.evaluation)
        while self.bytes > self.limits.kept:
            oldest = next(one for one in self.jobs.values() if one.end)
            self.bytes -= len(oldest.evaluation)
            del self.jobs[oldest.id]

    async def wait(self, jobs: Iterable[Job], seconds: float) -> bool:
        """Wait until all jobs ended, for some seconds at most; return whether they did."""
        try:
            async with asyncio.timeout(seconds):
                for job in jobs:
                    await job.ended.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """Take no more, return what does not run, and what still runs when the grace is over."""
        self.stopping = True
        for job in [job for job in self.jobs.values() if not job.end]:
            if job.future is not None and job.future.cancel():
                self._return(job)
        asyncio.get_running_loop().call_later(self.limits.grace, self.give_up)

    def give_up(self) -> None:
        """Return what still runs."""
        for job in [job for job in self.jobs.values() if not job.end]:
            self._return(job)

    def _return(self, job: Job) -> None:
        if not job.end:
            self._end(job, "returned", "the service ended before it was judged; ask again")

    def _pause(self, more: int) -> int:
        """Return the seconds after which there may be room for more."""
        mean = self.spent / self.judged if self.judged else 1.0
        return max(1, min(60, round(mean * more / self.pool.width)))


# --------------------------------------------------------------------------------------------------

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
        self.host = ""  # where it listens
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
            name = re.sub(r":\d*$", "", request.headers.get("host", "")).strip("[]")
            if is_here(self.host) and not is_here(name):  # a page's own name can lead here
                text = f"without tokens, requests must be to localhost, not to `{name[:80]}`"
                raise Refused(401, text, {"WWW-Authenticate": "Bearer"})
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


# ------------------------------------------------------------------------------------------------
# Runs the service until it is told to end; then it finishes or returns what it holds.


AGAIN_AFTER = 0.5  # seconds


class _Server(uvicorn.Server):
    """A server that tells its service to end before it waits for open requests."""

    def __init__(
        self, config: uvicorn.Config, service: Service, listens: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._service, self._listens = service, listens
        self._taken = -inf  # when it took a signal
        self.again = False  # it took a SIGINT after another signal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listens()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal of the terminal, which the process that watches this one sends again, for
        one. A second SIGINT returns what runs, so that nobody waits for it.
        """
        if time.monotonic() <= self._taken + AGAIN_AFTER:
            return
        self._taken = time.monotonic()
        if self.should_exit and sig == signal.SIGINT:
            self.again = True
            asyncio.get_running_loop().call_soon_threadsafe(self._service.work.give_up)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        work = self._service.work
        work.stop()
        await super().shutdown(sockets)
        # Nobody may be waiting for what still runs.
        await work.wait([*work.jobs.values()], work.limits.grace)


def run(service: Service, host: str, port: int, listens: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; call `listens` when it listens. Raises `UsageFailed` if it
    cannot, and `KeyboardInterrupt` at a second SIGINT.
    """
    service.host = host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        help = "give another --port if something else listens there"
        raise bad_value(f"cannot listen on {host}:{port}: {error}", help) from None
    config = uvicorn.Config(
        service.app,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=round(service.limits.grace) + 5,
        h11_max_incomplete_event_size=64 << 10,
        http="h11",
    )
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # a terminal that closes ends it, too
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    server = _Server(config, service, listens)
    try:
        server.run([listening])
    except SystemExit:
        raise bad_value("the service did not start", "uvicorn has printed why") from None
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends already
    if server.again:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt
