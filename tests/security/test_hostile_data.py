"""Hostile data ends in a diagnostic: printed programs, artifacts, settings, arrays, profiles.

No command ends with an internal error, whatever its files, options and variables hold. The long
test repeats the short one with other seeds.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.files import VARIABLES
from nkic.base.source import CallChain, Span
from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nkic import command as nkic
from nkic.machine.dtypes import FLOAT32
from nkic.machine.targets import TARGETS, Address, Buffer
from nkic.program.program import Program, Tensor, TensorParameter
from nkic.program.text import program_text, read_program
from nkic.source import bindings
from tests.security import data as hostile_data
from tests.security.data import WORDS, changed_text

TOOLS = {"nkic": nkic, "nki-run": nki_run}
BODY = """
import nki
import numpy as np
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a, n=3, f=()):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    def body(i):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nl.fori_loop(0, 4, body)
    d = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=d, src=nl.shared_constant(np.ones((128, 16), dtype=np.float32)))
    nisa.tensor_tensor(dst=t, data1=t, data2=d, op=nl.add)
    nisa.dma_copy(dst=out, src=t)
    return out
"""
BLOCK = """\
# /// nkic
# nki = "0.7"
# grid = [2, 2]
# lnc = 1
# target = "trn2"
# kernel = "kernel"
# [args]
# a = "float32[128, 16]"
# [consts]
# n = 3
# f = [1, "x"]
"""
MACHINE = (
    'target = "trn2"\ncontention = "alone"\n[tensor]\nclock_mhz = 2400\n[dma]\ndone_ns = 300\n'
)
PROJECT = '[tool.nkic]\nnki = "0.7"\nevaluate = "closed"\n[project]\nname = "x"\n'
NPY = "{'descr': '<f4', 'fortran_order': False, 'shape': (128, 16), }"
LIMITS = ["--max-cycles", "1000000", "--max-iterations", "1000", "--no-verdict"]
RUN = ["k.neff", "--fill", "zeros", *LIMITS]
ARG = ["--arg", "a=f32[128,16]"]
VERDICTS = {0, 1, 2, 3, 4, 5, 6}


class Ended(NamedTuple):
    code: int
    said: str


class Place:
    """A folder with a kernel, its artifact and its profiles, in which commands run."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capfd = capfd

    def write(self, name: str, data: bytes | str) -> str:
        encoded = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        (self.folder / name).write_bytes(encoded)
        return name

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def ends(self, tool: str, *words: str, about: object = "") -> Ended:
        """Run a command, which must not fail internally."""
        code = run(TOOLS[tool], tool, list(words))
        out = self.capfd.readouterr()
        assert code in VERDICTS, f"{code} {words} {about}\n{out.err[:2000]}"
        assert "Traceback" not in out.err
        assert not list(self.folder.glob("nkic-crash*"))
        return Ended(code, out.err)


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Place:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NKIC_CRASH_DIR", str(tmp_path))
    made = Place(tmp_path, capfd)
    made.write("k.py", BODY)
    assert made.ends("nkic", "k.py", *ARG, "-o", "k.neff").code == 0
    kinds = ("ir", "lowered", "allocated", "sched", "asm")
    made.ends("nkic", "k.py", *ARG, "--emit", ",".join(f"{kind}=k.{kind}" for kind in kinds))
    saved = ["--report", "json=profile.json", "--save-baseline", "base.json"]
    assert made.ends("nki-run", *RUN, *saved).code == 0
    np.savez(tmp_path / "in.npz", a=np.ones((128, 16), np.float32))
    return made


def _program(kind: str) -> Callable[[Place, random.Random], None]:
    suffix = kind if kind in ("sched", "asm") else "ir"

    def attempt(place: Place, chance: random.Random) -> None:
        text = changed_text(place.read(f"k.{kind}"), chance)
        name = place.write(f"m.{suffix}", text)
        if place.ends("nkic", name, "-o", "m.neff", about=text).code == 0:
            ended = place.ends("nki-run", "m.neff", "--fill", "zeros", *LIMITS, about=text)
            assert ended.code != 3, f"nkic wrote what nki-run rejects: {ended.said}\n{text}"

    return attempt


