"""Test reports as text and for tools: every figure against a separate count from the trace."""

import gzip
import json
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nkic.base.source import SourceFile
from nkic.machine.targets import SHORT_NAMES, Buffer, Engine
from nkic.report import lanes, traces
from nkic.report.critical import name_of
from nkic.report.lanes import NOTE, annotated
from nkic.report.profile import METRICS, summary
from nkic.report.verdict import Insight, insight
from nkic.simulate import Result
from tests.harness.traced import SAMPLES, executable, recorded, run, sample
from tests.unit.report.test_insight import LINE, naive

NAMES = ("06_matmul", "10_attention", "15_language")
every_sample = pytest.mark.parametrize("name", NAMES)


@cache
def seen(name: str) -> Insight:
    kept = recorded(sample(name))
    return insight(kept.trace, None)


def busy_of(result: Result, engine: str) -> float:
    use = result.engines.get(f"core0.{engine}")
    return use.busy_ns if use is not None else 0.0


def instructions(found: Insight) -> list[Any]:
    return [event for event in found.trace.events if event.record.row is not None]


# ---- annotated source ----------------------------------------------------------------------


def test_annotated_source() -> None:
    program = naive()
    found = insight(recorded(run(program)).trace, None)
    lines = annotated(found, program.sources).splitlines()
    assert lines[0] == "k.py"
    text = program.sources["k.py"]
    assert lines[-2:] == ["", NOTE]
    margins = [line.split(" | ") for line in lines[2:-2]]
    assert [margin[-1][6:] for margin in margins] == [
        text.line(n).rstrip() for n in range(1, len(text.lines))
    ]
    load = next(margin[0] for margin in margins if "dst=b" in margin[-1])
    cost = found.accounts.by_line[next(x for x in found.accounts.by_line if x.number == LINE + 10)]
    cycles = round(cost.time * 1200 / 1_000_000)
    assert load.split()[:4] == [
        f"{100 * cost.critical / found.trace.end:.1f}%", f"{cycles:,}", "DMA", "16"
    ]  # fmt: skip
    assert load.split()[-2:] == ["2.0", "MiB"]


def test_lines_of_the_library_are_below_those_of_the_user() -> None:
    found = seen("15_language")
    text = annotated(found, {})
    total: Counter[Any] = Counter()
    for (line, inner), cost in found.accounts.inside.items():
        total[line] += cost.executions
        assert f"in {inner}" in text and inner.path.startswith("<nkic")
    for line, count in total.items():
        assert 0 < count <= found.accounts.by_line[line].executions


def test_a_line_of_the_library_with_all_costs_of_its_caller_repeats_none() -> None:
    found = seen("15_language")
    rows = [line.split(" |") for line in annotated(found, {}).splitlines() if " |" in line]
    pairs = [(one[0].strip(), two) for one, two in pairwise(rows)]
    inner = [(costs, row[0].strip()) for costs, row in pairs if row[-1].startswith("       in <")]
    assert {"", *(part for costs, part in inner if part != costs)} == {p for _, p in inner}
    assert sum(part == "" for _, part in inner) == 3


def test_text_from_an_artifact_cannot_command_the_terminal() -> None:
    found = seen("06_matmul")
    path = next(line.path for line in found.accounts.by_line if line.number)
    evil = SourceFile(path, "\x1b[31m\n" * 300)
    assert "\x1b" not in annotated(found, {path: evil})


# ---- the timeline as text ------------------------------------------------------------------


@every_sample
def test_lanes_are_as_high_as_they_are_busy(name: str) -> None:
    found = seen(name)
    window = lanes.Window(0, found.trace.end, 70)
    busy: dict[str, int] = defaultdict(int)
    for event in instructions(found):
        name = name_of(found.trace, found.trace.streams[event.stream])
        busy[name] += event.free - event.start - event.table
        busy[SHORT_NAMES[event.triggered_by]] += event.trigger_hold
    for lane in lanes.lanes(found, window):
        assert lane.share == pytest.approx(busy[lane.name] / found.trace.end)
        assert all(0 <= part <= 1 + 1e-9 for part in lane.busy)


