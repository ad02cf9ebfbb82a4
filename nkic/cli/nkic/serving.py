"""`nkic serve`: the judge behind HTTP."""

from __future__ import annotations

import ipaddress
import os

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.cli.common import Session
from nkic.cli.nkic.evaluating import pool_of, secret_of
from nkic.cli.nkic.options import ServeLine
from nkic.judge import Judge, Results, read_task
from nkic.limits import watcher

MAX_TOKENS = 1 << 20  # bytes of the file of tokens
SHORTEST = 16  # characters of a token
LATEST = 10.0  # seconds after the end of all that runs, when the process is killed
EXTRA = {"starlette", "uvicorn", "prometheus_client"}


def serve(line: ServeLine, session: Session) -> int:
    """Serve until the process is told to end."""
    try:
        from nkic.serve.app import Service
        from nkic.serve.limits import Limits
        from nkic.serve.run import run
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        text = f"`nkic serve` needs the package `{package}`"
        raise bad_value(text, "pip install starlette uvicorn prometheus_client") from None
    if not line.tasks:
        raise bad_value("no task is given", "nkic serve TASK.toml")
    if session.limits:
        raise bad_value("`--limit` is about this process", "write [limits] into the tasks")
    tokens = _tokens(line)
    if not tokens and not _is_here(line.host):
        text = f"--host {line.host}: whoever reaches it could use it"
        raise bad_value(text, "give --token FILE, or NKIC_TOKEN in the environment")
    results = Results(line.results) if line.results is not None else None
    secret = secret_of(line.secret)
    judges = [Judge(read_task(path), secret=secret, results=results) for path in line.tasks]
    names = [judge.task.name for judge in judges]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise bad_value(f"two tasks are called `{twice}`", "write name = '…' into one")
    page = watcher.page()
    if page is not None:
        page.grace = line.grace + max(judge.task.seconds for judge in judges) + LATEST
    with pool_of(line.cluster, line.jobs) as pool:
        limits = Limits(queue=line.queue, grace=line.grace)
        session.status(f"serving {', '.join(names)} on http://{line.host}:{line.port}")
        run(Service(judges, pool, tokens, limits), line.host, line.port)
    return 0


def _tokens(line: ServeLine) -> list[str]:
    """Return who may use the service."""
    given = os.environ.get("NKIC_TOKEN", "")
    if line.token is not None:
        given = files.read_bytes(line.token, MAX_TOKENS).decode("utf-8", "replace")
        if not given.strip():
            raise bad_value(f"--token: `{line.token}` is empty", "write a token into it")
    tokens = [token.strip() for token in given.splitlines() if token.strip()]
    if any(len(token) < SHORTEST for token in tokens):
        help = "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        raise bad_value(f"a token has fewer than {SHORTEST} characters", help)
    return tokens


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
