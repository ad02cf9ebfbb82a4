"""The command nkic from outside: --emit, --print, help, and wrong command lines."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import nkic as nkic_api
from nkic.base.files import VARIABLES
from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nkic import EXAMPLES, command, prints
from nkic.cli.nkic.outputs import KINDS
from nkic.compiler.forms import FORMS
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import KERNEL, ROOT, Ran, Run, failure, hear_signals, process

__all__ = ["folder", "nkic"]

# ---- other outputs -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k in FORMS if k != "neff"])
def test_every_stage_can_be_shown(nkic: Run, folder: Path, kind: str) -> None:
    shown = nkic("k.py", "--emit", f"{kind}=-")
    assert (shown.code, shown.err) == (0, "")
    assert "double" in shown.out or kind in ("graph",)
    assert nkic("k.py", "--emit", kind) == Ran(0, "", "")
    assert (folder / f"k{FORMS[kind].suffix}").read_text(encoding="utf-8") == shown.out
    assert not (folder / "k.neff").exists()


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("circle.py",), "cannot-read"),
        (("k.py", "-o", "circle.py"), "cannot-write"),
        (("k.py", "--migrate", "-o", "circle.py"), "cannot-write"),
    ],
)
def test_links_in_a_circle_are_refused(
    nkic: Run, folder: Path, words: tuple[str, ...], slug: str
) -> None:
    (folder / "circle.py").symlink_to("circle.py")
    failure(nkic(*words), 2, slug)
    assert (folder / "circle.py").is_symlink()


def test_a_printed_program_compiles_to_the_same_bytes(nkic: Run, folder: Path) -> None:
    text = KERNEL.replace("nisa.dma_copy(dst=out, src=tile)", "nl.store(out, nl.exp(tile))")
    assert text != KERNEL
    (folder / "k.py").write_text(text)  # with locations in the standard library too
    assert nkic("k.py", "--emit", "neff=a.neff,ir=p.ir,lowered=q.ir,allocated=r.ir").code == 0
    for name in ("p", "q", "r"):
        assert nkic(f"{name}.ir") == Ran(0, "", "")
        assert (folder / f"{name}.neff").read_bytes() == (folder / "a.neff").read_bytes()


@pytest.mark.parametrize("flags", [(), ("--serial",)])
def test_a_printed_schedule_compiles_to_the_same_bytes(
    nkic: Run, folder: Path, flags: tuple[str, ...]
) -> None:
    text = KERNEL.replace("    return out", "    nl.store(out, nl.exp(tile))\n    return out")
    (folder / "k.py").write_text(text)
    assert nkic("k.py", "--emit", "neff=a.neff,sched=s.sched", *flags).code == 0
    assert nkic("s.sched") == Ran(0, "", "")
    assert (folder / "s.neff").read_bytes() == (folder / "a.neff").read_bytes()
    assert nkic("s.sched", "--emit", "sched=-").out == (folder / "s.sched").read_text()


def test_a_printed_listing_compiles_to_the_same_bytes(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "--emit", "neff=a.neff,asm=s.asm", "--embed-source").code == 0
    assert nkic("s.asm", "--embed-source") == Ran(0, "", "")
    assert (folder / "s.neff").read_bytes() == (folder / "a.neff").read_bytes()
    assert nkic("s.asm", "--emit", "asm=-").out == (folder / "s.asm").read_text()
    text = (folder / "s.asm").read_text()
    assert "--emit sched: not possible from a printed listing" in failure(
        nkic("s.asm", "--emit", "sched"), 2, "conflicting-options"
    )
    assert "is not scheduled again" in failure(nkic("s.asm", "-O0"), 2, "conflicting-options")
    (folder / "s.asm").write_text(re.sub(r"; 1x\d+\]", "; 1x99999999]", text, count=1))
    assert "`s.asm` is not a program" in failure(nkic("s.asm"), 1, "bad-program-text")
    assert "`s.asm` is not a program" in failure(nkic("s.asm", "--check"), 1, "bad-program-text")
    (folder / "s.asm").write_text(text.replace("stream core0.", "stream core0!", 1))
    assert "`s.asm` is not a program: line" in failure(nkic("s.asm"), 1, "bad-program-text")


def test_a_printed_schedule_is_proven_and_stays_as_it_is(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "--emit", "sched").code == 0
    text = (folder / "k.sched").read_text()
    assert "--emit lowered: not possible from a printed schedule" in failure(
        nkic("k.sched", "--emit", "lowered"), 2, "conflicting-options"
    )
    assert "is not scheduled again" in failure(
        nkic("k.sched", "--serial"), 2, "conflicting-options"
    )
    (folder / "k.sched").write_text(re.sub(r" wait [\dx, ]+(?= |$)", "", text, count=1, flags=re.M))
    assert "cannot be run as a program: schedule" in failure(nkic("k.sched"), 1, "bad-program-text")
    (folder / "k.sched").write_text(text.replace("stream 0 vector", "stream 0 vectro"))
    assert "`k.sched` is not a program" in failure(nkic("k.sched"), 1, "bad-program-text")


REUSING = """\
# /// nkic
# [args]
# a = "float32[128, 8192]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def again(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a)
        nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_the_graph_has_the_edges_of_reused_memory(nkic: Run, folder: Path) -> None:
    """There are 8 tiles of 32 KiB per partition: later tiles reuse the bytes of earlier ones."""
    (folder / "k.py").write_text(REUSING)
    shown = nkic("k.py", "--emit", "graph=-")
    assert (shown.code, shown.err) == (0, "")
    edges = re.findall(r"(?m)^#(\d+) < .*reuse #(\d+)", shown.out)
    assert edges and all(int(late) > int(early) for late, early in edges)


