"""Test every field of every report against a separate count (tests/harness/recount.py)."""

import base64
import json
import re
from collections import Counter
from functools import cache
from html import unescape
from typing import Any, NamedTuple

import numpy as np
import pytest

import nkic
from nkic.base.source import SourceFile
from nkic.report import run_report, traces
from nkic.report.lanes import annotated
from nkic.report.page import page
from nkic.report.profile import METRICS, profile, summary
from nkic.report.verdict import Insight
from tests.faults.cases import CORES
from tests.harness.recount import SHORT, Costs, Recount
from tests.harness.traced import SAMPLES

NAMES = ("06_matmul", "10_attention", "15_language", "two_cores")
# Of trn2: operations and bytes per second of a core, alone and beside another (docs/timing.md).
PEAK, RATE = 78.6432e12, {1: 404.8e9, 2: 368e9}
every_run = pytest.mark.parametrize("name", NAMES)


class Run(NamedTuple):
    result: nkic.Result
    found: Insight
    own: Recount
    record: dict[str, Any]
    cores: int


@cache
def made(name: str) -> Run:
    source = SourceFile("two.py", CORES) if name == "two_cores" else None
    artifact = nkic.compile(source or str(SAMPLES / name / "kernel.py"), embed_source=True)
    result = nkic.run(artifact, fill="randn(0)")
    assert result.insight is not None
    own = Recount(result.insight.trace, result.insight.path)
    return Run(
        result, result.insight, own, run_report.record(result.run), artifact.executable.cores
    )


def cycles(time: int) -> int:
    """Convert picoseconds to cycles of trn2's clock of 1.2 GHz."""
    return round(time * 12 / 10_000)


# ---- the vendor's names --------------------------------------------------------------------


@every_run
def test_every_metric_of_the_summary(name: str) -> None:
    _, found, own, _, cores = made(name)
    values, end = summary(found), found.trace.end
    seconds = end / 1e12
    there: dict[str, float] = {"total_time": seconds}
    for word, short in (("tensor", "PE"), ("vector", "DVE"), ("scalar", "ACT"), ("gpsimd", "POOL"),
                        ("sync", "SP")):  # fmt: skip
        mine = [e for e in own.executed if own.engine(e) == short]
        active = own.covered(_held(own, {short}))
        there[f"{word}_engine_active_time"] = active / 1e12
        there[f"{word}_engine_active_time_percent"] = active / end
        there[f"{word}_engine_instruction_count"] = len(mine)
    moved = [e for e in own.executed if own.engine(e) == "DMA"]
    some, dma = own.covered(_held(own, {*SHORT.values()})), own.covered(_held(own, {"DMA"}))
    there |= {"total_active_time": some / 1e12, "total_active_time_percent": some / end}
    there |= {"dma_active_time": dma / 1e12, "dma_active_time_percent": dma / end}
    there["dma_transfer_count"] = len(moved)
    there["dma_transfer_total_bytes"] = total = sum(e.bytes for e in moved)
    there["dma_transfer_average_bytes"] = total / len(moved)
    read, written = (sum(own.hbm(e)[i] for e in own.executed) for i in (0, 1))
    flops = sum(own.flops(e) for e in own.executed)
    products = [e for e in own.executed if own.flops(e)]
    there |= {"hbm_read_bytes": read, "hbm_write_bytes": written, "model_flops": flops}
    there["matmul_instruction_count"] = len(products)
    peak, rate = PEAK * cores, RATE[cores] * cores
    there["mfu_estimated_percent"] = flops / (peak * seconds)
    there["mbu_estimated_percent"] = (read + written) / (rate * seconds)
    there["mm_arithmetic_intensity"] = flops / (read + written)
    there["peak_flops_bandwidth_ratio"] = peak / rate
    moving = sum(own.moving_flops(e) for e in own.executed)
    there |= {"transpose_flops": moving, "hardware_flops": flops + moving}
    there["hfu_estimated_percent"] = (flops + moving) / (peak * seconds)
    for memory in ("sbuf", "psum"):
        there[f"{memory}_read_bytes"], there[f"{memory}_write_bytes"] = own.on_chip(memory)
    there |= {"spill_save_bytes": 0, "spill_reload_bytes": 0}
    assert values == pytest.approx(there, rel=1e-9, abs=1e-18)
    assert METRICS.keys() == there.keys()


