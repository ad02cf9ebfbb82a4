"""Inspect files without running them: info, diff."""

import json
from dataclasses import replace

from nkic.artifact import container
from nkic.artifact.disassemble import MAX_ALIGNED, diff
from nkic.artifact.encode import write
from nkic.artifact.read import info, read
from tests.harness.executables import ROWS, SCALED, instruction_of, long_sample, sample
from tests.harness.tamper import rebuilt, refused

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
