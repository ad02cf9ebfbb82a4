"""Test the text form: the content of listings, and that a dump can be read back completely."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from nkic.artifact import container
from nkic.artifact.assemble import assemble
from nkic.artifact.disassemble import MAX_ALIGNED, diff, disassemble, dump, rows
from nkic.artifact.encode import write
from nkic.artifact.format import LIMITS, ROLES, SECTIONS, CodeRecord, Layout
from nkic.artifact.read import info, load, read
from nkic.artifact.records import ParameterRecord
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS as TABLE_ROWS
from nkic.machine.targets import BUFFER_CODES, ENGINE_CODES, Engine
from tests.harness.executables import (
    LOOP,
    ROWS,
    SCALED,
    SOURCE,
    WHILE,
    hbm,
    instruction_of,
    long_sample,
    sample,
)
from tests.harness.tamper import rebuilt, refused

NAMES = {row.name: row for row in ROWS.values()}
DUMP = dump(sample())


def test_a_listing_has_a_line_per_record_with_its_source() -> None:
    lines = disassemble(sample(), engine=Engine.VECTOR).splitlines()
    assert lines == [
        "; core0.vector: 4 items",
        "; kernels/add.py:2: return a + a",
        "core0.vector.0      scale dst=%4[0+128, 0; 1x16]:float32 data=%3[0+128, 0; 1x16]:float32"
        ' factor=2.5 op="multiply" bias=1 steps=[[1, 2], [-3, 4]] mode="fast" wait s0>=1'
        "  ; kernels/add.py:2",
        "core0.vector.1      loop $0 from 0 to 4 step 1  ; kernels/add.py:2",
        "core0.vector.2          scale"
        " dst=%4[0+128, 0; 1x4]:float32 by scalar +3 stride 4 limit 4 axis 0"
        ' data=%3[0+128, 0; 1x4]:float32 +3=$0 op="add" reverse=true  ; kernels/add.py:2',
        "core0.vector.3          slot signal s1",
    ]


def test_listings_can_be_restricted() -> None:
    assert disassemble(sample(), engine=Engine.TENSOR) == ""
    assert disassemble(sample(), lines=(7, 9)) == ""
    whole = disassemble(sample(), lines=(1, 2)).splitlines()
    assert sum(line.startswith("core0.") for line in whole) == 9  # all but the one without place


def test_source_comes_from_the_file_or_from_the_caller() -> None:
    bare = replace(sample(), files=(sample().files[0]._replace(text=None),))
    assert "return" not in disassemble(bare)
    assert "; kernels/add.py:2: return a + a" in disassemble(
        bare, sources={"kernels/add.py": SOURCE}
    )
    hostile = {"kernels/add.py": "\n\x1b[2J return"}
    assert r"; kernels/add.py:2: \x1b[2J return" in disassemble(bare, sources=hostile)


def test_rows_for_programs() -> None:
    found = rows(sample(), engine=Engine.VECTOR)
    assert json.loads(json.dumps(found)) == found
    assert [row["opcode"] for row in found] == ["scale", "loop", "scale", "slot"]
    assert found[2] == {
        "stream": "core0.vector",
        "engine": "vector",
        "pc": 2,
        "depth": 1,
        "opcode": "scale",
        "text": found[2]["text"],
        "nki_source_location": "kernels/add.py:2",
        "nki_loop_iteration": "",
    }


def test_assembling_a_dump_gives_the_executable() -> None:
    assert assemble(DUMP, rows=NAMES) == sample()
    assert dump(assemble(DUMP, rows=NAMES)) == DUMP


def test_assembled_operands_are_shared() -> None:
    """So that verifying an assembled file costs the same as verifying a file."""
    found = assemble(dump(long_sample(100)), rows=NAMES)
    assert found == long_sample(100)
    items = [instruction_of(item) for s in found.streams for item in s.items]
    assert len({id(item.attributes) for item in items}) == 8


def test_awkward_names_and_values_come_back() -> None:
    nan, inf = float("nan"), float("inf")
    items = tuple(
        SCALED._replace(operands=(*SCALED.operands[:2], value))
        for value in (0.1, -0.0, 1, -1, 1e300, 5e-324, inf, -inf, 2**63 - 1, -(2**63), None)
    )
    tensors = (hbm('semi;colon "quoted" ü \\ @3 }', "input", (1,)), *sample().tensors[1:])
    executable = replace(
        sample(),
        name="loop",
        tensors=tensors,
        streams=(sample().streams[1]._replace(items=items),),
        outputs=(ParameterRecord("a=b", 1),),
        meta={"flags": "-O2 ; --serial"},
    )
    assert assemble(dump(executable), rows=NAMES) == executable
    alone = replace(
        executable,
        streams=(
            executable.streams[0]._replace(
                items=(SCALED._replace(operands=(*SCALED.operands[:2], nan)),)
            ),
        ),
    )
    (item,) = assemble(dump(alone), rows=NAMES).streams[0].items
    assert repr(instruction_of(item).operands[2]) == "nan"


def test_nested_loops_come_back() -> None:
    inner = LOOP._replace(length=2, counter=None)
    items = (
        LOOP._replace(length=6),
        SCALED,
        inner,
        WHILE,
        SCALED,
        inner._replace(length=1),
        SCALED,
    )
    executable = replace(sample(), streams=(sample().streams[1]._replace(items=items),))
    assert assemble(dump(executable), rows=NAMES) == executable


def test_attributes_may_be_left_to_their_defaults() -> None:
    short = DUMP.replace(" bias=0.0 steps=[] mode=none", "").replace(" factor=none", "")
    assert short != DUMP
    assert assemble(short, rows=NAMES) == sample()


def test_no_instruction_is_called_like_a_word_of_the_text_form() -> None:
    assert not {"loop", "slot", "stream", "wait", "signal"} & set(TABLE_ROWS)


def replaced(old: str, new: str) -> str:
    assert old in DUMP
    return DUMP.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: a program text begins with `nkix 2.0`"),
        ("nkix 1.0\n", "line 1"),
        ("nkix 2.0\n", "no `kernel` line"),
        (replaced("kernel", "colonel"), "line 2: `colonel` before the first stream"),
        (replaced("cores=1", "cores=x"), "line 2: `x`, an integer expected"),
        (replaced("cores=1", "cores=99999999999999999999"), "an integer of 64 bits"),
        (replaced("cores=1", "cores=1 ?"), "no word begins like `? semaphor`"),
        (replaced(' "float32[128, 16]"', ""), "line 3: the end, a string expected"),
        (replaced('"cf46', '"xx46'), "sha256"),
        (replaced("place 0 1:1", "place 1 1:1"), "one that is declared before"),
        (replaced("from 0", "from 1"), "one that is declared before"),
        (replaced("tensor %1", "tensor %7"), "tensor %7, %1 expected"),
        (replaced("float32[128, 16] shared_hbm", "float31[128, 16] shared_hbm"), "`float31`"),
        (replaced("[128, 16] shared", "[128, 1.5] shared"), "sizes in brackets"),
        (replaced("shared_hbm input", "dram input"), "one of sbuf, psum, hbm, shared_hbm"),
        (replaced("hbm input", "hbm inputs"), "one of input, output, constant, internal"),
        (replaced('input "a" %0', 'input "a" %9'), "a tensor that is declared before"),
        (replaced('"AAEC', '"AAE'), "base64"),
        (replaced("core0.vector", "core0.dve"), "a stream such as core0.vector or core0.dma3"),
        (replaced("    copy", "    cpy"), "`cpy`, did you mean `copy`? expected"),
        (replaced("data=%0", "datum=%0"), "which copy does not have"),
        (replaced("dst=%3", "data=%3"), "`data` twice"),
        (replaced("%3[0+128, ", "%3[0+128 "), "`,` expected"),
        (replaced('op="multiply" ', ""), "scale without `op`"),
        (replaced('op="multiply"', 'op="times"'), "`op` cannot have this value"),
        (replaced("steps=[[1, 2]", "steps=" + "[" * 5000), "at most 4 brackets"),
        (replaced("reverse=false", "reverse=0"), "`reverse` cannot have this value"),
        (replaced("factor=2.5", 'factor="2.5"'), "kind that operands cannot have"),
        (replaced("wait s0>=1", "wait x0>=1"), "`x0`"),
        (replaced("signal s0", "signal 0"), "a name expected"),
        (replaced("    }\n", ""), "a loop without its `}`"),
        (replaced("    }\n", "    }\n    }\n"), "`}` without a loop"),
        (replaced("to 4 step", "to 4 stride"), "`step` expected"),
        (replaced("by scalar", "by matrix"), "one of scalar, vector"),
        (replaced("+3=$0", "+4=$0"), "`+4`, which scale does not have"),
    ],
)
def test_texts_that_cannot_be_assembled(text: str, says: str) -> None:
    number, message = refused(lambda: assemble(text, rows=NAMES))
    assert number == "NKI0810"
    assert says in message


# ------------------------------------------------------------------------------------------------
# Inspect files without running them: info, diff.

DATA = write(sample(), embed_source=True)


def test_info_for_people() -> None:
    shown = dict(info(DATA).rows())
    assert shown["Kernel"] == "add"
    assert shown["Artifact ID"] == container.unpack(DATA).header.id.hex()
    assert shown["Format Version"] == "2.0"
    assert shown["Made By"] == "nkic 0.1.0"
    assert shown["Runs Here"] == "yes"
    assert shown["Features"] == "none"
    assert shown["Signed By"] == "nobody"
    assert shown["Timing Figures"] == "same"
    assert shown["Input a"] == "float32[128, 16] in shared_hbm"
    assert shown["Output output_0"] == "float32[128, 16] in shared_hbm"
    assert shown["Argument a"] == "float32[128, 16]"
    assert shown["Flag serial"] == "no"
    assert shown["Source kernels/add.py"] == f"sha256 {sample().files[0].sha256}"


def test_the_section_table() -> None:
    rows = info(DATA).sections()
    assert [row[0] for row in rows] == ["layout", "const", "code", "meta", "src", "lines", "debug"]
    code = len(bytes(container.unpack(DATA).sections["code"].data))
    assert rows[2] == ("code", str(code), f"{100 * code / len(DATA):.1f}%", "ok")


def test_info_for_programs() -> None:
    found = info(DATA).as_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["bytes"] == len(DATA)
    assert found["format_version"] == [2, 0]
    assert found["runnable"] is True
    assert found["entries"] == [
        {
            "name": "add",
            "cores": 1,
            "inputs": [
                {"name": "a", "dtype": "float32", "shape": [128, 16], "buffer": "shared_hbm"}
            ],
            "outputs": [
                {"name": "output_0", "dtype": "float32", "shape": [128, 16], "buffer": "shared_hbm"}
            ],
        }
    ]
    assert sum(section["bytes"] for section in found["sections"]) < len(DATA)
    assert found["sources"][0]["embedded"] is True


def test_info_works_on_newer_files_that_cannot_run() -> None:
    newer = rebuilt(DATA, {"meta": b"\x91\x05"}, fmt=(2, 9), min_reader=(2, 9), req=5)
    shown = dict(info(newer).rows())
    assert shown["Runs Here"].startswith("no")
    assert shown["Features"] == "bit 0, bit 2"
    assert shown["Format Version"].endswith(".9")
    assert "Flag serial" not in shown
    assert refused(lambda: read(newer, rows=ROWS))[0] == "NKI0803"
    assert refused(lambda: info(rebuilt(DATA, {"meta": b"\x91\x05"})))[0] == "NKI0805"
    assert refused(lambda: info(DATA[:-1]))[0] == "NKI0804"


def test_info_sees_other_target_tables() -> None:
    assert dict(info(rebuilt(DATA, {}, target_hash=bytes(32))).rows())["Timing Figures"].startswith(
        "changed"
    )
    assert info(rebuilt(DATA, {}, target="trn9")).target_table == "unknown target"


def test_equal_files_and_equal_programs() -> None:
    assert diff(DATA, DATA).summary == "the files are identical"
    found = diff(DATA, write(sample()))
    assert (found.verdict, found.lines) == ("metadata", ())
    assert found.summary == "identical program, different metadata, in the sections src"
    assert diff(DATA, rebuilt(DATA, dict.fromkeys(("src", "lines")))).sections == ("src", "lines")


def test_a_forged_id_does_not_make_programs_equal() -> None:
    other = write(replace(sample(), constants={2: bytes(16)}))
    forged = rebuilt(other, {}, id=container.unpack(DATA).header.id)
    assert refused(lambda: diff(DATA, forged, rows=ROWS))[0] == "NKI0804"


def test_different_programs_are_shown_by_stream() -> None:
    changed = SCALED._replace(attributes=("add", *SCALED.attributes[1:]))
    items = (changed, *sample().streams[1].items[1:])
    streams = (sample().streams[0], sample().streams[1]._replace(items=items))
    other = write(replace(sample(), streams=streams, constants={2: bytes(16)}))
    found = diff(DATA, other, rows=ROWS)
    assert found.verdict == "program"
    assert found.sections == ("const", "code", "src", "lines")
    shown = [line for line in found.lines if "scale" in line]
    assert len(shown) == 2
    assert shown[0].startswith("- scale dst=%4") and 'op="multiply"' in shown[0]
    assert shown[1].startswith("+ scale dst=%4") and 'op="add"' in shown[1]
    assert sum(line.startswith("- constant %2") for line in found.lines) == 1
    assert "  stream core0.dma3" in found.lines
    assert "  stream core0.dma0" not in found.lines


def test_long_differences_are_not_aligned() -> None:
    first = long_sample(2 * MAX_ALIGNED)
    items = tuple(
        item._replace(attributes=("add", *item.attributes[1:]))
        for item in map(instruction_of, first.streams[1].items)
    )
    second = replace(first, streams=(first.streams[0], first.streams[1]._replace(items=items)))
    found = diff(write(first), write(second), rows=ROWS)
    assert f"  {MAX_ALIGNED:,} lines are replaced by {MAX_ALIGNED:,}, first of all:" in found.lines
    assert len(found.lines) == 4


# ------------------------------------------------------------------------------------------------
# docs/neff.md agrees with the code, and files of earlier versions stay readable.

PROJECT = Path(__file__).resolve().parents[3]
TEXT = (PROJECT / "docs" / "neff.md").read_text("utf-8")
ARTIFACTS = PROJECT / "tests" / "artifacts"


def pairs(pattern: str) -> dict[str, str]:
    return dict(re.findall(pattern, TEXT))


def test_limits() -> None:
    published = pairs(r"\| `(\w+)` \| (\d+) \|")
    assert {name: str(value) for name, value in asdict(LIMITS).items()} == published


def test_numbers_of_dtypes_buffers_and_engines() -> None:
    numbers = {dtype.name: str(dtype.code) for dtype in DTYPES.values()}
    numbers |= {buffer.value: str(code) for buffer, code in BUFFER_CODES.items()}
    numbers |= {engine.value: str(code) for engine, code in ENGINE_CODES.items()}
    found = pairs(r"\| (\w+) \| (\d+) (?=\|)")
    assert {name: found.get(name) for name in numbers} == numbers
    sizes = {name: size for name, _, size in re.findall(r"\| (\w+) \| (\d+) \| (\d+) ", TEXT)}
    assert sizes == {dtype.name: str(dtype.size) for dtype in DTYPES.values()}


@pytest.mark.parametrize("kinds", [Layout, CodeRecord])
def test_kinds_of_records(kinds: type[Layout] | type[CodeRecord]) -> None:
    for kind in kinds:
        assert f"| {kind.value} {kind.name.lower()} | " in TEXT


def test_sections_roles_and_header() -> None:
    order = [
        name for name in re.findall(r"^\| `(\w+)` \| ", TEXT, re.MULTILINE) if name in SECTIONS
    ]
    assert tuple(order) == SECTIONS
    assert ", ".join(f"{number} {role}" for number, role in enumerate(ROLES)) in TEXT
    keys = re.findall(r"^\| `(\w+)` \| ", TEXT.partition("## Sections")[0], re.MULTILINE)
    assert keys == [*container.Header._fields, "digest"]
    assert container.PREFIX.hex(" ") in TEXT


FROZEN = sorted(ARTIFACTS.glob("v*/*.neff"))


def test_there_are_frozen_files() -> None:
    assert [path.parent.name for path in FROZEN] == ["v1.0", "v2.0"]


def test_files_of_another_major_version_are_refused_by_name() -> None:
    number, message = refused(lambda: load(FROZEN[0].read_bytes(), rows=ROWS))
    assert number == "NKI0803"
    assert "format version 1.0, made by nkic" in message
    assert "only major version 2 can be read" in message


@pytest.mark.parametrize("path", FROZEN[1:], ids=lambda path: path.parent.name)
def test_frozen_files_of_this_major_version_are_read(path: Path) -> None:
    """Never change these files. A new version of the format adds one."""
    data = path.read_bytes()
    assert load(data, rows=ROWS) == sample()
    assert container.unpack(data).header.id == container.unpack(write(sample())).header.id