def _held(own: Recount, engines: set[str]) -> list[tuple[int, int]]:
    """Return when instructions, or triggers of transfers, occupied one of these."""
    spans = [(e.start, e.free) for e in own.executed if own.engine(e) in engines]
    triggers = (e for e in own.events if SHORT[e.triggered_by.value] in engines)
    return [*spans, *((e.ready, e.ready + e.trigger) for e in triggers)]


# ---- a row for every instruction -----------------------------------------------------------


@every_run
def test_every_column_of_the_counters(name: str) -> None:
    _, found, own, _, _ = made(name)
    rows = list(traces.rows(found))
    runs: Counter[int] = Counter()
    numbers = [n for n, e in enumerate(own.events) if e.record.row is not None]
    assert [row["event"] for row in rows] == numbers
    for row, number in zip(rows, numbers, strict=True):
        event = own.events[number]
        stream, place = found.trace.streams[event.stream], event.record.place
        runs[place] += 1
        line, inner = own.line(place), own.inner(place)
        stall, waited = max(own.stalls(event), key=lambda pair: pair[1], default=("", 0))
        read, written = own.hbm(event)
        there = {
            "event": number,
            "core": stream.core,
            "engine": own.engine(event),
            "queue": stream.queue,
            "opcode": event.record.row and event.record.row.name,
            "path": line[0],
            "line": line[1],
            "inside": f"{inner[0]}:{inner[1]}" if inner else "",
            "run": runs[place],
            "start_ps": event.start,
            "end_ps": event.free,
            "complete_ps": event.done,
            "stall": stall,
            "stall_ps": waited,
            "critical_ps": own.critical[number],
            "bytes": event.bytes,
            "hbm_read_bytes": read,
            "hbm_write_bytes": written,
            "flops": own.flops(event),
        }
        assert {key: row[key] for key in there} == there
        assert row.keys() - there.keys() <= {"iteration"}


# ---- the profile ---------------------------------------------------------------------------


@every_run
def test_every_field_of_the_profile(name: str) -> None:
    _, found, own, record, _ = made(name)
    got = profile(found, record, {})
    names = Counter(e.record.row.name for e in own.executed if e.record.row is not None)
    assert got["mix"] == dict(names)
    assert got["time_ns"] == found.trace.end / 1000 and got["cycles"] == -(
        -found.trace.end * 12 // 10_000
    )
    assert got["dma_bytes"] == sum(e.bytes for e in own.executed)
    assert [(row["path"], row["line"]) for row in got["lines"]] == sorted(own.lines)
    for row in got["lines"]:
        _same_costs(row, own.lines[row["path"], row["line"]])
    assert len(got["library"]) == len(own.library)
    for row in got["library"]:
        path, _, line = row["inside"].rpartition(":")
        _same_costs(row, own.library[(row["path"], row["line"]), (path, int(line))])
    held: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for event in own.executed:
        stream = found.trace.streams[event.stream]
        held[f"core{stream.core}.{stream.engine.value}"] += event.free - event.start
        counts[f"core{stream.core}.{stream.engine.value}"] += 1
        held[f"core{stream.core}.{event.triggered_by.value}"] += event.trigger_hold
    engines = {
        n: (round(e["busy_ns"] * 1000), e["instructions"]) for n, e in got["engines"].items()
    }
    assert engines == {n: (held[n], counts[n]) for n in engines}
    assert {n for n in (*held, *counts) if held[n] or counts[n]} <= engines.keys()
    for buffer, memory in got["memory"].items():
        assert memory["peak_bytes"] == own.peak(buffer)
        assert memory["peak_bytes"] == sum(row["bytes"] for row in memory["tensors"])
        at = round(memory["peak_at_ns"] * 1000)
        alive = {n: s for n, (a, b, s) in own.alive(buffer).items() if a <= at < b}
        sizes: Counter[tuple[str, int]] = Counter()
        for number, size in alive.items():
            tensor = own.executable.tensors[number]
            sizes[tensor.name, own.line(tensor.place)[1]] += size
        assert {(r["name"], r["line"]): r["bytes"] for r in memory["tensors"]} == sizes
    assert {b for b in ("sbuf", "psum") if own.alive(b)} == got["memory"].keys()


