"""Tasks: what their file may say, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.judge import Candidate, Judge, Task, read_task
from nkic.judge.task import task_of
from nkic.simulate.inputs import MAX_SEED
from tests.judge.test_cheats import GOOD

REFERENCE = "[reference]\nfunction = 'r.py:f'\n"
SIZED = "[[case]]\ninputs = { x = 'f32[128,n]' }\nsizes = { n = [3, 4, 5] }\nhidden = true\n"
CASE = "[[case]]\ninputs = { x = 'f32[128,4]' }\n"


def task(folder: Path, text: str) -> Task:
    path = folder / "task.toml"
    path.write_text(text)
    (folder / "r.py").write_text("def f(x): return x")
    return read_task(path)


def test_everything_that_a_task_may_say(tmp_path: Path) -> None:
    found = task(
        tmp_path,
        "name = 'sum'\nkernels = ['k', 'kernel']\ntarget = 'trn2'\nnki = '0.7'\noptimise = 2\n"
        "families = ['large']\nrequired_families = ['zeros']\nmay_write = ['x']\n"
        "narrowest = 'float32'\nequal_nan = true\n"
        f"{REFERENCE}[limits]\nseconds = 3\nmemory = '1GiB'\n"
        "[outputs]\nrtol = 1e-3\n[outputs.output_0]\nmode = 'ulp'\nmax_ulp = 2\n"
        "[[case]]\nname = 'small'\ninputs = { x = 'bf16[128,4]', n = 'i32[128,4]' }\n"
        "values = { x = 'uniform(0,1,3)' }\nconsts = { k = 3 }\nseeds = [1, 2]\nhidden = true\n"
        "lnc = 2\n",
    )
    assert found.optimise == 2
    assert (found.name, found.kernels, found.target) == ("sum", ("k", "kernel"), "trn2")
    assert (found.seconds, found.memory) == (3.0, 1 << 30)
    assert found.outputs.rule("output_0", found.cases[0].inputs["x"].dtype).max_ulp == 2
    assert found.narrowest is not None and found.narrowest.name == "float32"
    (case,) = found.cases
    assert case.hidden and case.seeds == (1, 2) and case.consts == {"k": 3} and case.lnc == 2
    assert str(case.values["x"]) == "uniform(0,1,3)"


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        (REFERENCE, "there is no case", "inputs = { x = 'f32[128,512]' }"),
        (CASE, "[reference] must say one thing", "function = 'reference.py:softmax'"),
        (
            REFERENCE + CASE + CASE.replace("]]", "]]\nname = 'case0'"),
            "two cases are called",
            "name",
        ),
        (f"nki = '9'\n{REFERENCE}{CASE}", "`nki` is '9'", "0.7"),
        (f"{REFERENCE}{CASE}[limits]\nseconds = inf\n", "`seconds` is inf", ""),
        (f"{REFERENCE}{CASE}[outputs]\nrtol = nan\n", "rtol is nan", ""),
        (f"{REFERENCE}{CASE}grid = 1.5\n", "`grid` must be", ""),
        (f"{REFERENCE}{CASE}grid = []\n", "`grid` must be", ""),
        (REFERENCE + SIZED.replace("hidden = true", ""), "`sizes` are for a hidden case", "true"),
        (REFERENCE + SIZED.replace("[3, 4, 5]", "[3]"), "`n` has no two choices", "[96, 160"),
        (REFERENCE + SIZED.replace("[3,", "[0,"), "must be a list of whole numbers", "[96, 160"),
        (REFERENCE + SIZED.replace(",n]", ",2n]"), "no shape has `n`", "as in 'f32[128,n]'"),
        (
            REFERENCE + SIZED.replace(",n]", ",n,2n]"),
            "x = 'f32[128,n,2n]' with n = 3: the sizes in `f32[128,3,2n]` are not all whole",
            "",
        ),
        (
            REFERENCE + SIZED.replace(",n]", ",n*2]"),
            "x = 'f32[128,n*2]' with n = 3: the sizes in `f32[128,3*2]` are not all whole",
            "",
        ),
        (
            REFERENCE + SIZED.replace("5]", f"{10**14}]"),
            f"case case0: x = 'f32[128,n]' with n = {10**14}: every size",
            "",
        ),
        (
            REFERENCE
            + SIZED.replace(",n]", ",m,n]")
            .replace("{ n", "{ m = [1, 2], n")
            .replace("5]", f"{10**14}]"),
            f"x = 'f32[128,m,n]' with m = 1, n = {10**14}: every size",
            "",
        ),
        (REFERENCE + SIZED.replace("{ n =", "{ m ="), "no shape has `m`", "as in 'f32[128,m]'"),
        (SIZED + "[reference]\nnpz = 'r.py'\n", "takes any shape", "function or a kernel"),
        (f"{REFERENCE}{CASE.replace('4', 'n')}", "n", ""),
        (f"{REFERENCE}{CASE}lnc = 3\n", "lnc` is 3", "1, 2"),
        (f"{REFERENCE}{CASE}lnc = true\n", "lnc` is True", "1, 2"),
        (f"optimise = true\n{REFERENCE}{CASE}", "`optimise` is True", "use one of 0, 1, 2"),
        (f"equal_nan = 'no'\n{REFERENCE}{CASE}", "`equal_nan` is 'no'; it must be true", ""),
        (f"{REFERENCE}{CASE}hidden = 0\n", "`hidden` is 0; it must be true or false", ""),
        (f"may_write = ['xs']\n{REFERENCE}{CASE}", "`may_write` has `xs`, which is no in", "`x`"),
        (f"{REFERENCE}{CASE}[outputs]\nrtol = -1\n", "rtol is -1; it must be a number of at", ""),
        (f"{REFERENCE}{CASE}[outputs.y]\nmin_pass_rate = 7\n", "a number from 0 to 1", ""),
        (
            f"{REFERENCE}{CASE}[outputs]\nmode = 'ulp'\nrtol = 1e-3\n",
            "[outputs] rtol does not apply to mode = 'ulp'",
            "that uses max_ulp, min_pass_rate",
        ),
        (
            f"{REFERENCE}{CASE}[outputs]\nmode = 'l2'\n[outputs.y]\nmax_ulp = 1\n",
            "[outputs.y] max_ulp does not apply to mode = 'l2'",
            "that uses max_l2",
        ),
        (f"{REFERENCE}{CASE}consts = {{ n = 2024-01-01 }}\n", "datetime.date", "write numbers"),
        (f"{REFERENCE}{CASE}consts = {{ n = -{2**64 - 1} }}\n", "case case0", "write numbers"),
        (f"targt = 'trn2'\n{REFERENCE}{CASE}", "a task has no `targt`", "did you mean `target`?"),
        (f"target = 'trn9'\n{REFERENCE}{CASE}", "`target` is 'trn9'", "`trn1`"),
        (f"optimise = 3\n{REFERENCE}{CASE}", "`optimise` is 3", "use one of 0, 1, 2"),
        (f"families = ['larg']\n{REFERENCE}{CASE}", "`families` is 'larg'", "`large`"),
        (f"{REFERENCE}{CASE}seeds = [-1]\n", "`seeds` must be a list", ""),
        (f"{REFERENCE}{CASE}values = {{ x = 'rand' }}\n", "x = 'rand' is no generator", "randn"),
        (f"{REFERENCE}{CASE}values = {{ y = 'ones' }}\n", "values of `y`, which is no input", ""),
        (f"{REFERENCE}[limits]\nseconds = 0\n{CASE}", "`seconds` is 0", ""),
        (f"{REFERENCE}[limits]\nmemory = 'much'\n{CASE}", "`memory` is 'much'", "4GiB"),
        (f"{REFERENCE}[outputs]\nrtoll = 1\n{CASE}", "[outputs] has no `rtoll`", "`rtol`"),
        (
            f"{REFERENCE}[outputs.y]\nrtoll = 1\n{CASE}",
            "[outputs.y] has no `rtoll`",
            "`rtol`",
        ),
        (
            f"{REFERENCE}[outputs.y]\ndtype = 'bf61'\n{CASE}",
            "[outputs.y] dtype is 'bf61'",
            "did you mean `bfloat16`?",
        ),
        (f"{REFERENCE}[outputs]\ndtype = ['f32']\n{CASE}", "[outputs] dtype is ['f32']", ""),
        (f"{REFERENCE}[[case]]\ninputs = {{ x = 'f99[1]' }}\n", "case case0: x", ""),
        (f"{REFERENCE.replace('.py', 'x' * 300 + '.py')}{CASE}", "there is no file", "seen from"),
        ("name = [", "is not TOML", ""),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str, help: str) -> None:
    with pytest.raises(UsageFailed) as raised:
        task(tmp_path, text)
    (found,) = raised.value.diagnostics
    assert message in found.message and help in (found.help or "")
    assert "task.toml" in found.message


@pytest.mark.parametrize(
    "body",
    [
        *("return None", "return 'abc'", "return {'y': object()}", "return (n for n in x)"),
        *("return {}", "return x * 1j", "return {'y': [[1], [1, 2]]}", "raise SystemExit"),
        *("return {'x': 'abc'}", "return g(x)"),
    ],
)
@pytest.mark.parametrize("maker", [False, True])
def test_a_wrong_reference_is_the_authors_fault(tmp_path: Path, body: str, maker: bool) -> None:
    kind = f"{REFERENCE}inputs = 'm'\n" if maker else REFERENCE
    named = "def m(seed, x=None)" if maker else "def f(x)"
    text = f"def f(x):\n    return x\n{named}:\n    {body}\n"
    found = task_of((kind + CASE).encode(), {"r.py": text.encode()}, tmp_path)
    with pytest.raises(UsageFailed, match=r"\[reference\]"):
        reference = Judge(found).reference
        reference.expected(found.cases[0], 0, None)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("function = 'r.py:f'", "raise SystemExit(0)"),
        ("function = 'r.py:f'", "import functools\nf = functools.partial(max)"),
        ("npz = 'r.py'", "no archive"),
    ],
)
def test_a_wrong_file_of_the_reference_is_the_authors_fault(
    tmp_path: Path, kind: str, text: str
) -> None:
    found = task_of(f"[reference]\n{kind}\n{CASE}".encode(), {"r.py": text.encode()}, tmp_path)
    with pytest.raises(UsageFailed, match=r"\[reference\]"):
        Judge(found, families=False).reference.expected(found.cases[0], 0, None)


@pytest.mark.parametrize("rule", ["dtype = 'f32'", "rtol = 1", "mode = 'skip'"])
def test_a_rule_for_an_output_that_does_not_exist(tmp_path: Path, rule: str) -> None:
    for name in ("output_1", "out"):
        judge = Judge(task(tmp_path, f"{REFERENCE}[outputs.{name}]\n{rule}\n{CASE}"))
        with pytest.raises(UsageFailed) as raised:
            judge.evaluate(Candidate.of_text(GOOD))
        (found,) = raised.value.diagnostics
        assert found.message == f"[outputs.{name}]: the reference returns no `{name}`"
        assert "output_0" in (found.help or "")


def test_what_a_reference_prints_is_no_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = b"print('read')\ndef f(x):\n    print('called')\n    return x\n"
    found = task_of((REFERENCE + CASE).encode(), {"r.py": text}, tmp_path)
    Judge(found).reference.expected(found.cases[0], 0, None)
    assert tuple(capfd.readouterr()) == ("", "read\ncalled\n")


def test_a_kernel_in_the_place_of_the_task(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import nki\n")
    with pytest.raises(UsageFailed) as raised:
        read_task(tmp_path / "k.py")
    assert raised.value.diagnostics[0].help == "`evaluate` takes the task first, `tune` the kernel"


def test_a_hidden_seed_depends_on_secret_task_and_case(tmp_path: Path) -> None:
    one = task(tmp_path, f"{REFERENCE}{CASE}")
    other = task(tmp_path, f"name = 'b'\n{REFERENCE}{CASE}")
    seeds = {t.hidden_seed(s, t.cases[0]) for t in (one, other) for s in (b"a", b"b")}
    assert len(seeds) == 4
    assert one.hidden_seed(b"a", one.cases[0]) == one.hidden_seed(b"a", one.cases[0])


def test_a_secret_chooses_the_sizes_of_a_hidden_case(tmp_path: Path) -> None:
    found = task(tmp_path, REFERENCE + CASE + SIZED)
    assert [case.name for case in found.cases_for(b"")] == ["case0"]
    drawn = {str(found.cases_for(bytes([n]))[1].inputs["x"]) for n in range(64)}
    assert drawn == {f"float32[128,{n}]" for n in (3, 4, 5)}
    judges = [Judge(found, secret="mine"), Judge(task_of(found.toml, found.files), secret="mine")]
    assert judges[0].cases == judges[1].cases and len(judges[0].cases) == 2
    judges[0].task.must_be_as_read()
    with pytest.raises(UsageFailed, match="only cases whose sizes a secret chooses"):
        Judge(task(tmp_path, REFERENCE + SIZED))


def test_each_name_has_a_choice_of_its_own(tmp_path: Path) -> None:
    sized = SIZED.replace("128,n", "128,n,m").replace("{ n", "{ m = [3, 4, 5], n")
    found = task(tmp_path, REFERENCE + sized)
    drawn = {found.cases_for(bytes([n]))[0].inputs["x"].shape[1:] for n in range(128)}
    assert drawn == {(n, m) for n in (3, 4, 5) for m in (3, 4, 5)}


def test_a_seed_is_an_hmac_under_the_secret(tmp_path: Path) -> None:
    """The value is of `printf '%s case0' 000… | openssl dgst -sha256 -hmac 'sixteen of bytes'`."""
    found = replace(task(tmp_path, REFERENCE + CASE), sha256="0" * 64)
    assert found.hidden_seed(b"sixteen of bytes", found.cases[0]) == 0x1ABC26F8 & MAX_SEED


def test_a_task_stands_alone(tmp_path: Path) -> None:
    """Its contents make the same task where nothing of it is on disk."""
    here = task(tmp_path, REFERENCE + CASE)
    there = task_of(here.toml, here.files, tmp_path / "nowhere")
    assert there.sha256 == here.sha256 and there.files == {"r.py": b"def f(x): return x"}
    case = there.cases[0]
    (expected,) = Judge(there).reference.expected(case, 0, None).values()
    assert expected.shape == (128, 4)
    (tmp_path / "r.py").write_text("def f(x): return 2 * x")
    assert read_task(tmp_path / "task.toml").sha256 != here.sha256
    with pytest.raises(
        UsageFailed, match=r"the task: \[reference\]: `r.py` is not among its files"
    ):
        task_of(here.toml, {})
    (tmp_path / "r.py").unlink()
    with pytest.raises(UsageFailed, match=r"there is no file `r.py`"):
        read_task(tmp_path / "task.toml")
