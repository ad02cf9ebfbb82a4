"""Every function that a kernel can name, called with hostile values: nothing but diagnostics.

What compiles is run, too. The work of a call, counted in calls of functions, is bounded.
"""

import re
from pathlib import Path

import pytest

from nkic.base import profiles
from nkic.base.profiles import Profile
from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nkic import command as nkic
from nkic.interpret import objects
from tests.security import calls as hostile_calls
from tests.security.test_hostile_kernels import counted

VERSIONS = (Profile.NKI_0_7, Profile.BETA1)
SHARE = 2 * 9  # one of so many functions is called in the short test, each with another seed
CALLS = 10_000_000  # of Python functions, in one compilation and run
STEPS = 2_000_000
ACCEPTED, FAILED = {0, 1}, {0, 1, 5, 6}
# Classes that implement kernels' values: a message calls a value what its author calls it.
_OURS = {*vars(objects), "Provided", "DType"} - {"Method"}
OURS = re.compile(rf"\ban? (?:{'|'.join(name for name in _OURS if name[0].isupper())})\b")


def stands(
    folder: Path, capfd: pytest.CaptureFixture[str], text: str, profile: Profile, limit: int
) -> None:
    """Compile a kernel, and run it if it is legal; check how both end."""
    (folder / "k.py").write_text(text, encoding="utf-8")
    words = ["k.py", "--arg", "a=float32[128,16]", "-o", "k.neff", "--limit", f"steps={STEPS}"]
    with counted() as calls:
        code = run(nkic, "nkic", [*words, "--nki", profiles.LABELS[profile]])
        ran = 0
        if code == 0:
            limits = ["--max-cycles", "1000000", "--max-iterations", "1000", "--no-verdict"]
            ran = run(nki_run, "nki-run", ["k.neff", "--fill", "zeros", *limits])
    said = capfd.readouterr()
    assert code in ACCEPTED, f"{text}\n{said.err}"
    assert ran in FAILED, f"{text}\n{said.err}"
    assert "Traceback" not in said.err
    assert not OURS.search(said.err), f"{text}\n{said.err}"
    assert calls[0] < limit, text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NKIC_CRASH_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("profile", VERSIONS, ids=lambda one: one.name)
def test_calls_of_functions_end_in_diagnostics(
    profile: Profile, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    functions = hostile_calls.targets(profile)
    assert len(functions) > 900
    for number, function in enumerate(functions):
        if number % SHARE == 0:
            stands(folder, capfd, hostile_calls.kernel(function, number, profile), profile, CALLS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("profile", VERSIONS, ids=lambda one: one.name)
def test_many_calls_of_functions_end_in_diagnostics(
    profile: Profile, seed: int, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for function in hostile_calls.targets(profile):
        stands(folder, capfd, hostile_calls.kernel(function, seed, profile), profile, CALLS)


def test_the_calls_reach_every_stage(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    instructions = [t for t in hostile_calls.targets(Profile.NKI_0_7) if t.legal]
    assert len(instructions) > 50
    codes = set()
    for number, target in enumerate(instructions[::3]):
        (folder / "k.py").write_text(hostile_calls.kernel(target, number), encoding="utf-8")
        codes.add(run(nkic, "nkic", ["k.py", "--arg", "a=float32[128,16]", "-o", "k.neff"]))
    capfd.readouterr()
    assert codes == {0, 1}


def test_classes_of_the_interpreter_say_what_they_are() -> None:
    kinds = ("StaticMethod", "ClassMethod", "Property", "Generator", "ErrorInstance")
    assert [name for name in kinds if not hasattr(getattr(objects, name), "_kind_")] == []
