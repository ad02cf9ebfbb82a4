"""Every instruction of a run as a row of a Parquet file, for queries with SQL or data frames.

The file's metadata has the schema's version as `profile_schema_version`: the major number rises
when a column changes its meaning, the minor number when one is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from nkic.base.text import clean
from nkic.machine.engines import SHORT_NAMES
from nkic.report.insight.verdict import Insight
from nkic.report.views import tracks

SCHEMA = "1.1"
# Column to type; times are picoseconds of simulated time.
COLUMNS = {
    "event": "int64",  # in the order of execution
    "core": "int32",
    "engine": "string",
    "queue": "int32",
    "opcode": "string",
    "path": "string",
    "line": "int32",
    "inside": "string",  # the line of nkic's library, if any
    "run": "int64",  # executions of the place so far, this one included
    "iteration": "string",  # of Python's loops: i=3 j=0
    "start_ps": "int64",
    "end_ps": "int64",  # when the engine or queue accepts the next one
    "complete_ps": "int64",
    "stall": "string",  # the main cause of waiting
    "stall_ps": "int64",
    "critical_ps": "int64",  # its part of the critical path
    "bytes": "int64",
    "hbm_read_bytes": "int64",
    "hbm_write_bytes": "int64",
    "flops": "int64",
}


def is_there() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def rows(insight: Insight) -> Iterator[dict[str, Any]]:
    """Yield a row per instruction."""
    accounts, trace = insight.accounts, insight.trace
    for interval in tracks.slices(insight):
        event = trace.events[interval.event]
        stream = trace.streams[event.stream]
        line = accounts.lines.of(event.record.place)
        read, written = accounts.hbm_bytes(event)
        stall, waited = max(accounts.stalls(event), key=lambda pair: pair[1], default=("", 0))
        values = (
            *(interval.event, stream.core, SHORT_NAMES[stream.engine], stream.queue, interval.name),
            *(clean(line.path), line.number, interval.args.get("inside", ""), interval.args["run"]),
            interval.args.get("iteration", ""),
            *(event.start, event.free, event.done, stall, waited),
            *(interval.args.get("critical_ps", 0), event.bytes, read, written),
            accounts.operations(event),
        )
        yield dict(zip(COLUMNS, values, strict=True))


def parquet(insight: Insight) -> bytes:
    """Return the bytes of the file."""
    import pyarrow
    import pyarrow.parquet

    kinds = {name: getattr(pyarrow, kind)() for name, kind in COLUMNS.items()}
    metadata = {"profile_schema_version": SCHEMA, "kernel": clean(insight.trace.executable.name)}
    schema = pyarrow.schema(list(kinds.items()), metadata=metadata)
    table = pyarrow.Table.from_pylist(list(rows(insight)), schema=schema)
    stream = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, stream)
    return bytes(stream.getvalue().to_pybytes())
