"""Flame graphs: the width of a box is proportional to its count."""

import re
from collections import Counter

from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled, StageTiming
from tests.bench.flames import WIDTH, Sampler, called, folded, svg

STACKS = {("a:f", "b/c.py:g"): 3, ("a:f",): 1, ("a:h<1>",): 4}


def widths(text: str) -> dict[str, float]:
    boxes = re.findall(r'<title>([^<]*)</title><rect x="\S+" y="\S+" width="(\S+)"', text)
    return {title.partition(",")[0]: float(width) for title, width in boxes}


def test_boxes_are_as_wide_as_their_counts() -> None:
    found = widths(svg("emit", STACKS))
    assert found["a:f"] == found["a:h&lt;1&gt;"] == WIDTH / 2
    assert found["b/c.py:g"] == WIDTH * 3 / 8
    assert found["emit: 8 samples"] == WIDTH


def test_what_is_too_narrow_is_left_out() -> None:
    assert "a:f" not in widths(svg("emit", {("a:f",): 1, ("a:g",): 100_000}))


def test_folded_stacks_are_a_line_each() -> None:
    assert folded(STACKS) == "a:f 1\na:f;b/c.py:g 3\na:h<1> 4\n"


def test_samples_count_for_the_stage_that_goes_on() -> None:
    done = Compiled(SourceFile("", ""))
    sampler = Sampler(done)
    seen = [(test_what_is_too_narrow_is_left_out.__code__,), (folded.__code__,)]
    for codes in seen:
        sampler.seen[len(done.timings)] = Counter({codes: 2})
        done.timings.append(StageTiming("parse", 1, 1))
    done.timings.pop()
    assert sampler.stacks() == {
        "parse": {("test_flames.py:test_what_is_too_narrow_is_left_out",): 2},
        "simulate": {("flames.py:folded",): 2},
    }


def test_functions_are_called_by_their_place_in_nkic() -> None:
    assert called(Compiled.remarks.__code__) == "compiler/compiled.py:Compiled.remarks"
