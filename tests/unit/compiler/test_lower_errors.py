"""Errors of lower end the compilation."""

import pytest

from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.compiler.lower import lower
from nkic.program.text import read_program

PROGRAM = """\
program t on trn2
%0 w: bfloat16[128, 128] sbuf @k.py:1:1-1:9
%1 m: bfloat16[128, 512] sbuf @k.py:2:1-2:9
%2 p: float32[128, 512] psum @k.py:3:1-3:9
core
  loop 1 $0 = 0 to 4 by 1 @k.py:4:1-4:9
    #2 any nc_matmul(dst=%2{0; (128, 512); (512, 1)}, stationary=%0{0; (128, 128); (128, 1)}, \
moving=%1{0; (128, 512); (512, 1)}; is_stationary_onezero=False, is_moving_onezero=False, \
is_transpose=False, accumulate=None, tile_position=None, tile_size=None, perf_mode='none') \
@k.py:5:1-5:9
  end
"""


def test_an_error_stops_the_stage() -> None:
    """The sum in PSUM begins outside the loop, and nothing decides whether to accumulate onto
    it.
    """
    report = Reporter()
    with pytest.raises(CompileFailed):
        lower(read_program(PROGRAM), report)
    assert [one.code.slug for one in report.all] == ["accumulate-in-loop"]


BEFORE = """\
  #1 any nc_matmul(dst=%2{0; (128, 256); (512, 1)}, stationary=%0{0; (128, 128); (128, 1)}, \
moving=%1{0; (128, 256); (512, 1)}; is_stationary_onezero=False, is_moving_onezero=False, \
is_transpose=False, accumulate=None, tile_position=None, tile_size=None, perf_mode='none') \
@k.py:3:1-3:9
  loop"""


def test_a_sum_that_only_half_began_before_its_loop_is_an_error() -> None:
    """The other half would be overwritten in every iteration."""
    report = Reporter()
    with pytest.raises(CompileFailed):
        lower(read_program(PROGRAM.replace("  loop", BEFORE)), report)
    (error,) = report.all
    assert error.code.slug == "accumulate-in-loop" and "wrote all of it;" in error.message