def _artifact(place: Place, chance: random.Random) -> None:
    data = hostile_data.changed_artifact((place.folder / "k.neff").read_bytes(), chance)
    name = place.write("m.neff", data)
    ended = place.ends("nki-run", name, "--fill", "zeros", *LIMITS, "--report", "html=r.html")
    if ended.code != 3:
        more = ["--race-check", "--fuzz-order", "2", "--annotate", "--timeline", "--watch", "t"]
        place.ends("nki-run", name, "--fill", "randn(0)", "--max-cycles", "100000", *more)
        for words in (["--disasm"], ["--info"], ["--verify"], ["--diff", "k.neff"]):
            place.ends("nki-run", *([*words, name] if len(words) > 1 else [name, *words]))


def _machine(place: Place, chance: random.Random) -> None:
    text = changed_text(MACHINE, chance)
    name = place.write("m.toml", text)
    place.ends("nkic", "k.py", *ARG, "--machine", name, "-o", "m.neff", about=text)
    place.ends("nki-run", *RUN, "--machine", name, about=text)


def _block(place: Place, chance: random.Random) -> None:
    text = changed_text(BLOCK, chance)
    place.ends("nkic", place.write("b.py", f"{text}# ///\n{BODY}"), "--check", about=text)


def _project(place: Place, chance: random.Random) -> None:
    text = changed_text(PROJECT, chance)
    place.write("pyproject.toml", text)
    place.ends("nkic", "k.py", *ARG, "--check", about=text)
    (place.folder / "pyproject.toml").unlink()


def _profile(place: Place, chance: random.Random) -> None:
    for source in ("profile.json", "base.json"):
        text = place.read(source)
        value = hostile_data.changed_value(json.loads(text), chance)
        for changed in (changed_text(text, chance), json.dumps(value, default=str)):
            name = place.write("m.json", changed)
            place.ends("nki-run", "--diff", name, "profile.json", about=changed)
            rules = ["--baseline", name, "--fail-if", "cycles>+2%"]
            place.ends("nki-run", *RUN, *rules, about=changed)


def _arrays(place: Place, chance: random.Random) -> None:
    data = hostile_data.changed_bytes((place.folder / "in.npz").read_bytes(), chance)
    if chance.random() < 0.6:
        header = changed_text(NPY, chance).encode("utf-8", "replace") + b"\n"
        version = bytes([chance.choice((1, 1, 1, 2, 3, 9)), 0])
        size = (len(header) % 65536).to_bytes(2, "little")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            member = chance.choice(("a.npy", "a", "../a.npy", "a.npy/"))
            archive.writestr(member, b"\x93NUMPY" + version + size + header + bytes(8192))
        data = buffer.getvalue()
    name = place.write("m.npz", data)
    place.ends("nki-run", "k.neff", "--inputs", name, *LIMITS)
    place.ends("nkic", "k.py", "--like", name, "--check")
    place.ends("nki-run", *RUN, "--expected", name)
    place.ends("nki-run", *RUN, "--expect-at", f"11={name}")


def _word(chance: random.Random) -> str:
    """Return a word as the system can pass it: no NUL, and lone surrogates for bytes alone."""
    word = chance.choice(WORDS).replace("\ud800", "\udc80").replace("\0", "")
    return word if word not in ("-", "..", "/dev/zero", "~") else "x"


