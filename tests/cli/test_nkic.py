"""The command nkic from outside: what it reads, writes and reports, and its exit codes."""

import hashlib
import json
import re
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from nkic import prove
from nkic.compiler import pipeline
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import KERNEL, Ran, Run, failure, process, written

__all__ = ["folder", "nkic"]
RESOURCE_LINE = (
    r"double: SBUF 0\.0/26\.0 MiB \(0%\) reserved, PSUM 0/8 banks, 3 instr "
    r"\(PE 0 ACT 0 POOL 0 DVE 1 SP 0 DMA 2\), DMA 65\.5 kB, "
    r"estimated at [\d,]+ cycles \(nki-run simulates them\)\n"
)


# ---- the artifact --------------------------------------------------------------------------------


def test_success_is_silent_in_a_pipe(folder: Path) -> None:
    done = process("k.py", "-o", "a.neff", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    executable = written(folder / "a.neff")
    assert executable.name == "double"
    assert [p.name for p in executable.inputs] == ["a"]
    assert [p.name for p in executable.outputs] == ["output_0"]


def test_same_bytes_wherever_and_whenever(folder: Path) -> None:
    inner = folder / "elsewhere" / "deep"
    inner.mkdir(parents=True)
    (inner / "k.py").write_text(KERNEL, encoding="utf-8")
    runs: list[tuple[Path, str, dict[str, Any]]] = [
        (folder, "k.py", {"PYTHONHASHSEED": "1"}),
        (folder, "k.py", {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"}),
        (folder, "elsewhere/deep/k.py", {"LC_ALL": "C", "PYTHONUTF8": "0"}),
        (inner, str(folder / "k.py"), {"HOME": "/nowhere"}),
        (inner, "k.py", {"PYTHONDONTWRITEBYTECODE": "1"}),
    ]
    found = set()
    for cwd, path, environ in runs:
        done = process(path, "-o", "a.neff", cwd=cwd, **environ)
        assert (done.returncode, done.stderr) == (0, b"")
        found.add((cwd / "a.neff").read_bytes())
    assert len(found) == 1


def test_places_in_the_artifact_are_relative_to_the_kernel(nkic: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "m.py").write_text("N = 2.0\n")
    text = KERNEL.replace("import nki\n", "import nki\nfrom .sub.m import N\n")
    (folder / "k.py").write_text(text.replace("operand0=factor", "operand0=N"))
    assert nkic(str(folder / "k.py")).code == 0
    executable = written(folder / "k.neff")
    assert [f.path for f in executable.files] == ["k.py"]
    digest = hashlib.sha256((folder / "k.py").read_bytes()).hexdigest()
    assert [f.sha256 for f in executable.files] == [digest]
    assert str(folder).encode() not in (folder / "k.neff").read_bytes()


def test_source_text_only_if_asked_for(nkic: Run, folder: Path) -> None:
    assert nkic("k.py").code == 0
    assert b"nl.multiply" not in (folder / "k.neff").read_bytes()
    plain = written(folder / "k.neff")
    assert nkic("k.py", "--embed-source").code == 0
    assert written(folder / "k.neff").files[0].text == KERNEL
    assert written(folder / "k.neff").streams == plain.streams


def test_nothing_of_the_file_is_executed(nkic: Run, folder: Path) -> None:
    host = "open('pwned', 'w')\nimport os\nos.mkdir('pwned2')\nimport torch\nprint('hi')\n"
    (folder / "k.py").write_text(KERNEL + host)
    (folder / "torch.py").write_text("open('pwned3', 'w')\n")
    assert nkic("k.py") == Ran(0, "", "")
    assert sorted(p.name for p in folder.iterdir()) == ["k.neff", "k.py", "torch.py"]


def test_standard_input_and_output(folder: Path) -> None:
    assert process("k.py", cwd=folder).returncode == 0
    done = process("-", "--stdin-name", "k.py", "-o", "-", cwd=folder, stdin=KERNEL.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (folder / "k.neff").read_bytes()


def test_standard_input_without_a_name(folder: Path) -> None:
    done = process("-", "-o", "-", cwd=folder, stdin=KERNEL.replace("factor", "facto", 1).encode())
    assert done.returncode == 1
    assert b"<stdin>:14:" in done.stderr


@pytest.mark.parametrize(("kind", "name"), [("ir", "x.ir"), ("sched", "x.sched"), ("asm", "x.asm")])
def test_a_printed_program_on_standard_input_needs_a_name(
    folder: Path, kind: str, name: str
) -> None:
    text = process("k.py", "--emit", f"{kind}=-", cwd=folder).stdout
    done = process("-", cwd=folder, stdin=text)
    assert done.returncode == 2
    assert b"standard input is a printed" in done.stderr
    assert f"{name}".encode() in done.stderr
    assert process("-", "--stdin-name", name, cwd=folder, stdin=text).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ([""], "KERNEL.py"),
        (["k.py", "-o", ""], "--output"),
        (["k.py", "--machine", ""], "--machine"),
        (["k.py", "--arg", ""], "--arg"),
    ],
)
def test_empty_values_are_rejected(
    nkic: Run, folder: Path, arguments: list[str], name: str
) -> None:
    assert f"{name}: the value is empty" in failure(nkic(*arguments), 2, "bad-value")
    assert not (folder / "k.neff").exists()


def test_default_output_is_in_the_present_folder(nkic: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "k.py").rename(folder / "sub" / "k.py")
    assert nkic("sub/k.py").code == 0
    assert (folder / "k.neff").exists()
    assert not (folder / "sub" / "k.neff").exists()


def test_a_level_of_optimisation_is_one_of_three(nkic: Run, folder: Path) -> None:
    for level in "012":
        assert nkic("k.py", f"-O{level}", "-o", level).code == 0
    assert written(folder / "1").meta == written(folder / "2").meta
    assert written(folder / "0").meta["level"] == "0"
    assert "0<=x<=2" in nkic("k.py", "-O3").err


def test_serial_builds_another_program(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "-o", "a").code == 0
    assert nkic("k.py", "--serial", "-o", "b").code == 0
    assert written(folder / "a").meta["serial"] == "no"
    assert written(folder / "b").meta["serial"] == "yes"


# ---- targets, versions and options ---------------------------------------------------------------


def shape(path: Path) -> tuple[str, tuple[int, ...]]:
    executable = written(path)
    tensor = executable.tensors[executable.inputs[0].tensor]
    return tensor.dtype.name, tensor.shape


def test_options_win_over_like_and_that_over_the_block(nkic: Run, folder: Path) -> None:
    np.savez(folder / "d.npz", a=np.zeros((64, 32), np.float16))
    for words, expected in (
        ((), ("float32", (128, 64))),
        (("--like", "d.npz"), ("float16", (64, 32))),
        (("--like", "d.npz", "--arg", "a=bf16[16,8]"), ("bfloat16", (16, 8))),
        (
            (
                "--arg",
                "a=4x8xi32",
            ),
            ("int32", (4, 8)),
        ),
    ):
        assert nkic("k.py", *words).code == 0
        assert shape(folder / "k.neff") == expected


def test_an_array_that_cannot_be_used_is_an_error_beside_a_block_too(
    nkic: Run, folder: Path
) -> None:
    np.savez(folder / "d.npz", a=np.zeros((64, 32), np.float64))
    done = nkic("k.py", "--like", "d.npz")
    failure(done, 2, "argument-type-missing")
    assert "--like d.npz: its NumPy type float64 is not an NKI dtype" in done.err
    assert nkic("k.py", "--like", "d.npz", "--arg", "a=bf16[16,8]").code == 0


def test_constants(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "--const", "factor=3.5", "--emit", "ir=-").out.count("3.5") >= 1
    assert "3.5" not in nkic("k.py", "--emit", "ir=-").out


def test_target_from_option_block_environment(
    nkic: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def target(*words: str) -> str:
        assert nkic("k.py", *words).code == 0
        return written(folder / "k.neff").target

    assert target() == "trn2"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "gen4")
    assert target() == "trn3"
    (folder / "k.py").write_text(KERNEL.replace("# [args]", '# target = "trn1"\n# [args]'))
    assert target() == "trn1"
    assert target("--target", "trn2") == "trn2"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "gen9")
    (folder / "k.py").write_text(KERNEL)
    said = failure(nkic("k.py"), 2, "bad-argument")
    assert "NEURON_PLATFORM_TARGET_OVERRIDE: there is no target `gen9`" in said


def test_kernels_are_chosen_by_name(nkic: Run, folder: Path) -> None:
    second = KERNEL.split("\n\n\n")[1].replace("double", "again")
    (folder / "k.py").write_text(f"{KERNEL}\n\n{second}")
    assert nkic("k.py", "--print", "kernels") == Ran(
        0, "double(a, factor=2.0)\nagain(a, factor=2.0)\n", ""
    )
    assert "again(a, factor=2.0)" in failure(nkic("k.py"), 1, "which-kernel")
    assert nkic("k.py", "-k", "again").code == 0
    assert written(folder / "k.neff").name == "again"
    assert "did you mean `again`?" in failure(nkic("k.py", "-k", "agian"), 1, "no-kernel")


def test_imports_are_read_as_source(nkic: Run, folder: Path) -> None:
    (folder / "k.py").write_text(
        KERNEL.replace("import nki\n", "import nki\nfrom far import scale\n").replace(
            "operand0=factor", "operand0=scale(factor)"
        )
    )
    (folder / "lib").mkdir()
    (folder / "lib" / "far.py").write_text("def scale(x):\n    return x * 21\n")
    assert nkic("k.py").code == 1
    for words in (("--include", "lib"), ("--module", "far=lib/far.py")):
        assert "42.0" in nkic("k.py", *words, "--emit", "ir=-").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--arg", "a"), "expected NAME=VALUE"),
        (("--arg", "a=f99[1]"), "there is no dtype `f99`"),
        (("--arg", "a=f32[2]", "--arg", "a=f32[3]"), "`a` is given twice"),
        (("--arg", "a=f32[2]", "--const", "a=3"), "both by --arg and by --const"),
        (("--const", "factor=nothing("), "--const factor=nothing("),
        (("--target", "trn22"), "there is no target `trn22`"),
        (("--nki", "0.9"), "there is no version `0.9`"),
        (("--grid", "axb"), "--grid: `axb` is not a grid"),
        (("--grid", "0"), "1 to 3 dimensions of at least 1"),
        (("--lnc", "2", "--target", "trn1"), "runs on 1 core"),
    ],
)
def test_words_that_cannot_be_understood(nkic: Run, words: tuple[str, ...], said: str) -> None:
    assert said in failure(nkic("k.py", *words), 2, "bad-argument")


