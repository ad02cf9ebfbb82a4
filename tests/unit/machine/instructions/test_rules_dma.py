"""Rules of the DMA rows."""

from __future__ import annotations

import pytest

from nkic.machine.targets import TRN1, TRN3
from tests.unit.instances import Case, tile

HARDWARE = {"dge_mode": "hwdge", "src": tile("bfloat16[16, 128] hbm")}
INDEXED = tile("float32[128, 512] hbm", indexed=True, dynamic=True)
GATHERED = {
    "dst": tile("bfloat16[128, 32]"),
    "src": tile("bfloat16[32, 128] hbm", indexed=True, dynamic=True),
}
DMA = [
    Case(
        "dma_copy",
        {"src": tile("float32[128, 256] hbm")},
        "`src` has 32768 elements [128, 256] and `dst` has 65536 [128, 512]; they must be equal",
        "element-count-mismatch",
    ),
    Case("dma_copy", {"src": tile("bfloat16[65536] hbm")}),
    Case(
        "dma_copy",
        {"src": tile("float8_e4m3fn_x4[128, 512] hbm")},
        "`src` is float8_e4m3fn_x4 and `dst` is float32; packed types are not converted",
        "dtype-mismatch",
    ),
    Case("dma_copy", {"dge_mode": "hwdge", "engine": "scalar"}),
    Case(
        "dma_copy",
        {"engine": "scalar"},
        "`engine` is scalar, which requires dge_mode.hwdge, but `dge_mode` is unknown",
        "dma-mode",
    ),
    Case(
        "dma_copy",
        {"dge_mode": "hwdge", "src": tile("bfloat16[128, 512] hbm")},
        "`src` is bfloat16 and `dst` is float32; dge_mode.hwdge does not convert",
        "dtype-mismatch",
    ),
    Case(
        "dma_copy",
        {"dge_mode": "hwdge"},
        "`dge_mode` is hwdge, which needs trn2; the target is trn1",
        "needs-newer-target",
        TRN1,
    ),
    Case("dma_copy", {"src": INDEXED}),
    Case("dma_copy", {"src": INDEXED, "dst": tile("float32[64, 1024]")}),
    Case(
        "dma_copy",
        {"dst": tile("float32[96, 32]"), "src": tile("float32[64, 48] hbm", indexed=True)},
        "`src` has 64 rows by `vector_offset`, but `dst` [96, 32] cannot be divided into as many",
        "operand-shape",
    ),
    Case(
        "dma_copy",
        {"src": INDEXED},
        "`src` has a `vector_offset`, which needs trn2; the target is trn1",
        "needs-newer-target",
        TRN1,
    ),
    Case(
        "dma_copy",
        {"src": INDEXED, "dge_mode": "none"},
        "`src` has a `vector_offset`, which only dge_mode.swdge supports, but `dge_mode` is none",
        "dma-mode",
    ),
    Case(
        "dma_copy",
        {"src": tile("float32[128, 512]", indexed=True)},
        "`src` is indexed and is in sbuf, but must be in hbm",
        "buffer-not-allowed",
    ),
    Case(
        "dma_copy",
        {"priority": 4},
        "`priority` is 4, but must be 0 to 3",
        "dma-mode",
        TRN3,
    ),
    Case("dma_copy", {"priority": 3}, target=TRN3),
    Case(
        "dma_copy",
        {"priority": 0},
        "`priority` is 0, which needs trn3; the target is trn2",
        "needs-newer-target",
    ),
    Case(
        "dma_transpose",
        {"dst": tile("bfloat16[16, 128]")},
        "`dst` is [16, 128], but `src` transposed is [128, 16]",
        "operand-shape",
    ),
    Case(
        "dma_transpose",
        {"dst": tile("bfloat16[7, 1, 3, 5]"), "src": tile("bfloat16[5, 1, 3, 7] hbm")},
    ),
    Case(
        "dma_transpose",
        {"axes": (0, 1)},
        "`axes` is [0, 1]; with 2 dimensions it must be [1, 0]",
        "operand-shape",
    ),
    Case(
        "dma_transpose",
        {"src": tile("bfloat16[2048] hbm")},
        "`src` has 1 dimension; 2, 3 or 4 can be transposed",
        "operand-shape",
    ),
    Case(
        "dma_transpose",
        {"src": tile("float16[16, 128] hbm")},
        "`src` is float16 and `dst` is bfloat16; they must be equal",
        "dtype-mismatch",
    ),
    Case(
        "dma_transpose",
        {"dst": tile("uint8[128, 16]"), "src": tile("uint8[16, 128] hbm")},
        "`src` is uint8, of 8 bits; 16 or 32 bits can be transposed",
        "dtype-not-supported",
    ),
    Case(
        "dma_transpose",
        {"dge_mode": "swdge"},
        "`dge_mode` is swdge; a transpose without a run-time offset takes unknown, none or hwdge",
        "dma-mode",
    ),
    Case(
        "dma_transpose",
        {"oob_mode": "skip"},
        "`oob_mode` is skip, but no run-time offset can be out of bounds",
        "dma-mode",
    ),
    Case("dma_transpose", HARDWARE),
    Case("dma_transpose", {**HARDWARE, "dge_mode": "none"}),
    Case(
        "dma_transpose",
        {"dge_mode": "swdge", "src": tile("bfloat16[16, 128] hbm", dynamic=True)},
    ),
    Case(
        "dma_transpose",
        {**GATHERED, "dge_mode": "none"},
        "`src` has a `vector_offset`, which only dge_mode.swdge supports, but `dge_mode` is none",
        "dma-mode",
    ),
    Case(
        "dma_transpose",
        {**HARDWARE, "src": tile("bfloat16[8, 128] hbm"), "dst": tile("bfloat16[128, 8]")},
        "`src` has 8 rows; hwdge transposes 16",
        "operand-shape",
    ),
    Case(
        "dma_transpose",
        {**HARDWARE, "src": tile("bfloat16[4, 6, 8] hbm"), "dst": tile("bfloat16[8, 6, 4]")},
        "`src` has 4 x 6 rows; for hwdge the product must be a multiple of 16",
        "operand-shape",
    ),
    Case(
        "dma_transpose",
        {**HARDWARE, "src": tile("bfloat16[16, 1, 160]"), "dst": tile("bfloat16[160, 1, 16]")},
        "`dst` has 160 partitions; there are 128",
        "too-many-partitions",
    ),
    Case("dma_transpose", GATHERED),
    Case(
        "dma_transpose",
        {
            "dst": tile("bfloat16[128, 24]"),
            "src": tile("bfloat16[24, 128] hbm", indexed=True, dynamic=True),
        },
        "`src` gathers 24 rows, which must be a multiple of 16",
        "operand-shape",
    ),
    Case(
        "dma_transpose",
        {
            "dst": tile("bfloat16[8, 2, 3, 16]"),
            "src": tile("bfloat16[16, 2, 3, 8] hbm", indexed=True, dynamic=True),
        },
        "`src` is [16, 2, 3, 8]; one of the middle dimensions must be 1",
        "operand-shape",
    ),
    Case(
        "dma_transpose",
        {
            "dst": tile("bfloat16[1, 2, 3, 16]"),
            "src": tile("bfloat16[16, 2, 3, 1] hbm", indexed=True, dynamic=True),
        },
        "`src` is [16, 2, 3, 1]; one of the middle dimensions must be 1",
        "operand-shape",
    ),
]


@pytest.mark.parametrize("case", DMA, ids=str)
def test_rule(case: Case) -> None:
    case.holds()