def test_a_compilation_loads_neither_numpy_nor_lark(folder: Path) -> None:
    code = (
        "import sys; from nkic.cli.common import run; from nkic.cli.nkic import command; "
        "code = run(command, 'nkic', ['k.py']); "
        "print(code, sorted({'numpy', 'lark'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "0 []\n"


def test_a_changed_program_compiles_to_others(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "--emit", "ir").code == 0
    text = (folder / "k.ir").read_text()
    (folder / "k.ir").write_text(text.replace("operand0=2.0", "operand0=7.0"))
    assert "operand0=7.0" in nkic("k.ir", "--emit", "sched=-").out
    (folder / "k.ir").write_text(text.replace("tensor_scalar", "tensor_sclar"))
    assert "`k.ir` is not a program" in failure(nkic("k.ir"), 1, "bad-program-text")
    (folder / "k.ir").write_text(text.replace("operand0=2.0", "operand0=2.0]"))
    assert "`]`, `,` expected" in failure(nkic("k.ir"), 1, "bad-program-text")
    (folder / "k.ir").write_text(text.replace(") @", ") itration 'i=0' @"))
    assert "`itration`" in failure(nkic("k.ir"), 1, "bad-program-text")


def test_dependencies_name_every_file(nkic: Run, folder: Path) -> None:
    (folder / "a b.py").write_text("x = 1\n")
    np.savez(folder / "d.npz", a=np.zeros((8, 8), np.float32))
    (folder / "k.py").write_text(KERNEL.replace("import nki\n", "import nki\nimport near\n", 1))
    text = (folder / "k.py").read_text().replace("operand0=factor", "operand0=near.N")
    (folder / "k.py").write_text(text)
    (folder / "near.py").write_text("N = 2.0\n")
    words = ("--like", "d.npz", "-o", "out.neff", "--emit", "neff,deps=k.d")
    assert nkic("k.py", *words).code == 0
    assert (folder / "k.d").read_text() == "out.neff: k.py near.py d.npz\n"


def test_check_writes_nothing(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "--check") == Ran(0, "", "")
    assert [p.name for p in folder.iterdir()] == ["k.py"]


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("k.py", "--check", "-o", "x"), "conflicting-options"),
        (("k.py", "--check", "--emit", "ir"), "conflicting-options"),
        (("k.py", "--print", "kernels", "-k", "double"), "conflicting-options"),
        (("k.py", "--stdin-name", "x.py"), "conflicting-options"),
        (("k.py", "--print", "targets"), "conflicting-options"),
        (("k.ir", "--arg", "a=f32[1]"), "conflicting-options"),
        (("k.py", "--emit", "ir=x,sched=x"), "conflicting-options"),
        (("k.py", "--emit", "ir=-,neff=-"), "conflicting-options"),
        (("k.py", "--emit", "ir", "--emit", "ir=y"), "conflicting-options"),
        (("k.py", "--emit", "ir,sched", "-o", "x"), "conflicting-options"),
        (("k.py", "--emit", "ir=x", "-o", "y"), "conflicting-options"),
        (("k.py", "--emit", "irr"), "conflicting-options"),
        (("k.py", "--emit", "ir="), "conflicting-options"),
        (("k.py", "-o", "k.py"), "conflicting-options"),
        (("k.py", "-o", "./sub/../k.py"), "conflicting-options"),
        (("k.py", "--module", "x"), "bad-value"),
        (("k.py", "--module", "x=gone.py"), "cannot-read"),
        (("k.py", "--include", "gone"), "cannot-read"),
        (("k.py", "--limit", "errors=0"), "bad-value"),
        (("k.py", "--lnc", "3"), "bad-value"),
        (("k.py", "--like", "gone.npz"), "cannot-read"),
        (("k.graph",), "bad-usage"),
        (("k.ast",), "bad-usage"),
        ((), "missing-argument"),
        (("--print", "tragets"), "bad-value"),
        (("--print", "completion=tcsh"), "bad-value"),
        (("gone.py",), "cannot-read"),
        (("sub",), "bad-value"),
        (("k.py", "-o", "sub"), "cannot-write"),
        (("k.py", "-o", "gone/k.neff"), "cannot-write"),
        (("k.py", "-o", "/dev/full"), "cannot-write"),
    ],
)
def test_wrong_command_lines(nkic: Run, folder: Path, words: tuple[str, ...], slug: str) -> None:
    (folder / "sub").mkdir()
    failure(nkic(*words), 2, slug)
    assert sorted(p.name for p in folder.iterdir()) == ["k.py", "sub"]
    assert (folder / "k.py").read_text() == KERNEL


