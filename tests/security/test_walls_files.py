"""A kernel's text can make nkic read only files in the folders that the command line names."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from nkic.base import files
from nkic.base.diagnostics import UsageFailed
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import Run

__all__ = ["folder", "nkic"]
SECRET = "SECRET = 1234\n"
IMPORTING = """\
import nki
import nki.isa as nisa
import nki.language as nl
{line}


@nki.jit
def kernel():
    out = nl.ndarray((128, {use}), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(out.shape, dtype=out.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
CONSTANT = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    table = nl.shared_constant({path!r})
    out = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=table)
    return out
"""


@pytest.fixture
def outside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with secrets next to the kernel's folder `in`, and change to `in`."""
    (folder / "in").mkdir()
    (folder / "out" / "pkg").mkdir(parents=True)
    (folder / "out" / "secret.py").write_text(SECRET)
    (folder / "out" / "pkg" / "secret.py").write_text(SECRET)
    np.save(folder / "out" / "secret.npy", np.ones((4, 5), np.float32))
    monkeypatch.chdir(folder / "in")
    return folder / "out"


# ---- imports ---------------------------------------------------------------------------------

DOORS = {
    "a link to a file": "from linked import SECRET",
    "a link to a folder": "from folder.secret import SECRET",
    "a package of links": "from folder.pkg.secret import SECRET",
    "dots": "from ..out.secret import SECRET",
    "many dots": "from ......tmp import SECRET",
    "a package that is a link": "from .package import SECRET",
    "a member that is a module": "from folder import secret; SECRET = secret.SECRET",
    "a circle of links": "from circle import SECRET",
    "a pipe": "from pipe import SECRET",
    "a device": "from zero import SECRET",
    "a folder": "from empty import SECRET",
}


@pytest.fixture
def doors(outside: Path) -> None:
    Path("linked.py").symlink_to(outside / "secret.py")
    Path("folder").symlink_to(outside)
    Path("package").mkdir()
    (Path("package") / "__init__.py").symlink_to(outside / "secret.py")
    Path("circle.py").symlink_to("circle.py")
    os.mkfifo("pipe.py")
    Path("zero.py").symlink_to("/dev/zero")
    Path("empty.py").mkdir()


@pytest.mark.parametrize("door", DOORS)
def test_an_import_leads_nowhere_else(nkic: Run, doors: None, door: str) -> None:
    Path("k.py").write_text(IMPORTING.format(line=DOORS[door], use="SECRET // 100"))
    done = nkic("k.py", "--check")
    assert done.code == 1, done.err
    assert re.findall(r"error\[(NKI\d+)\]", done.err)[0] in ("NKI0203", "NKI0208")
    assert "1234" not in done.err


@pytest.mark.parametrize("door", ["a link to a file", "a link to a folder", "dots"])
def test_include_opens_them(nkic: Run, doors: None, door: str) -> None:
    """The same kernels are valid: only the choice of folders kept the files inaccessible."""
    Path("k.py").write_text(IMPORTING.format(line=DOORS[door], use="SECRET // 100"))
    assert nkic("k.py", "--check", "--include", "../out").code == 0
    assert nkic("k.py", "--check", "--include", "../out/pkg").code == 1


def test_a_link_inside_the_folder_is_followed(nkic: Run, outside: Path) -> None:
    Path("real.py").write_text(SECRET)
    Path("linked.py").symlink_to("real.py")
    Path("k.py").write_text(IMPORTING.format(line="from linked import SECRET", use="SECRET // 100"))
    assert nkic("k.py", "--check").code == 0


def test_a_module_that_is_named_brings_its_package(nkic: Run, outside: Path) -> None:
    (outside / "lib.py").write_text("from .secret import SECRET\n")
    Path("k.py").write_text(IMPORTING.format(line="from lib import SECRET", use="SECRET // 100"))
    assert nkic("k.py", "--check").code == 1
    assert nkic("k.py", "--check", "--module", "lib=../out/lib.py").code == 0


def test_a_package_is_one_folder(nkic: Run, folder: Path) -> None:
    for path in ("pkg", "pkg/inner"):
        (folder / path).mkdir()
        (folder / path / "__init__.py").touch()
    (folder / "pkg/above.py").write_text(SECRET)
    text = IMPORTING.format(line="from ..above import SECRET", use="SECRET // 100")
    (folder / "pkg/inner/k.py").write_text(text)
    assert nkic("pkg/inner/k.py", "--check").code == 0


# ---- data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../out/secret.npy",
        "link.npy",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/environ",
        "/etc/passwd",
        "./../out/../out/secret.npy",
        "a\0b",
    ],
)
def test_data_outside_is_not_read(nkic: Run, outside: Path, path: str) -> None:
    Path("link.npy").symlink_to(outside / "secret.npy")
    Path("k.py").write_text(CONSTANT.format(path=path))
    done = nkic("k.py", "--check")
    assert (done.code, re.findall(r"error\[(NKI\d+)\]", done.err)) == (1, ["NKI0281"]), done.err
    assert "k.py:8:" in done.err
    assert "is neither in the kernel's folder" in done.err
    assert "root:" not in done.err


