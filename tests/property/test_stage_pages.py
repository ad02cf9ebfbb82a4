"""Run random programs through every stage, and record each choice of each stage.

The pages also record which check notices each broken choice. tests/data/stages has a page for each
program; `NKIC_BLESS=1` writes them again, including the programs, which a new attribute of a row
requires.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from nkic.base.diagnostics import Reporter
from nkic.compiler.lower import lower
from nkic.program.program import Program, instructions
from nkic.program.text import read_program
from nkic.prove import read
from nkic.prove.model import READ, UPDATE, WRITE
from tests.harness.bless import compare_file
from tests.pages.spilled import page as spilled_page
from tests.pages.stages import broken, drawn, page

PAGES = Path(__file__).parents[1] / "data/stages"
ROOMY = 212_728  # bytes of SBUF in each partition
SETTINGS = (
    *((ROOMY, 8, True), (ROOMY, 0, True), (1536, 8, True)),
    *((1024, 8, True), (1024, 8, False), (640, 8, True)),
)
SEEDS = range(12)
BROKEN = (0, 1, 2, 5)  # of one core and of two, with loops
TIGHT = {4: 640, 11: 256}  # the SBUF of each; the last one delays instructions
OF_STATE = (0, 1)  # whose instructions read, write and change state
SPILLED = {0: 640, 1: 512, 4: 512}  # the SBUF of each


def kept(seed: int) -> Program:
    return read_program((PAGES / f"{seed}.ir").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_programs_are_random(seed: int) -> None:
    compare_file(PAGES / f"{seed}.ir", drawn(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_stage_chooses_as_it_did(seed: int) -> None:
    compare_file(PAGES / f"{seed}.txt", "".join(f"{line}\n" for line in page(kept(seed), SETTINGS)))


@pytest.mark.parametrize("seed", BROKEN)
def test_what_is_broken_is_noticed_as_it_was(seed: int) -> None:
    compare_file(
        PAGES / f"broken_{seed}.txt", "".join(f"{line}\n" for line in broken(kept(seed), seed))
    )


@pytest.mark.parametrize("seed", TIGHT)
def test_what_is_broken_in_a_small_memory_is_noticed_as_it_was(seed: int) -> None:
    """In a small memory, bytes pass from tensor to tensor."""
    found = kept(seed)
    tight = replace(found, target=replace(found.target, sbuf_usable=TIGHT[seed]))
    lines = "".join(f"{line}\n" for line in broken(tight, seed))
    compare_file(PAGES / f"tight_{seed}.txt", lines)


@pytest.mark.parametrize("seed", OF_STATE)
def test_the_proofs_see_what_each_instruction_does_to_state(seed: int) -> None:
    lowered = lower(kept(seed), Reporter())
    seen = set()
    for body, reading in zip(lowered.cores, read(lowered), strict=True):
        for one in instructions(body):
            effects = one.row.effects(one.facts(lowered.target))
            modes = {cells[0]: mode for cells, mode, _ in reading.touches[one.number]}
            for name in {*effects.reads, *effects.writes}:
                does = (name in effects.reads, name in effects.writes)
                wanted = {(True, False): READ, (False, True): WRITE, (True, True): UPDATE}[does]
                assert modes[reading.state[name][0]] == wanted
                seen.add(does)
    assert len(seen) > 1


@pytest.mark.parametrize("seed", SPILLED)
def test_what_is_spilled_otherwise_is_noticed_as_it_was(seed: int) -> None:
    lines = spilled_page(kept(seed), SPILLED[seed])
    compare_file(PAGES / f"spilled_{seed}.txt", "".join(f"{line}\n" for line in lines))