def test_what_nkic_made_names_the_tool_that_takes_it(nkic: Run) -> None:
    assert "`nki-run k.neff` takes it" in nkic("k.neff").err
    assert "--emit ir" in nkic("k.graph").err


def test_an_interrupt_while_the_rest_is_loaded_is_silent() -> None:
    script = """if True:
        import os, signal, sys
        class Interrupt:
            def find_spec(self, name, path=None, target=None):
                if name == "click":
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Interrupt())
        import nkic.cli
        sys.exit(nkic.cli.{start}())
    """
    for start in ("start_nkic", "start_nki_run"):
        line = [sys.executable, "-c", script.format(start=start), "--help"]
        done = subprocess.run(
            line,
            capture_output=True,
            encoding="utf-8",
            cwd=ROOT,
            timeout=60,
            preexec_fn=hear_signals,
        )
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_misspelt_kind_names_the_near_one(nkic: Run) -> None:
    assert "did you mean `sched`?" in nkic("k.py", "--emit", "shced").err


def test_ir_files_have_no_earlier_stages(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "--emit", "ir").code == 0
    assert "--emit tokens: not possible from a printed program" in failure(
        nkic("k.ir", "--emit", "tokens"), 2, "conflicting-options"
    )


# ---- tables and help -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("targets", "trn2"),
        ("ops", "nc_matmul"),
        ("dtypes", "bfloat16"),
        ("passes", "schedule-audit"),
        ("profiles", "beta2"),
        ("codes", "NKI0501"),
        ("env", "NEURON_PLATFORM_TARGET_OVERRIDE"),
        ("schema", "diagnostic"),
        ("completion=bash", "_NKIC_COMPLETE"),
        ("completion=zsh", "_NKIC_COMPLETE"),
        ("completion=fish", "_NKIC_COMPLETE"),
    ],
)
def test_tables(nkic: Run, what: str, said: str) -> None:
    ran = nkic("--print", what)
    assert (ran.code, ran.err) == (0, "")
    assert said in ran.out


def config(nkic: Run, *words: str) -> dict[str, list[str]]:
    ran = nkic(*words, "--print", "config")
    assert (ran.code, ran.err) == (0, "")
    rows = [re.split(r"  +", line) for line in ran.out.splitlines()]
    return {name: rest for name, *rest in rows}


