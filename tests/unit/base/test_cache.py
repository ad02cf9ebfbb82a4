"""Test the folder of compiled kernels: valid entries, and entries that are ignored."""

import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from nkic.base import cache
from nkic.base.cache import Probes, Store, folder, unchanged
from nkic.base.diagnostics import Fix, Label, Level, UsageFailed, from_json, make, to_json
from nkic.base.source import Span

KEY, OTHER = sha256(b"asked").hexdigest(), sha256(b"asked otherwise").hexdigest()
FACTS, DATA = {"path": "k.neff"}, bytes(range(256)) * 8


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    """Return a store with an entry under KEY."""
    made = Store(tmp_path)
    made.write(KEY, FACTS, DATA)
    return made


def test_an_entry_is_read_as_it_was_written(kept: Store) -> None:
    found = kept.read(KEY)
    assert found is not None
    assert (found.facts, found.data) == ({"key": KEY, **FACTS}, DATA)
    assert kept.read(OTHER) is None
    assert stat.S_IMODE(kept.path(KEY).stat().st_mode) == 0o600
    assert [one.name for one in kept.folder.iterdir()] == [f"{KEY}.nkic"]


def flipped(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def rewritten(path: Path, line: bytes) -> None:
    """Rewrite an entry with a right hash and wrong facts."""
    rest = line + b"\n" + DATA
    path.write_bytes(sha256(rest).digest() + rest)


def linked(path: Path) -> None:
    other = path.with_name("elsewhere")
    path.rename(other)
    path.symlink_to(other)


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def made_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a bit of its hash": lambda path: flipped(path, 3),
    "a bit of its facts": lambda path: flipped(path, 40),
    "its last bit": lambda path: flipped(path, -1),
    "no end": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "no content": lambda path: path.write_bytes(b""),
    "more at its end": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "another key": lambda path: rewritten(path, json.dumps({"key": OTHER}).encode()),
    "no key": lambda path: rewritten(path, b"{}"),
    "facts that are not a mapping": lambda path: rewritten(path, b"[]"),
    "facts that are not JSON": lambda path: rewritten(path, b"{"),
    "facts without an end": lambda path: rewritten(path, b"[" * 100_000),
    "a link": linked,
    "a pipe": piped,
    "others may write it": lambda path: path.chmod(0o622),
    "it cannot be read": made_folder,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_what_is_damaged_counts_as_nothing(kept: Store, how: str) -> None:
    DAMAGE[how](kept.path(KEY))
    assert kept.read(KEY) is None


def test_every_flipped_byte_is_seen(kept: Store) -> None:
    whole = kept.path(KEY).read_bytes()
    for at in range(len(whole)):
        content = bytearray(whole)
        content[at] ^= 0x20
        kept.path(KEY).write_bytes(content)
        assert kept.read(KEY) is None, at


def test_an_entry_of_another_user(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert kept.read(KEY) is None


def written(place: str, number: int) -> bool:
    made = Store(Path(place))
    for iteration in range(40):
        made.write(KEY, {"turn": iteration}, bytes([number]) * 200_000)
        found = made.read(KEY)
        if found is None or len({*found.data}) != 1 or len(found.data) != 200_000:
            return False
    return True


def test_processes_that_write_at_once_see_whole_entries(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3) as pool:
        assert all(pool.map(written, [str(tmp_path)] * 3, range(3)))
    assert [one.name for one in tmp_path.iterdir()] == [f"{KEY}.nkic"]


def test_what_was_used_least_lately_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 4)
    made, keys = Store(tmp_path), [sha256(bytes([n])).hexdigest() for n in range(5)]
    for at, key in enumerate(keys[:4]):
        made.write(key, {}, DATA)
        os.utime(made.path(key), (at, at))
    assert made.read(keys[0]) is not None  # used now
    made.write(keys[4], {}, DATA)
    assert [made.read(key) is not None for key in keys] == [True, False, False, True, True]
    monkeypatch.setattr(cache, "MAX_FOLDER", 3 * len(DATA))
    made.write(keys[1], {}, DATA)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 3 * len(DATA)
    monkeypatch.setattr(cache, "MAX_ENTRY", 100)
    made.write(OTHER, {}, DATA)
    assert made.read(OTHER) is None


def test_a_folder_that_takes_nothing(tmp_path: Path) -> None:
    Store(tmp_path / "none").write(KEY, FACTS, DATA)
    assert [*tmp_path.iterdir()] == []


def test_where_the_folder_is(tmp_path: Path) -> None:
    own, named = tmp_path / "own", tmp_path / "named"
    given = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(own)}
    assert folder(given) == own / "nkic"
    assert stat.S_IMODE((own / "nkic").stat().st_mode) == 0o700
    assert folder({**given, "XDG_CACHE_HOME": "own"}) == tmp_path / ".cache/nkic"
    assert folder({**given, "NKIC_CACHE_DIR": str(named)}) == named
    assert folder({**given, "NKIC_CACHE_DIR": str(own), "NKIC_CACHE": "0"}) is None
    assert folder({**given, "NKIC_CACHE": "0"}, named) == named  # by the call itself
    assert folder({}) is None
    with pytest.raises(UsageFailed, match="NKIC_CACHE=no"):
        folder({**given, "NKIC_CACHE": "no"})


def test_a_folder_in_which_others_may_write(tmp_path: Path) -> None:
    (tmp_path / "nkic").mkdir(mode=0o777)
    (tmp_path / "nkic").chmod(0o777)
    assert folder({"XDG_CACHE_HOME": str(tmp_path)}) is None
    with pytest.raises(UsageFailed, match="can be written by others"):
        folder({"NKIC_CACHE_DIR": str(tmp_path / "nkic")})


def test_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert folder({"XDG_CACHE_HOME": str(tmp_path)}) is None
    with pytest.raises(UsageFailed, match="belongs to another user"):
        folder({"NKIC_CACHE_DIR": str(tmp_path)})


def test_diagnostics_survive_json() -> None:
    span = Span("k.py", 3, 5, 4, 1)
    found = make("unused-ignore", "m", span, label="l", labels=[Label(span, "x")], notes=["n"])
    fixed = make("bad-value", "text", help="h", fixes=[Fix(span, "r", "t", sure=True)])
    warned = make("deprecated", "w", level=Level.WARNING)
    assert from_json(json.loads(json.dumps(to_json([found, fixed, warned])))) == (
        *(found, fixed, warned),
    )
    wrong: list[Any]
    for wrong in ([{}], [3], [{**to_json([warned])[0], "count": "1"}], [{"code": "none"}]):
        with pytest.raises((ValueError, LookupError, TypeError)):
            from_json(wrong)


def test_the_file_system_is_asked_again(tmp_path: Path) -> None:
    probes, here, there = Probes(), tmp_path / "here.py", tmp_path / "there.py"
    here.write_text("one")
    assert (probes.is_file(here), probes.is_file(there)) == (True, False)
    assert (probes.is_folder(tmp_path), probes.is_folder(here)) == (True, False)
    probes.note(here, b"one")
    assert unchanged(probes.places, probes.contents) == {str(here): b"one"}
    there.touch()  # an import would now find it
    assert unchanged(probes.places, probes.contents) is None
    there.unlink()
    here.write_text("two")
    assert unchanged(probes.places, probes.contents) is None
    (tmp_path / "two.py").write_text("one")
    here.unlink()
    here.symlink_to("two.py")  # the same content at another place
    assert unchanged(probes.places, probes.contents) is None