def test_data_behind_a_circle_of_links_is_not_read(nkic: Run) -> None:
    Path("circle.npy").symlink_to("circle.npy")
    Path("k.py").write_text(CONSTANT.format(path="circle.npy"))
    done = nkic("k.py", "--check")
    assert (done.code, re.findall(r"error\[(NKI\d+)\]", done.err)) == (1, ["NKI0281"]), done.err
    assert "too many levels of symbolic links" in done.err


def test_data_by_an_absolute_path_outside(nkic: Run, outside: Path) -> None:
    Path("k.py").write_text(CONSTANT.format(path=str(outside / "secret.npy")))
    assert nkic("k.py", "--check").code == 1
    assert nkic("k.py", "--check", "--include", str(outside)).code == 0


@pytest.mark.parametrize(
    ("path", "said"),
    [("-", "no such file"), ("pipe", "not a regular file"), (".", "is a directory")],
)
def test_only_regular_files_are_data(nkic: Run, outside: Path, path: str, said: str) -> None:
    os.mkfifo("pipe")
    Path("k.py").write_text(CONSTANT.format(path=path))
    done = nkic("k.py", "--check")
    assert (done.code, re.findall(r"error\[(NKI\d+)\]", done.err)) == (1, ["NKI0281"]), done.err
    assert said in done.err


def test_data_inside_is_read(nkic: Run, outside: Path) -> None:
    np.save("-", np.ones((4, 5), np.float32))
    Path("-.npy").rename("-")
    Path("k.py").write_text(CONSTANT.format(path="-"))
    assert nkic("k.py", "--check").code == 0


# ---- printed programs ------------------------------------------------------------------------


def test_a_printed_program_shows_nothing_of_other_files(nkic: Run, outside: Path) -> None:
    Path("k.py").write_text(IMPORTING.format(line="", use="4"))
    assert nkic("k.py", "--emit", "ir=p.ir").code == 0
    text = Path("p.ir").read_text()
    broken = text.replace("[128, 4]", "[129, 4]").replace("(128, 4)", "(129, 4)")
    assert broken != text
    for name in ("../out/secret.py", "linked.py", "pipe.py"):
        Path("p.ir").write_text(broken.replace("k.py", name))
        if name == "linked.py":
            Path(name).symlink_to(outside / "secret.py")
        if name == "pipe.py":
            os.mkfifo(name)
        done = nkic("p.ir", "--check")
        assert done.code == 1, done.err
        assert "1234" not in done.err


# ---- the reader ------------------------------------------------------------------------------


def test_without_a_fence_any_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"12345")
    assert files.read(str(tmp_path / "data"), 5) == b"12345"
    with pytest.raises(UsageFailed, match="larger than the limit of 4 bytes"):
        files.read(str(tmp_path / "data"), 4)
    (tmp_path / "inner").mkdir()
    with (
        files.confined([tmp_path / "inner"]),
        pytest.raises(UsageFailed, match="neither in the kernel's folder"),
    ):
        files.read(str(tmp_path / "data"), 5)
    assert files.read(str(tmp_path / "data"), 5) == b"12345"