def test_every_setting_and_where_it_comes_from(nkic: Run, folder: Path) -> None:
    block = '# target = "trn3"\n# grid = [2]\n# [consts]\n# n = 3\n# [args]\n'
    (folder / "b.py").write_text(KERNEL.replace("# [args]\n", block), encoding="utf-8")
    found = config(nkic, "b.py", "--arg", "b=bf16[2,2]", "-D0253", "--limit=errors=3", "-q")
    block = "inline block of b.py"
    assert found["target"] == ["trn3", block] and found["grid"] == ["2", block]
    assert found["argument n"] == ["3", block] and found["argument a"][0] == "float32[128,64]"
    assert found["argument b"] == ["bfloat16[2,2]", "--arg b"]
    assert found["limit"] == ["errors=3", "command line"]
    assert found["warnings"] == ["-D NKI0253", "command line"]
    assert found["verbosity"] == ["-1", "command line"]
    assert found["message-format"] == ["human", "default"]
    assert found["lnc"] == ["1", "default"]


def test_settings_without_a_file(nkic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    found = config(nkic)
    assert found["target"] == ["trn1", "NEURON_PLATFORM_TARGET_OVERRIDE"]
    named = {option.opts[-1].lstrip("-") for option in command.table if option.name != "sources"}
    other = {"print", "explain", "version", "h", "help", "arg", "const", "quiet"}
    assert named - other - {"verbose", "W", "A", "D", "warn", "allow", "deny"} <= found.keys()


def test_the_table_of_variables_is_complete() -> None:
    read = set()
    package = ROOT / "nkic"
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        read |= set(re.findall(r"\benviron(?:\.get\(|\[)\"(\w+)\"", text))
        read |= set(re.findall(r"envvar=\"(\w+)\"", text))
        read |= set(re.findall(r"\"((?:NKIC?|NEURON)_[A-Z_]+)\"", text))
    shown = " ".join(name + " " + effect for name, effect in VARIABLES.items())
    assert len(read) >= 4
    ours = [name for name in sorted(read) if not name.startswith("PYTHON")]
    assert [name for name in ours if name not in shown] == []


def test_help_names_every_kind_and_table(nkic: Run) -> None:
    text = re.sub(r"\s+", " ", nkic("--help").out)
    for name in (*KINDS, *prints.TABLES):
        assert re.search(rf"\b{name}\b", text), name


@pytest.mark.parametrize("words", [("--version",), ("-h",), ("--help",), ("--explain", "NKI0501")])
def test_quick_answers_import_nothing_slow(words: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom nkic.cli.nkic import main\ncode = main()\n"
        "slow = {'numpy', 'lark', 'msgpack', 'rich', 'nkic.compiler.pipeline'} & set(sys.modules)\n"
        "assert not slow, slow\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_kernels_complete(folder: Path) -> None:
    words: dict[str, Any] = {
        "COMP_WORDS": "nkic k.py -k d",
        "COMP_CWORD": "3",
        "_NKIC_COMPLETE": "bash_complete",
    }
    done = process(cwd=folder, **words)
    assert done.stdout == b"plain,double\n"
    words |= {"COMP_WORDS": "nkic ev", "COMP_CWORD": "1"}
    assert process(cwd=folder, **words).stdout == b"plain,evaluate\nfile,ev\n"
    words |= {"COMP_WORDS": "nkic evaluate task.toml --secret ma", "COMP_CWORD": "4"}
    assert process(cwd=folder, **words).stdout == b"file,ma\n"


def test_a_reader_that_goes_away(folder: Path) -> None:
    line = f"{sys.executable} -m nkic.cli.nkic k.py --emit ir=- | true; exit ${{PIPESTATUS[0]}}"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environ, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (141, b"")


def test_examples_in_the_help_run(nkic: Run, folder: Path) -> None:
    text = KERNEL.replace("double", "add").replace("factor=2.0", "n=2").replace("factor", "n")
    (folder / "kernel.py").write_text(f"{text}\n\ntile = 128\n")
    (folder / "kernels").mkdir()
    for name in ("a.py", "b.py", "extra.py", "kernels/c.py"):
        (folder / name).write_text(KERNEL)
    (folder / "reference.py").write_text("def double(a):\n    return 2 * a\n")
    (folder / "task.toml").write_text(
        "[reference]\nfunction = 'reference.py:double'\n[[case]]\ninputs = { a = 'f32[128,64]' }\n"
    )
    assert len(EXAMPLES) == 7
    for line, _ in EXAMPLES:
        name, *words = shlex.split(line)
        assert name == "nkic"
        assert nkic(*words).code == 0, line
    told = nkic("evaluate", "task.toml", ".", "--time-only", "--no-sensitivity").out
    assert "kernels/c.py" in told and "reference.py" not in told


COLOURED = {"COLUMNS": "80", "TERM": "xterm"}


def test_a_terminal_gets_tables_that_fit(nkic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in COLOURED.items():
        monkeypatch.setenv(name, value)
    plain, shown = nkic("--print", "env").out, nkic("--print", "env", "--color", "always").out
    bare = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "\x1b[1m" in shown and "\x1b" not in plain
    assert max(map(len, bare.splitlines())) <= 80 < max(map(len, plain.splitlines()))
    assert sorted(re.sub("─+", " ", bare).split()) == sorted(plain.split()), "nothing is left out"


def test_a_terminal_gets_pages_without_markup(nkic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in COLOURED.items():
        monkeypatch.setenv(name, value)
    plain, shown = (nkic("--explain", "0640", "--color", c).out for c in ("never", "always"))
    bare = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "## Why\n" in plain and "```python\n" in plain and "\x1b" not in plain
    assert "\x1b[" in shown and "## Why" not in bare and "```" not in bare
    assert max(map(len, bare.splitlines())) <= 80
    assert " nisa.core_barrier(out, (0, 1))" in bare


def test_a_signed_artifact_runs_where_its_key_is_required(nkic: Run, folder: Path) -> None:
    key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path("key.pem").write_bytes(key.private_bytes(*form))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    Path("public.pem").write_bytes(public)
    assert nkic("k.py", "--sign", "key.pem", "-o", "signed.neff").code == 0
    assert nkic("k.py", "-o", "plain.neff").code == 0

    def checked(file: str) -> Ran:
        words = ("inspect", file, "--check", "--require-signature", "public.pem")
        return Ran(run(nki_run, "nki-run", words), "", "")

    assert [checked(f"{name}.neff").code for name in ("signed", "plain")] == [0, 3]
    signed = nkic_api.Artifact.load("signed.neff", signed_by="public.pem")
    assert nkic_api.Artifact.load("plain.neff").sign("key.pem").data == signed.data
    with pytest.raises(nkic_api.RunError, match="the file has no signature"):
        nkic_api.Artifact.load("plain.neff", signed_by="public.pem")


def test_signing_needs_a_key_and_an_artifact(nkic: Run, folder: Path) -> None:
    assert "NKI0003" in nkic("k.py", "--sign", "k.py").err
    assert "none is written" in nkic("k.py", "--sign", "k.py", "--emit", "ir").err
    assert "`--check` writes nothing" in nkic("k.py", "--sign", "k.py", "--check").err
    assert not list(folder.glob("*.neff"))


def test_python_itself_proves_the_source(nkic: Run, folder: Path) -> None:
    assert nkic("k.py", "--prove-source") == Ran(0, "", "")
    assert "NKI0009" in nkic("-", "--prove-source").err
    # The closed world has no such module of Python, so that it evaluates another program.
    only_python = "try:\n    import json.tool\n    N = 3\nexcept ImportError:\n    N = 2\n"
    (folder / "k.py").write_text(only_python + KERNEL.replace("factor=2.0", "factor=N"))
    said = failure(nkic("k.py", "--prove-source", "-o", "other.neff"), 1, "other-program")
    assert "- tensor_scalar" in said and "operand0=2" in said.split("- tensor_scalar")[1]
    assert "+ tensor_scalar" in said and "operand0=3" in said.split("+ tensor_scalar")[1]
    (folder / "k.py").write_text("import missing_module\n" + KERNEL)
    said = failure(nkic("k.py", "--prove-source", "-o", "other.neff"), 1, "other-program")
    assert "ModuleNotFoundError: No module named 'missing_module'" in said
    assert not (folder / "other.neff").exists()