def _variable(place: Place, chance: random.Random) -> None:
    name, value = chance.choice([*VARIABLES, "HOME", "XDG_CACHE_HOME", "COLUMNS"]), _word(chance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NKIC_CACHE_DIR", str(place.folder / "cache"))
        patch.setenv("NKIC_CACHE", chance.choice("01"))
        if name != "NKIC_CRASH_DIR":
            patch.setenv(name, value)
        place.ends("nkic", "k.py", *ARG, "-o", "m.neff", about=(name, value))
        place.ends("nki-run", *RUN, about=(name, value))


RUN_OPTIONS = bindings.words("""
    --break --watch --dump-tensor --expect-at --window --lines --engine --seed --fuzz-order
    --fail-if --max-cycles --input --output --rtol --max-ulp --compare --min-pass-rate
    --fail-on --ranks --max-memory --limit --fill --source -W -D -A --report --calibrate
    --machine --print --inputs
""")
COMPILE_OPTIONS = bindings.words("""
    --arg --const --grid --lnc --target --nki --max --limit --max-errors -O --print
    --explain -k --message-format --like --machine --module --include
""")
FORMS = (
    *("W", "a=W", "k.py:W", "11:W", "W:V", "t[W]", "t[W:V]", "t@W=x.npz", "W=in.npz"),
    *("a=f32[W]=@in.npz", "a=f32[W,V]", "a=WxVxbf16", "a=const(W)", "a=uniform(W,V,0)", "randn(W)"),
    *("cycles>W", "sbuf_peak>W%", "output_0=W", "memory=W", "steps=W", "depth=W", "NKIW", "n=[W]"),
    *('n={"a":W}', "WxV", "sbuf=W%", "psum=W", "W=k.py"),
)


def _option(place: Place, chance: random.Random) -> None:
    form = chance.choice(FORMS).replace("W", _word(chance)).replace("V", _word(chance))
    place.ends("nki-run", *RUN, chance.choice(RUN_OPTIONS), form, about=form)
    option = chance.choice(COMPILE_OPTIONS)
    place.ends("nkic", "k.py", *ARG, "-o", "m.neff", option, form, about=form)


def _breakpoint(place: Place, chance: random.Random) -> None:
    """Commands of `--break`, which reads standard input."""
    words = ("print t", "where", "engines", "queues", "memory", "step", "next", "help", "continue")
    lines = [chance.choice((*words, f"print {_word(chance)}", f"step {_word(chance)}"))
             for _ in range(6)]  # fmt: skip
    lines.append(
        chance.choice((f"print t[{_word(chance)}]", f"print t[{_word(chance)}:1]", "quit"))
    )
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), "utf-8", "strict"))
        place.ends("nki-run", *RUN, "--break", f"11:{chance.choice((1, 2, 9))}", about=text)


def _cache(place: Place, chance: random.Random) -> None:
    """A cache whose folder or entries are broken: wrong bytes, types, links and modes."""
    folder = place.folder / f"cache{chance.random()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NKIC_CACHE_DIR", str(folder))
        patch.setenv("NKIC_CACHE", "1")
        compile_ = ("nkic", "k.py", *ARG, "-o", "m.neff")
        place.ends(*compile_)
        entries = [path for path in folder.rglob("*") if path.is_file()]
        for path in entries:
            _break(path, chance)
        assert place.ends(*compile_).code == 0
        assert (place.folder / "m.neff").read_bytes() == (place.folder / "k.neff").read_bytes()


def _break(path: Path, chance: random.Random) -> None:
    data, choice = path.read_bytes(), chance.randrange(7)
    path.chmod(0o600)
    if choice < 3:
        made = (b"", hostile_data.changed_bytes(data, chance), data[: chance.randrange(len(data))])
        path.write_bytes(made[choice])
        return
    path.unlink()
    if choice == 3:
        path.mkdir()
    elif choice == 4:
        path.symlink_to(path)
    elif choice == 5:
        os.mkfifo(path)
    else:
        path.write_bytes(data)
        path.chmod(0o666)


