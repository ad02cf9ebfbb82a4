"""-W, -A, -D, -Werror and `# nkic: ignore[…]`, tested through the commands."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nkic.cli.common import run
from nkic.cli.nki_run import command as nki_run
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import KERNEL, Run

__all__ = ["folder", "nkic"]
# A second output that is never written: NKI0253 at its declaration.
EMPTY = "    more = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)"
WARNED = KERNEL.replace("    return out", f"{EMPTY}\n    return out, more")


@pytest.fixture
def warned(folder: Path) -> Path:
    """Return a folder whose kernel causes one warning, an error by default."""
    (folder / "k.py").write_text(WARNED, encoding="utf-8")
    return folder


def said(text: str) -> list[str]:
    return re.findall(r"(?:error|warning|remark)\[NKI\d{4}\]", text)


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ((), 1, ["error[NKI0253]"]),
        (("-W0253",), 0, ["warning[NKI0253]"]),
        (("-A", "output-not-written"), 0, []),
        (("-A", "02"), 0, []),
        (("-ANKI0253", "-Werror"), 0, []),
        (("-Werror",), 1, ["error[NKI0253]"]),
        (("-Werror=NKI0253",), 1, ["error[NKI0253]"]),
        (("-Werror=05",), 1, ["error[NKI0253]"]),
        (("-W", "02", "-Werror=05"), 0, ["warning[NKI0253]"]),
        (("-D", "0253"), 1, ["error[NKI0253]"]),
        (("-W0253", "-Werror"), 0, ["warning[NKI0253]"]),
        (("-A", "ouput-not-written"), 2, ["error[NKI0008]"]),
        (("-A", "0253", "-D", "0253"), 2, ["error[NKI0009]"]),
    ],
)
def test_wishes(
    nkic: Run, warned: Path, words: tuple[str, ...], code: int, expected: list[str]
) -> None:
    done = nkic("k.py", *words)
    assert (done.code, said(done.err)) == (code, expected)
    assert (warned / "k.neff").exists() == (code == 0)


def test_warnings_count_beside_errors_too(nkic: Run, warned: Path) -> None:
    text = WARNED.replace("dst=out, src=tile", "dst=out, src=tile[:, 0:32]")
    (warned / "k.py").write_text(text, encoding="utf-8")
    assert "warning[NKI0253]" in said(nkic("k.py", "-W0253").err)
    assert [one for one in said(nkic("k.py", "-A02").err) if "warning" in one] == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (EMPTY, f"{EMPTY}  # nkic: ignore[NKI0253] for later", []),
        (EMPTY, f"    # nkic: ignore[output-not-written]\n{EMPTY}", []),
        (EMPTY, f"{EMPTY}  # nkic: ignore[NKI0254]", ["warning[NKI0253]", "warning[NKI0010]"]),
        ("src=a)", "src=a)  # nkic: ignore[NKI0253]", ["warning[NKI0253]", "warning[NKI0010]"]),
    ],
)
def test_comments(nkic: Run, folder: Path, old: str, new: str, expected: list[str]) -> None:
    (folder / "k.py").write_text(WARNED.replace(old, new), encoding="utf-8")
    done = nkic("k.py", "-W0253")
    assert (done.code, said(done.err)) == (0, expected)


def test_an_ignore_in_a_kernel_that_is_not_compiled_is_not_unused(nkic: Run, folder: Path) -> None:
    other = KERNEL.split("@nki.jit\n")[1].replace("double", "other")
    text = KERNEL + "\n\n@nki.jit\n" + other.replace("src=a)", "src=a)  # nkic: ignore[0253]")
    (folder / "k.py").write_text(text, encoding="utf-8")
    assert nkic("k.py", "-k", "double").err == ""
    assert said(nkic("k.py", "-k", "other").err) == ["warning[NKI0010]"]


def test_ignores_work_from_another_folder_and_in_json(nkic: Run, warned: Path) -> None:
    text = WARNED.replace(EMPTY, f"{EMPTY}  # nkic: ignore[NKI0255]")
    (warned / "deep").mkdir()
    (warned / "deep" / "k.py").write_text(text, encoding="utf-8")
    done = nkic("deep/k.py", "--message-format=json")
    records = [json.loads(line) for line in done.err.splitlines()]
    found = [r for r in records if r["type"] == "diagnostic"]
    assert [r["code"] for r in found] == ["NKI0253", "NKI0010"]
    assert [r["spans"][0]["file"] for r in found] == ["deep/k.py"] * 2


def test_the_runner_has_the_same_words(
    nkic: Run, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert nkic("k.py", "-o", "a.neff").code == 0
    np.savez(folder / "in.npz", a=np.zeros((128, 64)))  # float64: converted, with a remark

    def ran(*words: str) -> tuple[int, list[str]]:
        code = run(nki_run, "nki-run", ["a.neff", "--inputs", "in.npz", "--cast", *words])
        return code, said(capfd.readouterr().err)

    assert ran() == (0, ["remark[NKI1005]"])
    assert ran("-A", "input-cast") == (0, [])
    assert ran("-Werror") == (0, ["remark[NKI1005]"])
    assert ran("-D", "10") == (1, ["error[NKI1005]"])
