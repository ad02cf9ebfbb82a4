"""Test where imports lead: files on disk, named by their path from the kernel's folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nkic.base.diagnostics import CompileFailed, UsageFailed, make
from nkic.base.source import Span
from nkic.compiler.loader import Loader

Make = Callable[..., Path]


@pytest.fixture
def files(tmp_path: Path) -> Make:
    """Create files whose text is their own path, and return the folder."""

    def make_files(*paths: str) -> Path:
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(f"'{path}'\n", encoding="utf-8")
        return tmp_path

    return make_files


def found(loader: Loader, kernel: Path, request: str) -> tuple[str, str] | None:
    """Return the path inside nkic and the text of the file that an import in the kernel's file
    finds.
    """
    source = loader(request, loader.main(str(kernel)))
    return (source.path, source.text.strip().strip("'")) if source else None


@pytest.mark.parametrize(
    ("request_", "path", "text"),
    [
        ("helper", "helper.py", "pkg/helper.py"),
        (".helper", "helper.py", "pkg/helper.py"),
        (".inner.deep", "inner/deep.py", "pkg/inner/deep.py"),
        ("inner", "inner/__init__.py", "pkg/inner/__init__.py"),
        (".", "__init__.py", "pkg/__init__.py"),
        ("pkg.helper", "helper.py", "pkg/helper.py"),
        ("twice", "twice/__init__.py", "pkg/twice/__init__.py"),
    ],
)
def test_imports_of_a_package(files: Make, request_: str, path: str, text: str) -> None:
    folder = files(
        *("pkg/__init__.py", "pkg/k.py", "pkg/helper.py", "pkg/inner/__init__.py"),
        *("pkg/inner/deep.py", "top.py", "pkg/twice.py", "pkg/twice/__init__.py"),
    )
    kernel = folder / "pkg" / "k.py"
    assert found(Loader.beside(str(kernel)), kernel, request_) == (path, text)


@pytest.mark.parametrize("request_", ["top", "..top", "beside.far", "..elsewhere"])
def test_beyond_the_package_only_what_is_named(files: Make, request_: str) -> None:
    folder = files("pkg/__init__.py", "pkg/k.py", "top.py", "elsewhere/far.py")
    (folder / "pkg/beside").symlink_to(folder / "elsewhere")
    kernel = folder / "pkg" / "k.py"
    assert found(Loader.beside(str(kernel)), kernel, request_) is None
    named = Loader.beside(str(kernel), [str(folder)])
    assert named(request_, named.main(str(kernel))) is not None


@pytest.mark.parametrize("request_", ["torch", ".gone", "..", "k.helper", "data", "...."])
def test_what_is_not_there(files: Make, request_: str) -> None:
    folder = files("pkg/k.py", "pkg/data/notes.txt")
    kernel = folder / "pkg" / "k.py"
    assert found(Loader.beside(str(kernel)), kernel, request_) is None


def test_a_folder_of_modules_is_a_package_without_a_file(files: Make) -> None:
    kernel = files("k.py", "lib/a.py") / "k.py"
    assert found(Loader.beside(str(kernel)), kernel, "lib") == ("lib/__init__.py", "")
    assert found(Loader.beside(str(kernel)), kernel, "lib.a") == ("lib/a.py", "lib/a.py")


def test_one_file_is_one_source_however_it_is_reached(files: Make) -> None:
    folder = files("pkg/__init__.py", "pkg/k.py", "pkg/a.py")
    loader = Loader.beside(str(folder / "pkg/k.py"), [str(folder)])
    kernel = loader.main(str(folder / "pkg/k.py"))
    sources = {id(loader(name, kernel)) for name in ("a", ".a", "pkg.a")}
    assert len(sources) == 1
    assert loader("k", kernel) is kernel


def test_folders_to_include_come_last_and_bear_their_name(files: Make) -> None:
    folder = files("p/k.py", "p/a.py", "x/src/a.py", "x/src/b.py", "y/src/b.py", "y/src/c.py")
    includes = [str(folder / "x/src"), str(folder / "y/src")]
    kernel = folder / "p/k.py"
    loader = Loader.beside(str(kernel), includes)
    assert found(loader, kernel, "a") == ("a.py", "p/a.py")
    assert found(loader, kernel, "b") == ("src:/b.py", "x/src/b.py")
    assert found(loader, kernel, "c") == ("+src:/c.py", "y/src/c.py")


def test_modules_given_by_name(files: Make) -> None:
    folder = files("k.py", "near.py", "far/one.py", "far/lib/__init__.py", "far/lib/part.py")
    modules = {"near": str(folder / "far/one.py"), "u.lib": str(folder / "far/lib")}
    kernel = folder / "k.py"
    loader = Loader.beside(str(kernel), (), modules)
    assert found(loader, kernel, "near") == ("near:/one.py", "far/one.py")
    assert found(loader, kernel, "u.lib") == ("u.lib:/lib/__init__.py", "far/lib/__init__.py")
    assert found(loader, kernel, "u.lib.part") == ("u.lib:/lib/part.py", "far/lib/part.py")
    assert found(loader, kernel, "u") is None


def test_neighbours_of_an_included_file_are_found_from_there(files: Make) -> None:
    folder = files("k.py", "lib/pkg/__init__.py", "lib/pkg/a.py", "lib/pkg/b.py", "lib/c.py")
    loader = Loader.beside(str(folder / "k.py"), [str(folder / "lib")])
    middle = loader("pkg.a", loader.main(str(folder / "k.py")))
    assert middle is not None
    for request, path in ((".b", "lib:/pkg/b.py"), ("pkg.b", "lib:/pkg/b.py"), ("c", "lib:/c.py")):
        source = loader(request, middle)
        assert source is not None
        assert source.path == path


@pytest.mark.parametrize("more", [{"includes": ["gone"]}, {"modules": {"m": "gone.py"}}])
def test_what_is_named_must_exist(more: dict[str, Any]) -> None:
    with pytest.raises(UsageFailed, match=r"there is no (folder )?`gone"):
        Loader.beside("k.py", **more)


def test_the_paths_to_print_lead_from_here(files: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files("a/k.py", "a/h.py", "up.py"))
    loader = Loader.beside("a/k.py", ["."])
    kernel = loader.main("a/k.py")
    for request in (".h", "..up"):
        assert loader(request, kernel) is not None
    assert loader.files == ["a/k.py", "a/h.py", "up.py"]
    [moved] = loader.relocated([make("bad-value", "x", Span("../up.py", 1, 1, 1, 2))])
    assert moved.primary is not None
    assert moved.primary.span.path == "up.py"
    source = loader.source("a/h.py")
    assert source is not None
    assert source.path == "h.py"
    assert loader.source("k.py") is None


def test_content_may_come_from_elsewhere(tmp_path: Path) -> None:
    loader = Loader.beside(str(tmp_path / "k.py"))
    assert loader.main(str(tmp_path / "k.py"), b"x = 1\n").text == "x = 1\n"
    assert loader.files == []


def test_bytes_that_are_no_text(files: Make) -> None:
    folder = files("k.py")
    (folder / "k.py").write_bytes(b"# caf\xe9\n")
    with pytest.raises(CompileFailed) as caught:
        Loader.beside(str(folder / "k.py")).main(str(folder / "k.py"))
    [said] = caught.value.diagnostics
    assert said.code.slug == "not-utf8"
    assert said.primary is not None
    assert (said.primary.span.path, said.primary.span.line) == ("k.py", 1)
