"""The verifier's result for one record must not let a similar record pass."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from nkic.artifact.records import InstructionRecord, PatternRecord, StreamRecord
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed
from nkic.machine import dtypes
from nkic.machine.targets import Engine
from tests.harness.executables import A_TILE, DONE, I32, OUT_TILE, SCALED, TENSORS, sample, sbuf
from tests.harness.tamper import refused


def _stream(*items: InstructionRecord, engine: Engine = Engine.VECTOR) -> StreamRecord:
    return StreamRecord(0, engine, 0, items)


def _scale(dst: PatternRecord, data: PatternRecord) -> InstructionRecord:
    return SCALED._replace(operands=(dst, data, 2.5), waits=())


NARROW = A_TILE._replace(dims=((2, 4),), offset=3)  # elements 3 to 9 of 16


@pytest.mark.parametrize("pattern", [
    *({"offset": offset} for offset in (-4, -1, 0, 9, 10, 16)),
    *({"tensor": tensor} for tensor in (-1, 0, 6, 7, 8, 9, 10, 11)),
    *({"tensor": tensor, "offset": 9} for tensor in (6, 7, 8, 9)),
    *({"dims": ((2, 4),), "dtype": dtype} for dtype in (I32, dtypes.DTYPES["bfloat16"])),
    {"start": 1}, {"partitions": 127}, {"dims": ((2, 8),)}, {"dims": ((-2, 4),)},
])  # fmt: skip
def test_a_pattern_is_judged_alike_after_another_and_alone(pattern: dict[str, Any]) -> None:
    half = dtypes.DTYPES["bfloat16"]
    more = (
        sbuf("same", (128, 16), 512),  # 6
        sbuf("shorter", (128, 12), 576),
        sbuf("even", (128, 32), 640, half),
        sbuf("odd", (128, 32), 706, half),  # no multiple of 4
        sbuf("other", (128, 16), 772, core=1),
    )
    dst = OUT_TILE._replace(dims=((1, 4),))
    executable = replace(sample(), tensors=(*TENSORS, *more), cores=2)
    before = (_scale(dst, NARROW), _scale(dst, NARROW._replace(tensor=8)))

    def judged(*items: InstructionRecord) -> tuple[str, str]:
        changed = replace(executable, streams=(_stream(*items),))
        try:
            verify(changed)
        except ArtifactFailed:
            code, message = refused(partial(verify, changed))
            return code, message.replace(f"item {len(items) - 1},", "")
        return "", ""

    own = _scale(dst, NARROW._replace(**pattern))
    assert judged(*before) == ("", "")
    assert judged(*before, own) == judged(own)


def test_waits_and_signals_that_were_right_once_are_claimed_by_their_stream() -> None:
    signal, wait = DONE._replace(signals=(0,)), DONE._replace(signals=(), waits=((0, 1),))
    vector, scalar = _stream(signal, signal), _stream(wait, wait, engine=Engine.SCALAR)
    verify(replace(sample(), streams=(vector, scalar)))
    for late, how in ((signal, "signalled"), (wait, "waited for")):
        third = _stream(late, late, engine=Engine.GPSIMD)
        wrong = replace(sample(), streams=(vector, scalar, third))
        code, message = refused(partial(verify, wrong))
        assert code == "NKI0807"
        assert f"core0.gpsimd item 0, empty slot: semaphore s0 is also {how} by" in message
