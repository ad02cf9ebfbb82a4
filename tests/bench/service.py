"""`python -m tests.bench.service [--seconds N] [--jobs N] [--clients N]`: load on `nkic serve`.

Clients send candidates without a pause, one a request: most are right, some wrong, refused or
endless, and between them come bodies that are none. Every candidate is new. Prints Markdown;
docs/benchmarks.md keeps the last result.
"""

import argparse
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

import httpx
import psutil

from tests.judge.test_cheats import GOOD, RACING, UNGUARDED
from tests.serve.process import Served, served

LIMIT = 20  # seconds of a candidate
LATE = "it takes more than the"
KINDS = {  # text, and how many of a hundred requests
    "right": (GOOD, 50),
    "wrong": (GOOD.replace("nl.divide(e,", "nl.multiply(e,"), 18),
    "without its guard": (UNGUARDED, 10),
    "refused": ("import os\nos.system('true')\n", 10),
    "endless": (RACING, 2),
}
BODIES = [b"[" * 100_000, b"{", b"\xff" * 1000, b"{}", b'{"task": "softmax", "candidates": [7]}']
WANTED = {"right": {"correct"}, "wrong": {"wrong"}, "without its guard": {"correct"}}
WANTED |= {"refused": {"refused"}, "endless": {"refused"}}


class _Load:
    def __init__(self, service: Served, seconds: float) -> None:
        self.service, self.until = service, time.monotonic() + seconds
        self.seconds: list[float] = []
        self.kinds: Counter[str] = Counter()
        self.codes: Counter[int] = Counter()
        self.lost: list[str] = []
        self.memory: list[int] = []

    def client(self, number: int) -> None:
        random, sent = Random(number), 0
        with httpx.Client(base_url=self.service.url, timeout=300) as http:
            while time.monotonic() < self.until:
                sent += 1
                kind = random.choices([*KINDS, "body"], [*(k[1] for k in KINDS.values()), 10])[0]
                if kind == "body":
                    header = {"content-type": "application/json"}
                    told = http.post("/evaluate", content=random.choice(BODIES), headers=header)
                    self.codes[told.status_code] += 1
                    continue
                text = f"{KINDS[kind][0]}# {number} {sent}\n"
                self._candidate(http, kind, {"name": f"{number}-{sent}.py", "text": text})

    def _candidate(self, http: httpx.Client, kind: str, candidate: dict[str, str]) -> None:
        began = time.monotonic()
        told = http.post("/evaluate", json={"task": "softmax", "candidate": candidate})
        self.codes[told.status_code] += 1
        if told.status_code == 200:
            evaluation = told.json()["evaluations"][0]["evaluation"] or {}
            right = evaluation.get("candidate") == candidate["name"]
            late = kind != "endless" and evaluation.get("problem", "").startswith(LATE)
            if right and (late or evaluation["status"] in WANTED[kind]):
                self.seconds.append(time.monotonic() - began)
                self.kinds["ended by the limit of time" if late else kind] += 1
                return
        self.lost.append(f"{kind}: {told.status_code} {told.text[:200]}")

    def watch(self) -> None:
        started = psutil.Process(self.service.process.pid)
        family = [started, *started.children()]  # not what is forked for candidates
        while time.monotonic() < self.until:
            self.memory.append(max(one.memory_info().rss for one in family))
            time.sleep(1)


def bench_service(seconds: float, jobs: int, clients: int) -> None:
    """Run the load and print its table."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder), "-j", str(jobs), "-q", seconds=LIMIT) as service,
    ):
        load, began = _Load(service, seconds), time.monotonic()
        threads = [threading.Thread(target=load.client, args=(n,)) for n in range(clients)]
        for thread in [*threads, watching := threading.Thread(target=load.watch)]:
            thread.start()
        for thread in [*threads, watching]:
            thread.join()
        took = time.monotonic() - began
    times = sorted(load.seconds)
    points = {p: times[min(len(times) - 1, len(times) * p // 100)] for p in (50, 90, 99)}
    half = len(load.memory) // 2
    first, last = (max(part) >> 20 for part in (load.memory[5:half], load.memory[half:]))
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(load.kinds.items()))
    rows = {
        "time": f"{took:.0f} s, -j {jobs}, {clients} clients",
        "candidates": f"{len(times):,}: {kinds}",
        "a second": f"{len(times) / took:.2f}",
        "latency": ", ".join(f"p{p} {value:.2f} s" for p, value in points.items()),
        "answers by status": ", ".join(f"{n} of {code}" for code, n in sorted(load.codes.items())),
        "lost or judged wrongly": f"{len(load.lost)}",
        "memory of the service": f"at most {first} MiB in the first half, {last} in the second",
        "load of the machine": f"{psutil.getloadavg()[0]:.1f} on {psutil.cpu_count()} cores",
    }
    print("| | |\n|---|---|")
    print("\n".join(f"| {name} | {value} |" for name, value in rows.items()))
    print(*load.lost[:5], sep="\n")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seconds", type=float, default=60)
    words.add_argument("--jobs", type=int, default=2)
    words.add_argument("--clients", type=int, default=8)
    bench_service(**vars(words.parse_args()))