def test_a_cell_is_full_only_if_it_is() -> None:
    found = seen("06_matmul")
    text = lanes.text(found, 100)
    assert max(map(len, text.splitlines()[:-1])) <= 100
    row = next(line for line in text.splitlines() if line.startswith("PE"))
    share = next(
        x.share for x in lanes.lanes(found, lanes.Window(0, found.trace.end, 80)) if x.name == "PE"
    )
    assert row.endswith(f"{100 * share:.0f}%")
    assert lanes._level(0.999, 9) == 7 and lanes._level(1e-6, 9) == 1
    assert lanes._level(1.0, 9) == 8 and lanes._level(0.0, 9) == 0
    assert lanes.text(found, 100, lanes.ASCII).isascii()


def test_a_window_shows_its_part_alone() -> None:
    found = seen("06_matmul")
    half = found.trace.end // 2
    first, second = (
        {x.name: x.share for x in lanes.lanes(found, lanes.Window(a, b, 40))}
        for a, b in ((0, half), (half, found.trace.end))
    )
    whole = {x.name: x.share for x in lanes.lanes(found, lanes.Window(0, found.trace.end, 40))}
    for name, share in whole.items():
        assert share == pytest.approx((first[name] + second[name]) / 2, abs=1e-6)


# ---- the vendor's names --------------------------------------------------------------------


@every_sample
def test_summary_against_the_trace(name: str) -> None:
    found = seen(name)
    result, trace = sample(name), found.trace
    values = summary(found)
    assert values["total_time"] == pytest.approx(result.time_ns * 1e-9)
    for engine in ("tensor", "vector", "scalar", "gpsimd"):
        use = result.engines.get(f"core0.{engine}")
        busy, count = (use.busy_ns, use.instructions) if use else (0.0, 0)
        assert values[f"{engine}_engine_active_time"] == pytest.approx(busy * 1e-9)
        assert values[f"{engine}_engine_active_time_percent"] == pytest.approx(
            busy / result.time_ns
        )
        assert values[f"{engine}_engine_instruction_count"] == count
    moved = [e for e in instructions(found) if trace.streams[e.stream].engine is Engine.DMA]
    assert values["dma_transfer_count"] == len(moved)
    assert values["dma_transfer_total_bytes"] == result.dma_bytes
    assert values["dma_transfer_average_bytes"] == pytest.approx(result.dma_bytes / len(moved))
    assert values["dma_active_time"] <= values["total_active_time"] <= values["total_time"]
    marks = sorted({t for e in moved for t in (e.start, e.free)})
    held = sum(
        b - a for a, b in pairwise(marks) if any(e.start <= a and b <= e.free for e in moved)
    )
    assert values["dma_active_time"] == pytest.approx(held * 1e-12)


def test_figures_of_a_product() -> None:
    result = run(naive())
    values = summary(insight(recorded(result).trace, None))
    flops, seconds = 2 * 256 * 512 * 1024, result.time_ns * 1e-9
    assert values["model_flops"] == values["hardware_flops"] == flops
    assert values["transpose_flops"] == values["spill_save_bytes"] == 0
    loaded, product = values["hbm_read_bytes"], 256 * 1024
    assert values["sbuf_read_bytes"] == loaded + product * 2  # by the array, and by stores
    assert values["sbuf_write_bytes"] == loaded + product * 2  # by loads, and from PSUM
    assert (
        values["psum_write_bytes"] == 4 * product * 4 and values["psum_read_bytes"] == 4 * product
    )
    assert values["mfu_estimated_percent"] == pytest.approx(flops / (78.6432e12 * seconds))
    assert values["hbm_read_bytes"] == 16 * 128 * (128 + 512) * 2
    assert values["hbm_write_bytes"] == 256 * 1024 * 2
    moved = values["hbm_read_bytes"] + values["hbm_write_bytes"]
    assert values["mbu_estimated_percent"] == pytest.approx(moved / (404.8e9 * seconds))
    assert values["mm_arithmetic_intensity"] == pytest.approx(flops / moved)
    assert values["peak_flops_bandwidth_ratio"] == pytest.approx(78.6432e12 / 404.8e9)
    assert values["matmul_instruction_count"] == 16


