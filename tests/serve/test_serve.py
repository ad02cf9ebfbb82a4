"""The service: what it answers, what it refuses, and what it holds. Most tests judge nothing."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from uvicorn import Config

from nkic.base.diagnostics import bad_value
from nkic.judge import Candidate, Evaluation, Judge, LocalPool, Pool, read_task
from nkic.serve.app import Service, _Server
from nkic.serve.limits import Limits
from tests.judge.test_cheats import GOOD, REFERENCE, TASK

TEXT = {"name": "a.py", "text": "def k(x): ..."}
TOKEN = "a token of some length"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Held(Pool):
    """Holds what it is given until it is told; with `at_once`, it answers in the same moment."""

    def __init__(self, at_once: bool = True) -> None:
        self.at_once, self.futures = at_once, list[Future[Evaluation]]()
        self.given: list[tuple[Judge, Candidate]] = []

    def __exit__(self, *_: Any) -> None: ...

    @property
    def width(self) -> int:
        return 1

    def submit(self, judge: Judge, candidate: Candidate) -> Future[Evaluation]:
        self.futures.append(Future())
        self.given.append((judge, candidate))
        if self.at_once:
            self.finish(-1)
        return self.futures[-1]

    def finish(self, number: int) -> None:
        judge, candidate = self.given[number]
        self.futures[number].set_result(judge.unjudged(candidate, "not today"))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    folder = tmp_path_factory.mktemp("softmax")
    (folder / "task.toml").write_text(f"name = 'softmax'\n{TASK}")
    (folder / "reference.py").write_text(REFERENCE)
    return Judge(read_task(folder / "task.toml"))


Client = Callable[..., TestClient]


@pytest.fixture
def client(judge: Judge) -> Iterator[Client]:
    """Return what makes a client of a service, of this pool and these limits."""
    opened: list[TestClient] = []

    def make(pool: Pool | None = None, tokens: tuple[str, ...] = (), **limits: Any) -> TestClient:
        service = Service([judge], pool or Held(), tokens, Limits(**limits))
        made = TestClient(service.app, raise_server_exceptions=False)
        opened.append(made.__enter__())  # one event loop for all its requests
        made.app_state = {"service": service}
        return made

    yield make
    for made in opened:
        made.__exit__(None, None, None)


def asks(*candidates: Any, wait: float = 5) -> dict[str, Any]:
    return {"task": "softmax", "candidates": [*candidates] or [TEXT], "wait": wait}


def named(count: int) -> list[dict[str, str]]:
    return [TEXT | {"name": f"{n}.py"} for n in range(count)]


def test_candidates_are_judged_and_the_answer_has_the_evaluations_bytes(
    client: Client, judge: Judge
) -> None:
    answer = client().post("/evaluate", json=asks(*named(2)))
    assert answer.status_code == 200
    first = judge.unjudged(Candidate("0.py", TEXT["text"].encode()), "not today")
    assert f'"evaluation": {first.json()}}}' in answer.text
    jobs = answer.json()["evaluations"]
    assert [job["state"] for job in jobs] == ["done", "done"]
    assert [job["evaluation"]["candidate"] for job in jobs] == ["0.py", "1.py"]
    assert jobs[0]["id"] == judge.key(Candidate("0.py", TEXT["text"].encode()))


def test_one_that_is_not_done_is_asked_for_by_its_id(client: Client) -> None:
    pool = Held(at_once=False)
    at = client(pool)
    answer = at.post("/evaluate", json={"task": "softmax", "candidate": TEXT, "wait": 0})
    (job,) = answer.json()["evaluations"]
    assert answer.status_code == 202 and job["state"] == "queued" and job["evaluation"] is None
    pool.futures[0].set_running_or_notify_cancel()
    running = at.get(f"/evaluations/{job['id']}")
    assert (running.status_code, running.json()["state"]) == (202, "running")
    pool.finish(0)
    done = at.get(f"/evaluations/{job['id']}")
    assert (done.status_code, done.json()["state"]) == (200, "done")
    again = at.post("/evaluate", json=asks())
    assert again.status_code == 200 and again.json()["evaluations"][0] == done.json()
    assert len(pool.given) == 1  # the same evaluation
    assert at.get("/evaluations/beef").status_code == 404


def test_events_tell_of_each_as_it_ends(client: Client) -> None:
    at = client()
    ids = [job["id"] for job in at.post("/evaluate", json=asks(*named(2))).json()["evaluations"]]
    told = at.get("/events", params={"id": ids})
    assert told.headers["content-type"].startswith("text/event-stream")
    events = told.text.strip().split("\n\n")
    assert events[-1] == "event: end\ndata: {}"
    found = [json.loads(event.partition("data: ")[2]) for event in events[:-1]]
    assert {each["id"] for each in found} == {*ids}
    assert {each["state"] for each in found} == {"done"}
    assert at.get("/events").status_code == 422
    assert at.get("/events?id=beef").status_code == 404


JSON = {"content-type": "application/json"}
DEEP = b"[" * 200_000


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    [
        (b"{", JSON, 400, "not JSON"),
        (b"", JSON, 400, "not JSON"),
        (b"\xff\xfe", JSON, 400, "not JSON"),
        (b'{"wait": NaN}', JSON, 400, "NaN is no number"),
        (b'{"wait": %s}' % (b"9" * 5000), JSON, 400, "not JSON: a number has 5,000 digits"),
        (b'{"task": "a", "task": "b"}', JSON, 400, "a key twice"),
        (b'{"task": "a", "candidate": {"text": "a", "text": "b"}}', JSON, 400, "a key twice"),
        (DEEP, JSON, 400, "nests too deeply"),
        (b'{"a":' * 100_000, JSON, 400, "nests too deeply"),
        (b"{}", {"content-type": "text/plain"}, 415, "application/json"),
        (b"{}", {}, 415, "application/json"),
        (b" " * (2 << 20), JSON, 413, "larger than 1,048,576 bytes"),
        (b"{}", JSON | {"content-length": "9" * 30}, 413, "larger than"),
        (b"[]", JSON, 422, "the body must be an object"),
        (b"7", JSON, 422, "the body must be an object"),
    ],
    ids=range(15),
)
def test_hostile_bodies(
    client: Client, body: bytes, headers: dict[str, str], status: int, message: str
) -> None:
    answer = client(body=1 << 20).post("/evaluate", content=body, headers=headers)
    assert answer.status_code == status and message in answer.json()["error"]


KINDS: list[Any] = [None, False, True, 0, -1.5, "", "x", [], [[]], {}, {"a": 1}]


@pytest.mark.parametrize("value", KINDS, ids=map(repr, KINDS))
@pytest.mark.parametrize("field", ["task", "candidate", "candidates", "name", "text", "neff"])
def test_every_field_with_values_of_every_kind(client: Client, field: str, value: Any) -> None:
    """None of them reaches the service's own code as something that it does not expect."""
    body: dict[str, Any] = {"task": "softmax", "candidate": {"text": "def k(x): ..."}}
    (body if field in ("task", "candidate", "candidates") else body["candidate"])[field] = value
    answer = client().post("/evaluate", json=body)
    assert answer.status_code < 500
    if not isinstance(value, str) and value is not None:
        assert answer.status_code == 422


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"task": "other"}, 404, "lists them: softmax"),
        ({"task": 7}, 422, "`task` must be"),
        ({"wait": -1}, 422, "`wait` must be"),
        ({"wait": True}, 422, "`wait` must be"),
        ({"wait": 1e9}, 422, "`wait` must be"),
        ({"candidate": TEXT}, 422, "`candidate` or `candidates`"),
        ({"candidates": []}, 422, "at least one"),
        ({"candidates": TEXT}, 422, "at least one"),
        ({"candidates": [TEXT] * 257}, 413, "more than 256"),
        ({"candidates": [None]}, 422, "a candidate must be an object"),
        ({"candidates": [{}]}, 422, "must have `text`"),
        ({"candidates": [TEXT | {"neff": "AA=="}]}, 422, "must have `text`"),
        ({"candidates": [{"text": 7}]}, 422, "must have `text`"),
        ({"candidates": [{"text": ["a"]}]}, 422, "must have `text`"),
        ({"candidates": [TEXT | {"name": "a\0.py"}]}, 422, "printable"),
        ({"candidates": [TEXT | {"name": "a\n.py"}]}, 422, "printable"),
        ({"candidates": [TEXT | {"name": "a" * 256}]}, 422, "printable"),
        ({"candidates": [TEXT | {"name": ""}]}, 422, "printable"),
        ({"candidates": [{"text": "\ud800"}]}, 422, "neither text nor base64"),
        ({"candidates": [{"neff": "&"}]}, 422, "neither text nor base64"),
        ({"candidates": [{"neff": "AAAA"}]}, 422, "must come as `neff`"),
        ({"candidates": [TEXT | {"path": "/etc/passwd"}]}, 422, "a candidate has no `path`"),
        ({"token": "x"}, 422, "the body has no `token`"),
    ],
    ids=range(23),
)
def test_requests_that_are_json_but_not_right(
    client: Client, change: dict[str, Any], status: int, message: str
) -> None:
    pool = Held()
    body = json.dumps(asks() | change)
    answer = client(pool).post("/evaluate", content=body, headers=JSON)
    assert answer.status_code == status and message in answer.json()["error"]
    assert not pool.given