# ---- rejected kernels ----------------------------------------------------------------------------


FIVE = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def wrong(a):
    tall = nl.ndarray((200, 64), dtype=a.dtype, buffer=nl.sbuf)
    tile = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    sums = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
    huge = nl.ndarray((128, 60000), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tall, value=0)
    nisa.dma_copy(dst=tile, src=a[0:128, 0:32])
    nisa.dma_copy(dst=tile, src=a[100:300, 0:64])
    nisa.nc_matmul(dst=tile, stationary=tile, moving=tile)
    nisa.memset(dst=huge, value=0.0)
    nisa.tensor_copy(dst=tile, src=sums)
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_five_mistakes_are_five_errors(nkic: Run, folder: Path) -> None:
    (folder / "k.py").write_text(FIVE)
    ran = nkic("k.py", "--arg", "a=float32[256,64]", "--message-format", "json")
    assert (ran.code, ran.out) == (1, "")
    events = [json.loads(line) for line in ran.err.splitlines()]
    schema = json.loads(
        resources.files("nkic.base.render").joinpath("diagnostic.schema.json").read_text()
    )
    for event in events:
        jsonschema.validate(event, schema)
    found = {event["spans"][0]["line"]: event for event in events}
    assert sorted(found) == [8, 11, 13, 14, 15]
    for line, limit, actual in (
        *((8, "128", "200"), (11, "212728", "240000"), (13, "4096", "8192")),
        *((14, "256", "300"), (15, "psum", "sbuf")),
    ):
        text = found[line]["rendered"].replace(",", "")
        assert limit in text, (line, text)
        assert actual in text, (line, text)
        assert found[line]["level"] == "error"
        assert found[line]["help"]