TASK = """\
name = 't'
target = 'trn2'
nki = '0.7'
may_write = ['a']
[reference]
function = 'r.py:f'
[limits]
seconds = 60
memory = '1GiB'
[outputs]
rtol = 1e-3
[[case]]
name = 'one'
inputs = { a = 'f32[128,16]' }
values = { a = 'uniform(0,1,3)' }
consts = { n = 2 }
seeds = [1]
"""
DEFINITION = {
    "name": "d",
    "axes": {"m": {"type": "const", "value": 128}, "n": {"type": "var"}},
    "inputs": {"a": {"shape": ["m", "n"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["m", "n"], "dtype": "float32"}},
    "reference": "def run(a):\n    return a\n",
}
WORKLOAD = {"definition": "d", "workload": {"uuid": "u", "axes": {"n": 16}, "inputs": {}}}
SOLUTION = {
    "name": "s",
    "spec": {"entry_point": "k.py::kernel"},
    "sources": [{"path": "k.py", "content": "def kernel(a): pass"}],
}


def _task(place: Place, chance: random.Random) -> None:
    text = changed_text(TASK, chance)
    place.write("r.py", "def f(a): return a\n")
    place.ends("nkic", "evaluate", place.write("t.toml", text), "none.py", about=text)
    marked = BODY.replace("n=3", f"n=3,  # tune: {_word(chance)}, 3\n")
    words = ["tune", place.write("m.py", marked), "t.toml", "--vary", f"m={_word(chance)}"]
    place.ends("nkic", *words, about=text)


def _suite(place: Place, chance: random.Random) -> None:
    """A definition, its workloads and a solution, of which one is changed."""
    made = [DEFINITION, WORKLOAD, SOLUTION]
    number = chance.randrange(3)
    made[number] = hostile_data.changed_value(made[number], chance)
    names = [place.write(f"{n}.json", json.dumps(one, default=str)) for n, one in enumerate(made)]
    words = ["evaluate", names[0], names[2], "--workloads", names[1], "--time-only"]
    place.ends("nkic", *words, "--traces", "t.jsonl", about=made[number])


GROUPS: dict[str, tuple[Callable[[Place, random.Random], None], int]] = {
    **{kind: (_program(kind), 12) for kind in ("ir", "lowered", "allocated", "sched", "asm")},
    "artifact": (_artifact, 20),
    "machine": (_machine, 12),
    "block": (_block, 15),
    "project": (_project, 12),
    "profile": (_profile, 4),
    "arrays": (_arrays, 6),
    "variable": (_variable, 12),
    "option": (_option, 15),
    "break": (_breakpoint, 12),
    "cache": (_cache, 7),
    "task": (_task, 10),
    "suite": (_suite, 20),
}


@pytest.mark.parametrize("group", GROUPS)
def test_hostile_data_ends_in_diagnostics(group: str, place: Place) -> None:
    attempt, count = GROUPS[group]
    for seed in range(count):
        attempt(place, random.Random(f"{group} {seed}"))


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_much_hostile_data_ends_in_diagnostics(group: str, place: Place) -> None:
    attempt, count = GROUPS[group]
    for seed in range(count, 40 * count):
        attempt(place, random.Random(f"{group} {seed}"))


# ---- single cases of the groups ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("tool = 5", "[tool]\nnkic = [1]", "tool = []", "[tool.nkic]\nnki = [1]", "nkic = [["),
        *("[tool.nkic]\nnki = " + "[" * 5000, "[tool.nkic]\nnki = 0x" + "f" * 5000),
        *("[tool.nkic]\nnki = 1979-01-01", "[tool.nkic]\nunknown = 1", "\x00", "[tool.nkic.nki]"),
    ],
    ids=lambda text: text[:30],
)
def test_a_wrong_project_file_is_named(text: str, place: Place) -> None:
    place.write("pyproject.toml", text)
    ended = place.ends("nkic", "k.py", *ARG, "--check")
    if text != "nkic = [[":
        assert ended.code == 2
    if ended.code:
        assert "pyproject.toml" in ended.said