def _same_costs(row: dict[str, Any], there: Costs) -> None:
    def ns(times: Counter[str]) -> dict[str, float]:
        return {name: time / 1000 for name, time in times.items() if time}

    assert row["executions"] == there.runs and row["critical_ns"] == there.critical / 1000
    assert {n: t for n, t in row["busy_ns"].items() if t} == ns(there.busy)
    assert {n: t for n, t in row["trigger_ns"].items() if t} == ns(there.triggers)
    assert row["stall_ns"] == ns(there.stalls)
    assert (row["hbm_read_bytes"], row["hbm_write_bytes"]) == (there.read, there.written)
    assert row["flops"] == there.flops


# ---- the run, and its verdict --------------------------------------------------------------


@every_run
def test_every_figure_of_the_run(name: str) -> None:
    result, found, own, record, _ = made(name)
    assert record["time_ns"] == max(e.done for e in own.events) / 1000
    assert record["instructions"] == len(own.executed)
    assert record["dma_bytes"] == sum(e.bytes for e in own.executed)
    for row in record["outputs"]:
        array = np.asarray(result.outputs[row["name"]]).astype(np.float64)
        assert (row["minimum"], row["maximum"]) == (array.min(), array.max())
        assert row["mean"] == pytest.approx(array.mean(), rel=1e-9, abs=1e-9)
        assert (row["nan"], row["inf"]) == (0, 0) and list(row["shape"]) == list(array.shape)
    count = Counter(own.engine(e) for e in own.executed)
    mix = record["resources"]["instructions"]
    assert {n: c for n, c in mix.items() if c} == dict(count)
    line = run_report.cycles_line(result.run, found.trace.target)
    assert f" {record['cycles']:,} cycles " in line
    assert f"DMA {record['dma_bytes'] / record['time_ns']:.1f} GB/s" in line


@every_run
def test_every_figure_of_the_verdict(name: str) -> None:
    _, found, own, _, cores = made(name)
    verdict, end = found.verdict, found.trace.end
    assert sum(verdict.path.values()) == pytest.approx(1)
    assert verdict.path[verdict.bound] == max(verdict.path.values())
    for short, share in verdict.busy.items():
        held = sum(e.free - e.start for e in own.executed if own.engine(e) == short)
        held += sum(e.trigger_hold for e in own.executed if SHORT[e.triggered_by.value] == short)
        assert share == pytest.approx(held / (end * cores))
    moved = sum(sum(own.hbm(e)) for e in own.executed)
    flops = sum(own.flops(e) for e in own.executed)
    assert verdict.hbm_rate == pytest.approx(moved * 1000 / end)  # GB/s
    assert verdict.mbu == pytest.approx(moved / (RATE[cores] * cores * end / 1e12))
    assert verdict.mfu == pytest.approx(flops / (PEAK * cores * end / 1e12))
    ranked = sorted((c.critical for c in own.lines.values() if c.critical), reverse=True)
    assert [one.share for one in verdict.hot] == [time / end for time in ranked[: len(verdict.hot)]]
    for one in verdict.hot:
        path, _, number = one.line.rpartition(":")
        (cost,) = [
            c for (p, n), c in own.lines.items() if n == int(number or 0) and p.endswith(path)
        ]
        assert cost.critical == pytest.approx(one.share * end)
    assert (verdict.sbuf_peak, verdict.psum_peak) == (own.peak("sbuf"), own.peak("psum"))
    for answer in verdict.answers:
        assert answer.gain == pytest.approx(max(0, 1 - answer.time_ps / end))
        assert answer.time_ps <= end or answer.gain == 0
    text = "\n".join(verdict.lines)
    assert f"({verdict.hbm_rate:.1f} GB/s)" in text


# ---- annotated source, as text and on the page ---------------------------------------------


