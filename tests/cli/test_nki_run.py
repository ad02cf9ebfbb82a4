"""The command nki-run from outside: what it reads, computes, compares and writes."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkic.cli.nki_run import running
from nkic.cli.nki_run.running import MAX_EVENTS
from nkic.simulate import RunOptions, simulate_ranks
from tests.cli.nki_run_fixtures import (
    BF16,
    RUN,
    A,
    B,
    artifact,
    folder,
    nki,
    process,
    refused,
)
from tests.harness.commands import Ran, Run

__all__ = ["artifact", "folder", "nki"]

# ---- running -------------------------------------------------------------------------------


def test_without_options_a_line_for_each_output(nki: Run) -> None:
    done = nki(*RUN)
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        ["output_0", "float32[128, 8]"],
        ["output_1", "bfloat16[4, 16]"],
        ["a", "float32[128, 8]"],
    ]
    assert "min 1  mean 32.5  max 64  nan 0  inf 0  sha256 " in lines[1]
    resources, cycles, device, *verdict = done.err.splitlines()
    assert resources.startswith("scale: SBUF ")
    assert re.fullmatch(
        r"scale: [\d,]+ cycles \([\d.]+ us at 1\.2 GHz\),( [A-Z]+ \d+%)+, DMA [\d.]+ GB/s", cycles
    )
    assert re.fullmatch(
        r"on a device about [\d]+ us: kernel [\d.]+ us \+ launch about 14 us; the kernel's "
        r"time is likely within \d+ % of a device's \([\w.]+ \d+ %, .*the model \d+ %\)",
        device,
    )
    assert 2 <= len(verdict) <= 6 and verdict[0].startswith("bound by DMA latency: ")
    assert nki(*RUN, "--no-verdict").err.splitlines() == [resources, cycles, device]


def test_quiet_says_nothing(nki: Run) -> None:
    assert nki(*RUN, "-q") == Ran(0, "", "")


def test_outputs_have_their_names_order_and_types(nki: Run, folder: Path) -> None:
    assert nki(*RUN, "--outputs", "o.npz").out == ""
    with np.load("o.npz") as found:
        assert found.files == ["output_0", "output_1", "a", "__nki_dtypes__"]
        assert np.array_equal(found["output_0"], 2 * A)
        assert np.array_equal(found["a"], 2 * A)
        assert found["output_1"].dtype == np.dtype("V2")
        assert np.array_equal(found["output_1"].view(BF16), B + BF16.type(1))
        types = json.loads(bytes(found["__nki_dtypes__"]))
    assert types == {"output_0": "float32", "output_1": "bfloat16", "a": "float32"}


def test_outputs_are_the_same_bytes_every_time(nki: Run, folder: Path) -> None:
    nki(*RUN, "--outputs", "o.npz")
    for number, seed in enumerate(("0", "7")):
        done = process(*RUN, "--outputs", f"{number}.npz", PYTHONHASHSEED=seed, TZ="Asia/Tokyo")
        assert done.returncode == 0
        assert Path(f"{number}.npz").read_bytes() == Path("o.npz").read_bytes()


def test_outputs_as_float32(nki: Run, folder: Path) -> None:
    nki(*RUN, "--outputs", "o.npz", "--outputs-as", "f32", "-o", "output_1=@one.npy")
    with np.load("o.npz") as found:
        assert np.array_equal(found["output_1"], B.astype(np.float32) + 1)
        assert json.loads(bytes(found["__nki_dtypes__"]))["output_1"] == "float32"
    assert np.load("one.npy").dtype == np.float32


def test_single_outputs(nki: Run, folder: Path) -> None:
    done = nki(*RUN, "-o", "output_1=-", "-o", "output_0=@o.npy")
    assert done.out.startswith("output_1 bfloat16[4, 16]\n[[ 1.  2.  3.")
    assert np.array_equal(np.load("o.npy"), 2 * A)


def test_outputs_can_be_inputs(nki: Run, folder: Path) -> None:
    nki(*RUN, "--outputs", "o.npz")
    with np.load("o.npz") as found:
        np.savez("next.npz", a=found["a"], b=found["output_1"])
    assert nki("kernel.neff", "--inputs", "next.npz", "-o", "a=@a.npy").code == 0
    assert np.array_equal(np.load("a.npy"), 4 * A)


def test_pipes(folder: Path, artifact: bytes) -> None:
    data = Path("data.npz").read_bytes()
    done = process("kernel.neff", "--inputs", "-", "--outputs", "-", stdin=data)
    assert done.returncode == 0
    with np.load(io.BytesIO(done.stdout)) as found:
        assert np.array_equal(found["output_0"], 2 * A)
    assert process("-", "--inputs", "data.npz", stdin=artifact).returncode == 0
    done = process("kernel.neff", "--inputs", "-", stdin=bytes(8 << 20))
    assert (done.returncode, b"NKI1003" in done.stderr) == (4, True)


def test_json_report(nki: Run, folder: Path) -> None:
    words = ("kernel.neff", "-i", "a=@a.npy", "--fill", "randn(0)", "--expected", "e.npz")
    np.save("a.npy", A)
    done = nki(*words, "--json")
    record = json.loads(done.out)
    assert done.code == 1  # b is not the input of e.npz
    assert (record["schema"], record["kernel"], record["target"]) == (1, "scale", "trn2")
    assert record["id"] == json.loads(nki("inspect", "kernel.neff", "--json").out)["artifact_id"]
    assert record["cycles"] == pytest.approx(record["time_ns"] * 1.2, abs=1)
    assert record["engines"]["core0.vector"]["instructions"] == 2
    assert record["inputs"] == [
        {"name": "a", "dtype": "float32", "shape": [128, 8], "source": "file"},
        {"name": "b", "dtype": "bfloat16", "shape": [4, 16], "source": "randn(0)"},
    ]
    assert [row["name"] for row in record["outputs"]] == ["output_0", "output_1", "a"]
    assert record["outputs"][0]["maximum"] == 2046
    assert [(row["name"], row["passed"]) for row in record["compare"]] == [
        ("output_0", True), ("output_1", False)
    ]  # fmt: skip
    assert "seconds_host" not in record
    assert done.out == nki(*words, "--json").out
    assert json.loads(nki(*words, "--json", "--time").out)["seconds_host"] > 0


def test_json_has_no_nan(nki: Run) -> None:
    done = nki("kernel.neff", "-i", "a=poison", "-i", "b=const(inf)", "--json")
    rows = json.loads(done.out, parse_constant=lambda word: pytest.fail(word))["outputs"]
    assert (rows[0]["mean"], rows[0]["nan"], rows[1]["inf"]) == (None, 1024, 64)


def test_error_bounds_are_reported_where_they_are_asked_for(nki: Run) -> None:
    """The bound is half a unit in the last place of float32 at 2,046, and of bfloat16 at 64."""
    rows = json.loads(nki(*RUN, "--json", "--report-error-bound").out)
    bounds = {row["name"]: row["error_bound"] for row in rows["outputs"]}
    wide, narrow = bounds["output_0"], bounds["output_1"]
    assert wide["unbounded"] == narrow["unbounded"] == 0
    assert wide["maximum"] == pytest.approx(2046 * 2.0**-24)
    assert narrow["maximum"] == pytest.approx(64 * 2.0**-8, rel=1e-3)
    assert narrow["relative"] == pytest.approx(narrow["maximum"] / 64)
    assert "off by at most" in nki(*RUN, "--report-error-bound", "--outputs", "o.npz").err
    plain = json.loads(nki(*RUN, "--json").out)
    assert "error_bound" not in plain["outputs"][0]
    assert "unbounded" not in plain
    assert (plain["accumulate"], rows["accumulate"]) == ("measured", "measured")


def test_options_reach_the_simulator(nki: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunOptions] = []

    def spy(executable: Any, inputs: Any, options: RunOptions, make: Any) -> Any:
        seen.append(options)
        return simulate_ranks(executable, inputs, options, make)

    monkeypatch.setattr(running, "simulate_ranks", spy)
    nki(*RUN)
    nki(
        *RUN,
        "--limit",
        "cycles=100000",
        "--limit",
        "time=9.5",
        "--no-init-check",
        "--no-precise-fp",
    )
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    nki(*RUN)
    nki(*RUN, "--precise-fp", "--accumulate", "pairwise", "--report-error-bound", "-q")
    assert seen == [
        RunOptions(trace=MAX_EVENTS),
        RunOptions(False, False, max_cycles=100_000, timeout_s=9.5, trace=MAX_EVENTS),
        RunOptions(precise=False, trace=MAX_EVENTS),
        RunOptions(accumulate="pairwise", report_bounds=True),
    ]
    monkeypatch.setenv("NKI_PRECISE_FP", "no")
    assert "expected 0 or 1" in refused(nki(*RUN), 2, "bad-value")


# ---- comparing -----------------------------------------------------------------------------


def test_expected_outputs(nki: Run) -> None:
    done = nki(*RUN, "--expected", "e.npz")
    assert done.code == 0
    assert done.err.splitlines()[-2:] == [
        "output_0: as expected (close, rtol 1e-05, atol 1e-05), all equal",
        "output_1: as expected (close, rtol 0.015625, atol 0.0078125), all equal",
    ]


def test_outputs_that_differ(nki: Run, folder: Path) -> None:
    wrong = 2 * A
    wrong[96:, 3] += 1
    np.savez("e.npz", output_0=wrong, output_1=B)
    done = nki(*RUN, "--expected", "e.npz", "--atol", "output_1=1", "--outputs", "o.npz")
    text = refused(done, 1, "outputs-differ")
    assert "output `output_0`: 32 of 1,024 elements differ" in text
    assert "first: [96, 3] is 1542, expected 1543 (off by 1, 8,192 ulp)" in text
    assert "rows (axis 0): 96-127, 32 of 128" in text
    assert "columns (axis 1): 3, 1 of 8" in text
    assert Path("o.npz").exists()
    assert nki(*RUN, "--expected", "e.npz", "--compare", "output_0=skip", "--atol", "1").code == 0


def test_nan_fails_and_is_named(nki: Run) -> None:
    np.savez("e.npz", output_0=np.full((128, 8), np.nan), output_1=B.astype(np.float32) + 1)
    words = ("kernel.neff", "--inputs", "data.npz", "-i", "a=poison", "--expected", "e.npz")
    assert "output `output_0`: 1,024 of 1,024 elements" in refused(nki(*words), 1, "outputs-differ")
    assert nki(*words, "--compare", "equal-nan").code == 0


def test_fail_on(nki: Run) -> None:
    words = ("kernel.neff", "--inputs", "data.npz", "-i", "a=poison")
    assert nki(*words, "--fail-if", "inf").code == 0
    done = nki(*words, "--fail-if", "nan,inf")
    assert done.code == 5
    assert "output `a` has 1,024 nan elements" in done.err


def test_bless_writes_what_expected_takes(nki: Run, folder: Path) -> None:
    assert nki(*RUN, "--bless", "g.npz").code == 0
    assert nki(*RUN, "--expected", "g.npz", "--compare", "exact").code == 0
    origin = json.loads(Path("g.npz.json").read_text())
    assert origin["kernel"] == "scale"
    assert len(origin["id"]) == 64
    assert origin["tolerances"]["output_1"]["rtol"] == 0.015625


@pytest.mark.parametrize(
    ("words", "slug", "said"),
    [
        (("--rtol", "x"), "bad-value", "--rtol: `x` is not a number of at least 0"),
        (("--rtol", "inf"), "bad-value", "--rtol: `inf`"),
        (("--rtol", "nan"), "bad-value", "--rtol: `nan`"),
        (("--rtol", "outptu_0=1"), "bad-value", "no output `outptu_0`"),
        (("--rtol", "1", "--rtol", "2"), "bad-value", "--rtol is given twice"),
        (("--compare", "clsoe"), "bad-value", "did you mean `close`?"),
        (("--compare", "a=equal-nan"), "bad-value", "it is for all outputs"),
        (("--compare", "ulp,max-ulp:-1"), "bad-value", "--compare max-ulp: `-1` is not a number"),
        (("--compare", "max-ulp:3"), "conflicting-options", "`--compare max-ulp` does not apply"),
        (("--min-pass-rate", "95"), "bad-value", "not a number from 0 to 1"),
        (("--compare", "exact", "--rtol", "1"), "conflicting-options", "`--rtol` does not apply"),
        (
            ("--compare", "a=ulp", "--atol", "a=1"),
            "conflicting-options",
            "`--atol` does not apply to `--compare ulp`",
        ),
        (("--bless", "g.npz"), "conflicting-options", "`--bless` and `--expected`"),
    ],
)
def test_rules_that_make_no_sense(nki: Run, words: tuple[str, ...], slug: str, said: str) -> None:
    assert said in refused(nki(*RUN, "--expected", "e.npz", *words), 2, slug)


# ---- inspecting ----------------------------------------------------------------------------


def test_info(nki: Run) -> None:
    done = nki("inspect", "kernel.neff")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^Input b +bfloat16\[4, 16\] in shared_hbm$", done.out, re.MULTILINE)
    assert re.search(r"^code +\d+ +[\d.]+% +ok$", done.out, re.MULTILINE)


def test_disasm(nki: Run) -> None:
    assert nki("inspect", "kernel.neff", "--disasm").out.count("dma_copy") == 4
    done = nki(
        "inspect", "kernel.neff", "--disasm", "--engine", "dve", "--lines", "15:16", "--json"
    )
    (item,) = json.loads(done.out)["items"]
    assert (item["opcode"], item["nki_source_location"]) == ("tensor_scalar", "k.py:15")
    assert "there is no engine `vectro`" in refused(
        nki("inspect", "kernel.neff", "--disasm", "--engine", "vectro"), 2, "bad-value"
    )


def test_verify(nki: Run, artifact: bytes) -> None:
    done = nki("inspect", "kernel.neff", "--check")
    assert done == Ran(0, "container and hashes: ok\nschema: ok\nprogram: ok\n", "")
    assert json.loads(nki("inspect", "kernel.neff", "--check", "--json").out)["verified"] is True
    changed = bytearray(artifact)
    changed[len(changed) // 2] ^= 1
    Path("kernel.neff").write_bytes(changed)
    done = nki("inspect", "kernel.neff", "--check")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error[NKI0804]: `kernel.neff`: ")
    assert nki(*RUN).code == 3