@pytest.mark.parametrize(
    "line",
    [
        *("grid = " + str([999999999] * 999), "grid = [1, 1, 1, 1]", "grid = 10000000000"),
        *("grid = 0x" + "f" * 5000, "n = " + "9" * 5000, "lnc = [" + "[" * 5000),
    ],
    ids=lambda line: line[:25],
)
def test_a_wrong_block_is_refused_at_its_line(line: str, place: Place) -> None:
    name = place.write("b.py", f"# /// nkic\n# {line}\n# ///\n{BODY}")
    ended = place.ends("nkic", name, *ARG, "--check")
    assert ended.code == 2
    assert "b.py:" in ended.said


@pytest.mark.parametrize(
    "words",
    [
        *("nkic k.py --message-file F", "nkic k.py --junit F", "nkic k.py --report resources=F"),
        *("nkic k.py --report remarks=F.json", "nki-run k.neff --fill zeros --message-file F"),
        *("nki-run k.neff --inputs in.npz -o F", "nki-run k.neff --inputs in.npz --bless F"),
        *("nki-run k.neff --fill zeros -o a=@F", "nki-run profile k.neff --report html=F"),
        *(
            "nki-run equal k.neff k.neff --message-file F",
            "nki-run inspect k.neff --message-file F",
        ),
        *("nkic evaluate task.toml k.py --jsonl F", "nkic tune k.py task.toml --write F"),
    ],
)
def test_what_is_written_can_be_written_and_is_not_read(words: str, place: Place) -> None:
    """Both are refused before any work, and nothing is lost."""
    place.write("task.toml", "")
    place.write("k.neff.json", "")
    made = {path: path.read_bytes() for path in place.folder.iterdir()}
    tool, *rest = words.split()
    (place.folder / "file").write_text("")
    for target in ("no/x", "file/x", "x" * 300, *(["in.npz"] if "in.npz" in words else [])):
        ended = place.ends(tool, *(word.replace("F", target) for word in rest))
        assert ended.code == 2
        assert "read by this run" in ended.said if target == "in.npz" else "NKI0006" in ended.said
    for name in {word for word in rest if (place.folder / word).is_file()}:
        ended = place.ends(
            tool, *(word.replace("F.json", name).replace("F", name) for word in rest)
        )
        assert ended.code == 2
        assert "is read by this run" in ended.said
    assert {path: path.read_bytes() for path in made} == made


def test_messages_and_outputs_are_not_written_to_one_file(place: Place) -> None:
    for target, code in ("a", 2), (os.devnull, 0):
        words = ["k.neff", "--fill", "zeros", "-o", target, "--message-file", target]
        ended = place.ends("nki-run", *words)
        assert ended.code == code
        assert ("`a` is written by this run (--outputs)" in ended.said) == (code == 2)


def test_options_are_read_before_the_run(place: Place) -> None:
    """A wrong option loses neither the time of a run nor the outputs of an earlier one."""
    place.write("o.npz", "earlier")
    for words in (
        *(
            ["debug", *RUN, "--fuzz-order", order]
            for order in ("x", "0", "1:x", "\u00b2", "9" * 5000)
        ),
        *(["profile", *RUN, "--against", path] for path in ("no", "k.py", ".")),
    ):
        assert place.ends("nki-run", *words, "-o", "o.npz").code == 2
        assert place.read("o.npz") == "earlier"