def cells(own: Recount, cost: Costs) -> tuple[str, str, str, str, str]:
    """Return the margin of a line, without the bytes."""
    end, time = own.trace.end, sum(cost.busy.values())
    waits = sorted(((-t, cause) for cause, t in cost.stalls.items() if t))[:2]
    most = max(cost.busy.values(), default=0)
    main = next((n for n, t in cost.busy.items() if t == most), "")
    return (
        f"{100 * cost.critical / end:.1f}%" if cost.critical else "",
        f"{cycles(time):,}" if time else "",
        main,
        f"{cost.runs:,}" if cost.runs else "",
        ", ".join(f"{cause} {cycles(-t):,}" for t, cause in waits),
    )


def in_bytes(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]


@every_run
def test_every_margin_of_the_annotated_source(name: str) -> None:
    _, found, own, _, _ = made(name)
    rows = annotated(found, {}).splitlines()
    seen = 0
    for row in rows:
        margin, mark, number = row.rpartition(" | ")
        if not mark or not number.strip().isdigit():
            continue
        (cost,) = [c for (_, n), c in own.lines.items() if n == int(number)]
        for cell in (*cells(own, cost), f"{cost.runs:,}" if cost.runs else ""):
            assert cell in margin, (row, cell)
        if cost.read + cost.written:
            shown = in_bytes(re.findall(r"[\d.]+ (?:B|KiB|MiB)$", margin.rstrip())[0])
            assert shown == pytest.approx(cost.read + cost.written, rel=0.06)
        seen += 1
    assert seen == len([line for line in own.lines if line[1]])


@every_run
def test_every_number_of_the_page(name: str) -> None:
    result, found, own, _, cores = made(name)
    text = page(found, result.run, own.executable.sources)
    rows = [
        (re.findall(r'data-line="(.*?)"', row)[0], row)
        for row in re.findall(r'<tr id="[^"]*" class="costs">(.*?)</tr>', text, re.S)
    ]
    assert len(rows) == len([line for line in own.lines if line[1]])
    for line, inside in rows:
        path, _, number = unescape(line).rpartition(":")
        got = [unescape(c) for c in re.findall(r"<td[^>]*>(.*?)</td>", inside, re.S)]
        cost = own.lines[path, int(number)]
        assert tuple(got[:5]) == cells(own, cost)
        if got[5]:
            assert in_bytes(got[5]) == pytest.approx(cost.read + cost.written, rel=0.06)
        else:
            assert cost.read + cost.written == 0
    (raw,) = re.findall(r'id="data">(.*?)</script>', text, re.S)
    data = json.loads(raw)

    def column(name: str, kind: str) -> list[Any]:
        return list(np.frombuffer(base64.b64decode(data["events"][name]), kind).tolist())

    assert column("stream", "<u2") == [e.stream for e in own.events]
    assert column("start", "<f8") == [e.start for e in own.events]
    assert column("done", "<f8") == [e.done - e.start for e in own.events]
    assert column("bytes", "<f8") == [e.bytes for e in own.events]
    longest = [max(own.stalls(e), key=lambda p: p[1], default=("", 0)) for e in own.events]
    assert column("wait", "<f8") == [time for _, time in longest]
    assert [data["causes"][n] for n in column("cause", "u1")] == [cause for cause, _ in longest]
    for memory in data["memory"]:
        alive = own.alive(memory["name"].lower())
        starts, ends, sizes = (
            np.frombuffer(base64.b64decode(memory[k]), "<f8") for k in ("start", "end", "bytes")
        )
        got_lives = sorted(zip(starts, ends, sizes, strict=True))
        assert got_lives == sorted(alive.values())
    for answer in found.verdict.told:
        saved = f"{100 * (1 - answer.time_ps / found.trace.end):.1f}%"
        number, us = '<td class="number">', f"{answer.time_ps / 1e6:,.2f} us"
        assert f"{number}{saved}</td>{number}{us}</td>" in text
    moved = sum(sum(own.hbm(e)) for e in own.executed)
    flops = sum(own.flops(e) for e in own.executed)
    if flops:
        reached = flops * 1000 / found.trace.end
        can = min(PEAK * cores, RATE[cores] * cores * flops / moved) / 1e9
        words = f"{flops / moved:.1f} operations per byte, {reached / 1000:.2f} of "
        assert f"{words}{can / 1000:.2f} attainable TFLOP/s" in text