def test_errors_name_the_file_as_the_user_does(nkic: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "k.py").write_text(FIVE)
    ran = nkic("sub/k.py", "--arg", "a=float32[256,64]")
    assert re.search(r"^sub/k\.py:8:\d+: error\[NKI", ran.err, re.MULTILINE)
    assert "8 |     tall = nl.ndarray((200, 64)" in ran.err
    assert not (folder / "k.neff").exists()


def test_an_old_artifact_stays_when_the_kernel_is_rejected(nkic: Run, folder: Path) -> None:
    assert nkic("k.py").code == 0
    before = (folder / "k.neff").read_bytes()
    (folder / "k.py").write_text(FIVE)
    assert nkic("k.py", "--arg", "a=float32[256,64]").code == 1
    assert (folder / "k.neff").read_bytes() == before


def test_as_many_errors_as_wanted(nkic: Run, folder: Path) -> None:
    (folder / "k.py").write_text(FIVE)
    ran = nkic("k.py", "--arg", "a=float32[256,64]", "--limit", "errors=2")
    assert ran.err.count(": error[") == 2


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        (b"# caf\xe9\n", "not-utf8"),
        (b"# coding: klingon\n", "unknown-encoding"),
        (b"x = (1,\n", "unclosed-bracket"),
        (b"def f(a): return a\n", "no-kernel"),
        (b"", "no-kernel"),
    ],
)
def test_files_that_are_no_kernel(nkic: Run, folder: Path, text: bytes, slug: str) -> None:
    (folder / "k.py").write_bytes(text)
    said = failure(nkic("k.py"), 1, slug)
    assert "k.py" in said