@pytest.mark.parametrize(
    "words",
    [
        *(
            "nkic F",
            "nkic k.py F",
            "nkic k.py k.ir -o F",
            "nkic k.py --include F",
            "nkic F --check",
        ),
        *("nkic k.py --module x=F", "nkic k.py --like F", "nkic k.py --machine F", "nkic serve F"),
        *("nkic evaluate F k.py", "nkic evaluate task.toml F", "nkic tune F task.toml"),
        *("nkic tune k.py F", "nki-run F", "nki-run compare F k.neff", "nki-run compare k.neff F"),
        *(
            "nki-run equal F k.neff",
            "nki-run inspect F",
            "nki-run calibrate F",
            "nki-run profile F",
        ),
        *("nki-run profile k.neff --fill zeros --against F", "nki-run k.neff --inputs F"),
        *("nki-run k.neff --inputs a=@F.npy", "nki-run k.neff --fill zeros --expected F"),
        *("nki-run debug k.neff --fill zeros --dump all=F", "nki-run k.neff --machine F"),
    ],
)
def test_a_path_that_the_system_refuses(words: str, place: Place) -> None:
    """Too long a name, a link to itself, a file in place of a folder, and what is not there."""
    reference = "[reference]\nfunction = 'r.py:f'\n[[case]]\ninputs = { a = 'f32[128,16]' }\n"
    place.write("task.toml", reference)
    place.write("r.py", "def f(a): return a\n")
    (place.folder / "loop").symlink_to("loop")
    for path in ("x" * 300, "x" * 300 + "/y", "y/" * 3000, "loop", "k.py/x", "no/x"):
        tool, *rest = words.split()
        ended = place.ends(tool, *(word.replace("F", path) for word in rest), about=path)
        assert ended.code == 2, ended.said


@pytest.mark.parametrize("path", ["k.py", "k.py/x", "/dev/null"])
def test_a_folder_that_cannot_be_made(path: str, place: Place) -> None:
    words = ["k.py", *ARG, "-o", "m.neff", "--bug-report", path]
    assert "NKI00" in place.ends("nkic", *words).said


ARRAYS = bindings.words("""
    np.eye(-5,5) np.zeros(6).reshape((-2,-3)) np.ones((1,)*9) np.zeros((-1,4))
    np.identity(-1) np.zeros((0,5)) np.array(5) np.full((2,-1),1) np.arange(5,0)
    np.zeros((2,3)).reshape((-1,-1))
""")


@pytest.mark.parametrize("array", ARRAYS)
def test_wrong_constants_are_refused_in_the_kernel(array: str, place: Place) -> None:
    text = BODY.replace("np.ones((128, 16), dtype=np.float32)", array)
    ended = place.ends("nkic", place.write("c.py", text), *ARG, "-o", "c.neff")
    assert ended.code == 1
    assert "c.py:16" in ended.said


@pytest.mark.parametrize("size", ["True", "1.0 == 1.0"])
def test_truths_are_no_sizes_as_in_numpy(size: str, place: Place) -> None:
    text = BODY.replace("np.ones((128, 16)", f"np.ones(({size}, 16)").replace("dst=d", "dst=d[0:1]")
    ended = place.ends("nkic", place.write("c.py", text), *ARG, "-o", "c.neff")
    assert ended.code == 1 and "an integer is required" in ended.said


@pytest.mark.parametrize(
    ("kind", "old", "new", "said"),
    [
        ("ir", "(128, 16); (16, 1)", "(128, None); (16, 1)", "a tuple of integers"),
        ("ir", "(128, 16); (16, 1)", "(128, 16); 16", "a tuple of integers"),
        ("ir", "(128, 16); (16, 1)", "(128, 16); (16,)", "2, one for each size"),
        ("sched", r" wait (\d+)x1, \d+x1", r" wait \1x1, \1x1", "two waits for one semaphore"),
    ],
)
def test_a_printed_program_that_was_changed(
    kind: str, old: str, new: str, said: str, place: Place
) -> None:
    text = place.read(f"k.{kind}")
    changed = re.sub(old if "wait" in old else re.escape(old), new, text, count=1)
    assert changed != text
    ended = place.ends("nkic", place.write(f"m.{kind}", changed), "-o", "m.neff")
    assert ended.code != 0 and said in ended.said


NAMES = [
    *(r"a\nb", r"a\r\x1b[2J", r"\u202ea", r"\ud800", "x" * 5000, "é" * 2000, " ", "'", "'a'"),
    *(
        "a: float32[4] hbm",
        "a @n.py:1:1-1:9",
        "%0 a",
        "a < b",
        "a = 'b'",
        r"a\u2028b",
        r"\\U00000020",
    ),
]