def test_what_is_not_known_is_absent() -> None:
    values = summary(seen("03_transpose"))  # the tensor engine moves there
    assert values["hardware_flops"] == values["transpose_flops"] > 0 == values["model_flops"]
    assert not {name for name in values if "throttle" in name}
    assert values.keys() <= METRICS.keys()
    units = {"s", "fraction", "count", "bytes", "flop", "flop/byte"}
    assert {metric.unit for metric in METRICS.values()} == units


# ---- traces --------------------------------------------------------------------------------


@every_sample
def test_chrome_trace(name: str) -> None:
    found = seen(name)
    record = json.loads(traces.trace(found))
    slices = [one for one in record["traceEvents"] if one["ph"] == "X"]
    assert Counter(o["cat"] for o in slices)["instruction"] == sample(name).instructions
    by_track: dict[int, list[Any]] = defaultdict(list)
    for one in slices:
        by_track[one["tid"]].append(one)
    names = {
        o["tid"]: o["args"]["name"] for o in record["traceEvents"] if o["name"] == "thread_name"
    }
    assert names.keys() == by_track.keys()
    for track in by_track.values():
        ends = 0
        for one in sorted(track, key=lambda one: one["args"]["start_ps"]):
            assert one["args"]["start_ps"] >= ends  # slices of a track do not overlap
            ends = one["args"]["start_ps"] + one["args"]["duration_ps"]
            assert round(one["ts"] * 1e6) == one["args"]["start_ps"]
    for engine, short in (("tensor", "PE"), ("vector", "DVE")):
        busy = sum(o["args"]["duration_ps"] for o in slices if names[o["tid"]] == short)
        assert busy / 1000 == pytest.approx(busy_of(sample(name), engine))
    assert sum(o["args"].get("critical_ps", 0) for o in slices) <= found.trace.end
    assert all(":" in one["args"]["source"] for one in slices)
    starts = {o["id"]: o for o in record["traceEvents"] if o["ph"] == "s"}
    ends_of = {o["id"]: o for o in record["traceEvents"] if o["ph"] == "f"}
    assert starts.keys() == ends_of.keys() and len(starts) == len([*traces.flows(found)])
    assert all(starts[n]["ts"] <= ends_of[n]["ts"] for n in starts)
    assert gzip.decompress(traces.compressed(found)) == traces.trace(found)


