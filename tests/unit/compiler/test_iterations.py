"""Test the order of a loop's body with overlapping iterations."""

import pytest

from nkic.compiler import schedule
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.depend import depend
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.compiler.schedule import schedule as schedule_schedule
from nkic.program.program import slots
from tests.programs import program
from tests.timing.schedules import LOOPED, LOOPS, microseconds


def time(kernel: str, level: int = 1) -> float:
    """Return the microseconds of a run of a kernel of `loops.py`, proven like every compilation."""
    loader = Loader.beside(LOOPS)
    source = loader.main(LOOPS)
    request = request_for(source, parse_options(kernel=kernel), {})
    return microseconds(compile_source(source, request, loader, CompileOptions(level=level)))


def test_an_order_that_is_found_amid_turns_is_no_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync, which triggers loads and stores, bounds this loop in any order."""
    found = time("loop_over_rows")
    monkeypatch.setattr(schedule, "MAX_INSTRUCTIONS", 0)
    assert found <= time("loop_over_rows")


@pytest.mark.parametrize("kernel", LOOPED)
def test_no_order_is_slower_than_that_of_a_turn_alone(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = time(kernel)
    monkeypatch.setattr(schedule, "MAX_INSTRUCTIONS", 0)
    assert found <= time(kernel)


def test_program_order_is_kept_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = time("loop_over_rows", level=0)
    monkeypatch.setattr(schedule, "MAX_INSTRUCTIONS", 0)
    assert found == time("loop_over_rows", level=0)


def test_a_loop_without_instructions_has_an_order() -> None:
    found = program("core\n  loop 1 $0 = 0 to 4 by 1\n  end")
    (streams,) = schedule_schedule(found, depend(found)).cores
    assert all(one.instruction is None for stream in streams for one in slots(stream.items))