@pytest.mark.parametrize(("name", "other"), [*zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)])
def test_a_tensor_may_have_any_name(name: str, other: str, place: Place) -> None:
    """Each name is once that of a tensor in HBM, and once that of one in SBUF."""
    text = BODY
    for buffer, given_name in (("shared_hbm", name), ("sbuf", other)):
        before = text
        text = text.replace(f"buffer=nl.{buffer})", f'buffer=nl.{buffer}, name="{given_name}")')
        assert text != before
    same_everywhere(place, text, "a")


@pytest.mark.parametrize("name", ["a b", "a @k.py:1:1-1:9", "a < b", "'a'", "a\u2028b", "a\n%1 x"])
def test_a_kernel_may_be_in_a_file_of_any_name(name: str, place: Place) -> None:
    same_everywhere(place, BODY, "a", name + ".py")


ODD = st.text(st.one_of(st.sampled_from("ax01 '\"\\%@<:=[](){}#,.-/\n\u2028\xa0"), st.characters()))
PARTS = [*NAMES, *WORDS, "@k.py:1:1-1:9 < k.py:2:2-2:3", ": float32[4] hbm", " = %0", "\\U00110000"]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_what_is_printed_is_read_back(drawn: st.DataObject) -> None:
    """Names, paths and keys, whatever they are: nothing in them is taken for what follows them."""
    word = st.one_of(st.sampled_from(PARTS), ODD, st.lists(st.sampled_from(PARTS)).map(" ".join))
    program, path, tensor, port, note, key, value = (drawn.draw(word) for _ in range(7))
    at = CallChain(Span(path, 1, 2, 3, 4), CallChain(Span(path, 5, 6, 7, 8)))
    one = Tensor(0, tensor, FLOAT32, (4,), Buffer.HBM, at, Address(0, 4), (1,))
    ports = (TensorParameter(port, one),)
    notes, arguments = {note: value}, {key: value}
    target = TARGETS["trn2"]
    made = Program(
        program, target, (one,), ports, ports, ((),), {}, {}, arguments=arguments, notes=notes
    )
    found = read_program(program_text(made))
    (other,) = found.tensors
    assert (found.name, other.name, other.at, other.shape) == (program, tensor, at, (4,))
    assert [p.name for p in (*found.inputs, *found.outputs)] == [port, port]
    assert (found.notes, found.arguments) == (notes, arguments)


def test_a_variable_and_a_parameter_may_have_any_length(place: Place) -> None:
    for variable in re.findall(r"(?m)^    (\w+) = nl.ndarray", BODY)[:2]:
        same_everywhere(place, re.sub(rf"\b{variable}\b", variable * 5000, BODY), "a")
    same_everywhere(place, re.sub(r"\ba\b", "a" * 5000, BODY), "a" * 5000)


def same_everywhere(place: Place, text: str, argument: str, name: str = "n.py") -> None:
    """Compile, run, print and read back a kernel."""
    words = (place.write(name, text), "--arg", f"{argument}=float32[128,16]")
    assert place.ends("nkic", *words, "-o", "n.neff").code == 0
    assert place.ends("nki-run", "n.neff", "--fill", "zeros").code == 0
    for kind in ("ir", "sched"):
        assert place.ends("nkic", *words, "--emit", f"{kind}=n.{kind}").code == 0
        assert place.ends("nkic", f"n.{kind}", "-o", f"{kind}.neff").code == 0
    printed = place.read("n.ir")
    assert place.ends("nkic", "n.ir", "--emit", "ir=again.ir").code == 0
    assert place.read("again.ir") == printed


def test_what_follows_a_printed_program_is_refused(place: Place) -> None:
    text = place.read("k.ir")
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("%"))
    moved = next(line for line in lines if line.startswith("const"))
    lines.remove(moved)
    lines.insert(first, moved)
    ended = place.ends("nkic", place.write("m.ir", "\n".join(lines)), "-o", "m.neff")
    assert ended.code == 1
    assert "m.ir" in ended.said