def test_a_text_may_hold_anything_that_is_text(client: Client) -> None:
    pool = Held()
    assert client(pool).post("/evaluate", json=asks({"text": "\0\x1b[2J"})).status_code == 200
    assert pool.given[0][1].data == b"\0\x1b[2J"


def test_a_body_that_comes_slowly_is_given_up(judge: Judge) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async def ask() -> httpx.Response:
        app: Any = Service([judge], Held(), limits=Limits(slow=0.05)).app
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://a"
        ) as http:
            return await http.post("/evaluate", content=slow(), headers=JSON)

    answer = asyncio.run(ask())
    assert answer.status_code == 408 and "did not come within 0.05 s" in answer.json()["error"]


def test_a_token_is_needed_if_there_are_tokens(client: Client) -> None:
    at = client(tokens=("another token", TOKEN))
    for path in ("/tasks", "/metrics", "/evaluations/a", "/events?id=a"):
        answer = at.get(path)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    for wrong in (f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", "Bearer \xff"):
        header = {"Authorization": wrong.encode("latin-1")}
        assert at.post("/evaluate", json=asks(), headers=header).status_code == 401
    assert at.post("/evaluate", content=DEEP).status_code == 401  # not even read
    assert at.post("/evaluate", json=asks(), headers=BEARER).status_code == 200
    assert at.get("/health").status_code == 200


@pytest.mark.parametrize("tokens", [(), (TOKEN,)])
def test_without_tokens_no_name_of_another_leads_here(
    client: Client, tokens: tuple[str, ...]
) -> None:
    at = client(tokens=tokens)
    at.app_state["service"].host = "127.0.0.1"
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1:8017", "[::1]:8017", "127.9.9.9"):
        header = {**BEARER, "Host": host}
        assert at.post("/evaluate", json=asks(), headers=header).status_code == 200
    for host in ("evil.example", "evil.example:8017", "localhost.evil", "[", "", "127.0.0.1@evil"):
        header = {**BEARER, "Host": host}
        for path in ("/tasks", "/metrics", "/evaluations/a", "/events?id=a"):
            assert (at.get(path, headers=header).status_code == 401) is not bool(tokens)
        answer = at.post("/evaluate", json=asks(), headers=header)
        assert (answer.status_code == 401) is not bool(tokens)


def test_a_full_queue_says_when_to_come_again_and_takes_none_of_a_batch(client: Client) -> None:
    pool = Held(at_once=False)
    at = client(pool, queue=3)
    assert at.post("/evaluate", json=asks(*named(2), wait=0)).status_code == 202
    full = at.post("/evaluate", json=asks(*named(4), wait=0))  # two of them are held already
    assert full.status_code == 429 and int(full.headers["retry-after"]) >= 1
    assert "2 candidates of this queue are not done; 3 may be" in full.json()["error"]
    assert len(pool.given) == 2
    assert at.post("/evaluate", json=asks(*named(3), wait=0)).status_code == 202
    pool.finish(0)
    assert at.post("/evaluate", json=asks(TEXT, wait=0)).status_code == 202


def test_each_token_may_hold_so_many(client: Client) -> None:
    pool = Held(at_once=False)
    at = client(pool, tokens=(TOKEN, "another token"), token=2)
    assert at.post("/evaluate", json=asks(*named(2), wait=0), headers=BEARER).status_code == 202
    assert at.post("/evaluate", json=asks(wait=0), headers=BEARER).status_code == 429
    other = {"Authorization": "Bearer another token"}
    assert at.post("/evaluate", json=asks(wait=0), headers=other).status_code == 202


def test_what_fails_by_the_task_is_told_and_tried_again(client: Client) -> None:
    pool = Held(at_once=False)
    at = client(pool)
    at.post("/evaluate", json=asks(wait=0))
    pool.futures[0].set_exception(bad_value("the reference raised"))
    (job,) = at.post("/evaluate", json=asks(wait=0)).json()["evaluations"]
    first = at.get(f"/evaluations/{job['id']}").json()
    assert len(pool.given) == 2 and first["state"] == "queued"
    pool.futures[1].set_exception(bad_value("the reference raised"))
    again = at.get(f"/evaluations/{job['id']}").json()
    assert (again["state"], again["problem"]) == ("failed", "the reference raised")


def test_the_oldest_evaluations_are_forgotten(client: Client) -> None:
    pool = Held()
    at = client(pool, kept=3000)
    ids = [at.post("/evaluate", json=asks(one)).json()["evaluations"][0]["id"] for one in named(8)]
    found = [at.get(f"/evaluations/{id}").status_code for id in ids]
    assert found == sorted(found, reverse=True) and {*found} == {404, 200}
    service = at.app_state["service"]
    assert service.work.bytes == sum(len(j.evaluation) for j in service.work.jobs.values()) <= 3000


def test_the_end_returns_what_waits_and_what_runs_too_long(client: Client) -> None:
    pool = Held(at_once=False)
    at = client(pool, grace=0.05)
    jobs = at.post("/evaluate", json=asks(*named(3), wait=0)).json()["evaluations"]
    pool.futures[0].set_running_or_notify_cancel()
    pool.futures[1].set_running_or_notify_cancel()
    work = at.app_state["service"].work
    assert at.portal is not None
    at.portal.call(_stopped, work)
    pool.finish(0)
    ends = at.get("/events", params={"id": [job["id"] for job in jobs]}).text
    states = {
        json.loads(line[6:])["id"]: json.loads(line[6:])["state"]
        for line in ends.splitlines()
        if line.startswith('data: {"id')
    }
    assert [states[job["id"]] for job in jobs] == ["done", "returned", "returned"]
    refused = at.post("/evaluate", json=asks(TEXT | {"name": "new.py"}))
    assert refused.status_code == 503 and refused.headers["retry-after"]
    assert at.get("/health").status_code == 503 and work.held.total() == 0


def test_a_service_waits_for_what_nobody_waits_for(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(*_: object) -> None:
        asyncio.get_running_loop().call_later(0.05, pool.finish, 0)

    async def end() -> None:
        service = Service([judge], pool)
        (job,) = service.work.accept("softmax", [Candidate("a.py", b"")], 0)
        pool.futures[0].set_running_or_notify_cancel()
        await _Server(Config(service.app), service, lambda: None).shutdown()
        assert job.state == "done"

    pool = Held(at_once=False)
    monkeypatch.setattr("uvicorn.Server.shutdown", closed)
    asyncio.run(end())


def test_a_terminals_signal_that_is_sent_again_is_one(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [5.0]
    monkeypatch.setattr("nkic.serve.app.time", SimpleNamespace(monotonic=lambda: now[0]))

    async def interrupt() -> None:
        service = Service([judge], Held(at_once=False))
        (job,) = service.work.accept("softmax", [Candidate("a.py", b"")], 0)
        server = _Server(Config(service.app), service, lambda: None)
        for seconds, again in ((0.0, False), (0.3, False), (0.3, True)):
            now[0] += seconds
            server.handle_exit(signal.SIGINT, None)
            assert (server.should_exit, server.again) == (True, again)
        await asyncio.wait_for(job.ended.wait(), 60)
        assert job.state == "returned"

    asyncio.run(interrupt())


async def _stopped(work: Any) -> None:
    work.stop()


def test_tasks_health_metrics_and_the_document(client: Client) -> None:
    at = client()
    at.post("/evaluate", json=asks(*named(2)))
    at.post("/evaluate", content=b"{", headers=JSON)
    (task,) = at.get("/tasks").json()["tasks"]
    assert [case["name"] for case in task["cases"]] == ["wide"]  # the other is hidden
    assert task["name"] == "softmax" and task["limits"]["seconds"] == 60
    assert at.get("/health").json()["held"] == 0
    metrics = at.get("/metrics").text
    assert 'nkic_evaluations_total{status="refused",task="softmax"} 2.0' in metrics
    assert 'nkic_answers_total{code="400"} 1.0' in metrics and "nkic_held 0.0" in metrics
    document = at.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    routes: Any = at.app_state["service"].app.routes
    assert {*document["paths"]} == {route.path for route in routes}
    assert at.get("/nothing").json() == {"error": "Not Found"}
    assert at.get("/evaluate").status_code == 405


def test_a_real_candidate(judge: Judge) -> None:
    judge = Judge(judge.task, families=False, orders=0, sensitivity=False)
    with LocalPool(1) as pool, TestClient(Service([judge], pool).app) as at:
        one = {"name": "good.py", "text": GOOD}
        neff = {"neff": base64.b64encode(b"no kernel").decode()}
        assert at.post("/evaluate", json=asks(neff)).status_code == 422
        (job,) = at.post("/evaluate", json=asks(one, wait=300)).json()["evaluations"]
    found = Evaluation.from_record(job["evaluation"])
    assert found.correct
    assert found.json() == judge.evaluate(Candidate("good.py", GOOD.encode())).json()
