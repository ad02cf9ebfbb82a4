"""Test machine files: what they may contain, rejected files, and their form in --print machine."""

import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.machine.clock import TABLE, Standing
from nkic.machine.targets import (
    TARGETS,
    TRN1,
    TRN2,
    Engine,
    MachineFile,
    read_machine,
    records,
    rows,
    written,
)

TEXT = """
target = "gen3"
contention = "pair"

[vector]
interval_sbuf = 58
clock_mhz = 1000.5
"""


def test_figures_and_contention_are_taken_over() -> None:
    machine = read_machine("m.toml", TEXT)
    found = machine.applied(TRN2)
    assert found.figures["vector.interval_sbuf"] == 58
    assert found.clock_mhz[Engine.VECTOR] == 1000.5
    assert found.figures["vector.interval_psum"] == TRN2.figures["vector.interval_psum"]
    assert (found.contention, found.dma_rate) == ("pair", 23.0)
    assert (found.machine, TRN2.machine) == (machine.hash, "")


def test_the_hash_is_of_what_is_said() -> None:
    other = "[vector]\nclock_mhz = 1000.5 # a remark\ninterval_sbuf = 58.0\n"
    same = read_machine("x.toml", f'contention = "pair"\n{other}')
    assert same.hash == read_machine("m.toml", TEXT).hash
    assert read_machine("m.toml", other).hash != same.hash


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[vector]\ninterval_sbuff = 1", "there is no parameter `vector.interval_sbuff`"),
        ("launch = 1", "there is no parameter `launch`"),
        ("[vector]\ninterval_sbuf = 'a'", "vector.interval_sbuf is 'a', but must be a number"),
        ("[vector]\ninterval_sbuf = true", "vector.interval_sbuf is True"),
        (
            "[vector]\ninterval_sbuf = -1",
            "vector.interval_sbuf is -1, outside 0 to 1e+09",
        ),
        ("[vector]\ninterval_sbuf = nan", "vector.interval_sbuf is nan, outside"),
        ("[vector]\nclock_mhz = 0", "vector.clock_mhz is 0, outside 1 to"),
        ("target = 'trn9'", "there is no target `trn9`"),
        ("contention = 'most'", "contention is `most`, which is not one of alone, pair, all"),
        ("[vector", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageFailed, match=r"m\.toml: ") as caught:
        read_machine("m.toml", text)
    assert said in caught.value.diagnostics[0].message


def test_a_file_of_another_target_is_refused() -> None:
    with pytest.raises(UsageFailed, match="its figures are for trn2, but the kernel is for trn1"):
        read_machine("m.toml", TEXT).applied(TRN1)


def test_what_is_written_reads_back() -> None:
    figures = {"dma.done_ns": 301.5, "vector.pointer": 61.0}
    found = read_machine("m.toml", written(figures, "trn2", "alone"))
    assert (found.figures, found.target, found.contention) == (figures, "trn2", "alone")


def test_every_figure_is_shown_with_standing_and_source() -> None:
    found = records()
    assert len(found) == len(TARGETS) * (1 + len(TABLE))
    known = {standing.value for standing in Standing}
    assert all(r["standing"] in known and r["source"] for r in found)
    shown = {(r["target"], r["parameter"]): r["value"] for r in found}
    assert shown["trn2", "vector.interval_sbuf"] == 56
    head, *lines = rows()
    assert head[0] == "target" and len(lines) == len(found)


def test_given_figures_are_shown_as_given() -> None:
    found = records(MachineFile("m.toml", {"dma.done_ns": 1.0}, "all", "trn2"))
    given = {r["parameter"]: r["value"] for r in found if r["standing"] == "given"}
    assert given == {"dma.done_ns": 1.0, "contention": "all"}
    assert {r["target"] for r in found} == {"trn2"}