@every_sample
def test_levels(name: str) -> None:
    found = seen(name)
    by_name = {level.name: level for level in traces.counters(found)}
    alive = [x for x in found.live_ranges if x.buffer is Buffer.SBUF]
    for time, value in by_name["SBUF in use"].values[:: max(1, len(alive) // 20)]:
        assert value == sum(x.bytes for x in alive if x.start <= time < x.end)
    series = by_name["transfers"].values
    moved = sum(value * (after - time) for (time, value), (after, _) in pairwise(series))
    assert moved / 1000 == pytest.approx(sample(name).dma_bytes, rel=1e-4)
    assert by_name["transfers under way"].values[-1][1] == 0


@every_sample
def test_perfetto_trace(name: str) -> None:
    form = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    found = seen(name)
    data = traces.perfetto_trace(found)
    trace = form.Trace()
    assert trace.ParseFromString(data) == len(data)
    assert trace.SerializeToString() == data  # no field that is missing in the schema
    events = [p for p in trace.packet if p.HasField("track_event")]
    begin = form.TrackEvent.TYPE_SLICE_BEGIN
    opened = [p.track_event for p in events if p.track_event.type == begin]
    begins = [one for one in opened if one.name != "trigger"]
    assert len(opened) - len(begins) == len([*traces.triggers(found)])
    assert [b.name for b in begins] == [e.record.row.name for e in instructions(found)]
    expected = [traces.Slice(*one) for one in traces.slices(found)]
    for begin, one in zip(begins, expected, strict=True):
        where = begin.source_location
        assert f"{where.file_name}:{where.line_number}" == one.args["source"]
        values = {a.name: a.int_value for a in begin.debug_annotations if a.HasField("int_value")}
        assert values["duration_ps"] == one.end - one.start
    ends = Counter(i for b in begins for i in b.terminating_flow_ids)
    assert ends == Counter(i for b in begins for i in b.flow_ids)
    assert len(ends) == len([*traces.flows(found)])
    known = {p.track_descriptor.uuid for p in trace.packet if p.HasField("track_descriptor")}
    assert {p.track_event.track_uuid for p in events} <= known
    open_slices: Counter[int] = Counter()
    for packet in events:
        track = packet.track_event.track_uuid
        open_slices[track] += {1: 1, 2: -1}.get(packet.track_event.type, 0)
        assert 0 <= open_slices[track] <= 1


@every_sample
def test_counters_in_parquet(name: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    found, result = seen(name), sample(name)
    (tmp_path / "c.parquet").write_bytes(traces.parquet(found))
    table = arrow.read_table(tmp_path / "c.parquet")
    assert table.schema.metadata[b"profile_schema_version"] == traces.SCHEMA.encode()
    assert table.column_names == list(traces.COLUMNS)
    columns = table.to_pydict()
    assert table.num_rows == result.instructions
    assert sum(columns["bytes"]) == result.dma_bytes
    assert max(columns["complete_ps"]) == found.trace.end
    on_path = [p for p in found.path if found.trace.events[p.event].record.row is not None]
    assert sum(columns["critical_ps"]) == sum(part.time for part in on_path)
    own = zip(columns["engine"], columns["start_ps"], columns["end_ps"], strict=True)
    busy = sum(end - start for engine, start, end in own if engine == "DVE")
    assert busy == sum(cost.busy["DVE"] for cost in found.accounts.by_line.values())


def test_flows_pass_through_empty_slots() -> None:
    program = executable(
        "def kernel(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    t = nl.load(x)\n"
        "    def body(i):\n"
        "        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)\n"
        "    nl.fori_loop(0, 3, body, step=1)\n"
        "    nl.store(out, t)\n"
        "    return out\n",
        x="float32[128,64]",
    )
    found = insight(recorded(run(program)).trace, None)
    events = found.trace.events
    assert any(event.record.row is None for event in events)
    pairs = [*traces.flows(found)]
    assert pairs and all(events[x].record.row is not None for pair in pairs for x in pair)
    kept = [one.args for one in traces.slices(found)]
    assert [args["iterations"] for args in kept if "iterations" in args] == [
        [0], [1], [2]
    ]  # fmt: skip


def test_files_are_where_they_were() -> None:
    assert (SAMPLES / "06_matmul" / "kernel.py").is_file()
    assert replace(seen("06_matmul")).trace.complete


def test_triggers_have_a_track_where_their_engine_does_nothing_else() -> None:
    found = seen("10_attention")
    assert Engine.SYNC not in {stream.engine for stream in found.trace.streams}
    names = traces.track_names(found)
    (sync,) = [track for track, name in names.items() if name == "SP"]
    held = [one for one in traces.triggers(found) if one.track == sync]
    triggered = [e for e in found.trace.events if e.trigger and e.triggered_by is Engine.SYNC]
    assert sum(one.end - one.start for one in held) == sum(e.trigger_hold for e in triggered) > 0
    assert [*names.values()][-1].startswith("DMA")
    drawn = lanes.lanes(found, lanes.Window(0, found.trace.end, 10))
    (lane,) = [one for one in drawn if one.name == "SP"]
    assert lane.share == pytest.approx(found.verdict.busy["SP"])


def test_slices_name_the_turns_of_loops() -> None:
    found = seen("06_matmul")
    said = {one.args.get("iteration", "") for one in traces.slices(found)}
    assert said - {""} == set(found.trace.executable.iterations)
    assert len(said) > 4 and all("=" in iterations for iterations in said - {""})