def test_missing_types_show_the_signature(nkic: Run, folder: Path) -> None:
    (folder / "k.py").write_text(KERNEL.replace('# a = "float32[128, 64]"\n', ""))
    ran = nkic("k.py")
    assert ran.code == 2
    assert "double(a, factor=2.0)" in ran.err
    assert "--arg 'a=" in ran.err


# ---- messages ------------------------------------------------------------------------------------


def test_the_resource_line_comes_with_v(nkic: Run) -> None:
    ran = nkic("k.py", "-v")
    assert re.fullmatch(RESOURCE_LINE + r"wrote k\.neff \([\d.]+ (B|KiB)\)\n", ran.err), ran.err


def test_programs_get_the_same_figures(nkic: Run, folder: Path) -> None:
    ran = nkic("k.py", "--message-format", "json")
    assert (ran.code, ran.out) == (0, "")
    event = json.loads(ran.err)
    data = (folder / "k.neff").read_bytes()
    assert (event["type"], event["kind"], event["path"]) == ("artifact", "neff", "k.neff")
    assert event["sha256"] == hashlib.sha256(data).hexdigest()
    assert event["bytes"] == len(data)
    found = event["resources"]
    assert found["sbuf_bytes"] == 128 * 64 * 4
    assert found["instructions"] == {"PE": 0, "ACT": 0, "POOL": 0, "DVE": 1, "SP": 0, "DMA": 2}
    assert found["dma_bytes"] == 2 * 128 * 64 * 4
    assert found["cycles"] > 0


def test_what_the_kernel_prints_goes_to_standard_error(nkic: Run, folder: Path) -> None:
    text = KERNEL.replace("    return out", '    print("shape", a.shape)\n    return out')
    (folder / "k.py").write_text(text)
    assert nkic("k.py") == Ran(0, "", "shape (128, 64)\n")
    assert nkic("k.py", "-q") == Ran(0, "", "")
    event = json.loads(nkic("k.py", "--message-format", "json").err.splitlines()[0])
    assert (event["type"], event["message"]) == ("print", "shape (128, 64)")


def test_times_of_all_stages(nkic: Run) -> None:
    lines = nkic("k.py", "--time").err.splitlines()
    assert [line.split()[0] for line in lines] == ["stage", *pipeline.STAGES, "total"]


def test_an_internal_error_is_ours(
    nkic: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NKIC_CRASH_DIR", str(folder / "crash"))
    monkeypatch.setattr(prove, "prove_addresses", lambda *made: ["two tensors overlap"])
    ran = nkic("k.py")
    said = failure(ran, 70, "internal-error")
    assert "allocate produced a wrong program: two tensors overlap" in said
    [report] = (folder / "crash").iterdir()
    with zipfile.ZipFile(report) as archive:
        assert archive.read("attached/0-k.py").decode() == KERNEL
        assert b"tensor_scalar" in archive.read("attached/1-program.allocated.ir")
    assert not (folder / "k.neff").exists()


def test_an_audit_of_the_schedule_is_heeded_too(
    nkic: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NKIC_CRASH_DIR", str(folder))
    monkeypatch.setattr(prove, "prove_order", lambda *made: ["a", "b"])
    ran = nkic("k.py")
    assert "schedule produced a wrong program: a, and 1 more" in failure(ran, 70, "internal-error")


def test_what_a_kernel_takes_and_may_take(nkic: Run, folder: Path) -> None:
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    done = nkic("k.py", "--report", "resources", "-o", "k.neff")
    assert done.code == 0
    assert "of 26.0 MiB hold data in one step" in done.out and "k.py:" in done.out
    limits = ("--fail-if", "sbuf_peak>90%,psum_banks>8")
    assert nkic("k.py", "--report", "resources=r.json", *limits).code == 0
    record = json.loads((folder / "r.json").read_text())
    assert record["tensors"] and record["resources"]["target"] == "trn2"
    (folder / "k.neff").unlink()
    done = nkic("k.py", "--fail-if", "sbuf_peak>1B")
    assert done.code == 1 and "NKI1008" in done.err and not (folder / "k.neff").exists()
    for words in (("--fail-if", "hbm>1"), ("--fail-if", "psum_banks>1KiB"), ("--report", "all")):
        assert "NKI0003" in nkic("k.py", *words).err
    assert "NKI0009" in nkic("k.py", "--check", "--fail-if", "sbuf_peak>1%").err
