"""A vendor's profile beside a run."""

import csv
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nkic.artifact.events import Trace
from nkic.base.diagnostics import UsageFailed
from nkic.report.measured import Beside, beside, text
from tests.harness.traced import HEAD, recorded, run
from tests.unit.report.test_trust import COPIES, compiled

AT = (HEAD + COPIES).splitlines().index("    nisa.activation(dst=x, data=x, op=nl.exp)") + 1


@pytest.fixture(scope="module")
def trace() -> Trace:
    return recorded(run(compiled(512).executable)).trace


def row(start: int, ns: int, engine: str, opcode: str, line: int, **more: Any) -> dict[str, Any]:
    times = {"start_ts": start, "duration_ns": ns, "engine": engine, "opcode": opcode}
    return {**times, "nki_source_location": f"['/home/u/k.py:{line}']", **more}


ROWS = [
    row(0, 60, "Sync", "DMA_DIRECT2D", AT - 1, dma_trigger_end_ts=2500),
    row(2600, 2600, "Scalar", "ACTIVATE", AT),
    row(2600, 10, "Scalar", "EVENT_SEMAPHORE", AT),
    row(5300, 900, "Vector", "TENSOR_SCALAR", AT + 1),
    row(9000, 900, "Vector", "COPY", 3, nki_source_location="['other.py:7']"),
]


def found(trace: Trace, path: Path) -> dict[str, Beside]:
    return {f"{b.line.partition(':')[2]} {b.engine}": b for b in beside(trace, str(path))}


def test_instructions_are_aligned_by_line_and_engine(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"instruction": ROWS}), "utf-8")
    rows = found(trace, path)
    (event,) = [e for e in trace.events if e.record.row and e.record.row.name == "activation"]
    one = rows[f"{AT} ACT"]
    assert one.predicted_ns == (event.done - event.start) / 1000
    assert (one.measured_ns, one.matched, one.measured_runs) == (2600, 1, 1)
    assert one.words.startswith(f"line {AT} of k.py (ACT): predicted ")
    assert one.words.endswith(", measured 2.60 us")
    assert rows[f"{AT - 1} DMA"].measured_ns == 2500
    assert not rows[f"{AT + 2} DMA"].matched and "0 measured" in rows[f"{AT + 2} DMA"].words
    assert "7 DVE" not in rows, "another file is no part of the kernel"
    assert text(beside(trace, str(path))).splitlines()[1].startswith(f"k.py:{AT} ")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_profile_may_begin_with_a_mark_of_its_encoding(
    trace: Trace, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"instruction": ROWS}), encoding)
    assert found(trace, path)[f"{AT} ACT"].measured_ns == 2600


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pyarrow")
def test_tables_of_the_explorer_say_the_same(trace: Trace, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    plain = tmp_path / "Instruction.csv"
    names = list(dict.fromkeys(name for one in ROWS for name in one))
    with plain.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(ROWS)
    table = pyarrow.Table.from_pylist([dict.fromkeys(names) | one for one in ROWS])
    pyarrow.parquet.write_table(table, tmp_path / "Instruction.parquet")
    (tmp_path / "p.json").write_text(json.dumps({"instruction": ROWS}), "utf-8")
    same = found(trace, tmp_path / "p.json")
    assert found(trace, tmp_path) == found(trace, plain) == same


def test_the_parts_of_a_product_are_one_instruction(trace: Trace, tmp_path: Path) -> None:
    parts = [row(100 * i, 100, "act", "ACTIVATE", AT) for i in range(4)]
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"instruction": parts}), "utf-8")
    one = found(trace, path)[f"{AT} ACT"]
    assert (one.measured_ns, one.measured_runs, one.matched) == (400, 1, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no JSON"),
        ("{}", "no list `instruction`"),
        ('{"instruction": [3]}', "instruction 1 is not an object"),
        (json.dumps({"instruction": [{"opcode": "COPY"}]}), "instruction 1 has no start_ts in ns"),
        (json.dumps({"instruction": [ROWS[4]]}), "no instruction is from a line of this kernel"),
        (json.dumps({"instruction": [{**ROWS[1], "duration_ns": -1}]}), "no duration_ns in ns"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said(
    trace: Trace, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "p.json"
    path.write_text(content, "utf-8")
    with pytest.raises(UsageFailed) as refused:
        beside(trace, str(path))
    assert message in refused.value.diagnostics[0].message
    (tmp_path / "Instruction.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageFailed):
        beside(trace, str(tmp_path))
