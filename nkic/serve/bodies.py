"""Reads what strangers send: every body becomes a request, or an error with a status of 4xx."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, NamedTuple, NoReturn

from starlette.requests import ClientDisconnect, Request

from nkic.judge import Candidate
from nkic.serve.limits import Limits, Refused

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
        value = json.loads(body.decode(), parse_constant=_no_number)
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
    if (text is None) == (neff is None) or not isinstance(text or neff or "", str):
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


def _refuse(text: str) -> NoReturn:
    raise Refused(422, text)
