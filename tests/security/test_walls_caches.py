"""The cache of compiled kernels returns only entries made for the same request."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkic import api
from nkic.api import CompileError, calling
from tests.api import kernels as k

X = np.arange(128 * 4, dtype=np.float32).reshape(128, 4)
Edit = Callable[[dict[str, Any], bytes], bytes]


def called(folder: Path, factor: float) -> Any:
    """Return the result in a process that has compiled nothing yet."""
    calling.clear()
    return api.call(k.scaled, (X, factor), cache_dir=folder)


def edited(folder: Path, edit: Edit) -> None:
    """Edit the only entry, and correct its hash."""
    (path,) = folder.iterdir()
    head, _, data = path.read_bytes()[32:].partition(b"\n")
    rest = edit(json.loads(head), data)
    path.write_bytes(sha256(rest).digest() + rest)


def with_fact(name: str, value: Any) -> Edit:
    def edit(facts: dict[str, Any], data: bytes) -> bytes:
        assert name in facts
        return json.dumps({**facts, name: value}).encode() + b"\n" + data

    return edit


def test_an_entry_under_another_name_is_not_used(tmp_path: Path) -> None:
    called(tmp_path, 3.0)
    (three,) = tmp_path.iterdir()
    called(tmp_path, 4.0)
    (four,) = {*tmp_path.iterdir()} - {three}
    four.write_bytes(three.read_bytes())
    np.testing.assert_array_equal(called(tmp_path, 4.0).values, X * 4)


@pytest.mark.parametrize(
    "edit",
    [
        lambda facts, data: b"not JSON\n" + data,
        lambda facts, data: b"",
        lambda facts, data: b"[" * 100_000 + b"\n" + data,
        lambda facts, data: b"[]\n" + data,
        lambda facts, data: b"{}\n" + data,
        with_fact("key", "0" * 64),
        with_fact("files", ["a"]),
        with_fact("files", {"tests.api.kernels": 3}),
        with_fact("messages", 5),
        with_fact("returned", {"a": 1}),
        with_fact("returned", True),
        with_fact("reads", {"/dev/zero": "0"}),
        with_fact("reads", {"pipe": "0"}),
    ],
)
def test_a_damaged_entry_is_a_miss(
    tmp_path: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    folder = tmp_path / "cache"
    first = called(folder, 3.0).artifact
    edited(folder, edit)
    again = called(folder, 3.0)
    assert again.artifact == first
    np.testing.assert_array_equal(again.values, X * 3)


def test_a_sound_entry_is_a_hit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = called(tmp_path, 3.0).artifact
    edited(tmp_path, with_fact("messages", ["from the entry"]))
    assert called(tmp_path, 3.0).artifact.messages == ("from the entry",)
    assert first.messages == ()


def test_a_link_or_a_pipe_in_the_place_of_an_entry_is_a_miss(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    called(folder, 3.0)
    (path,) = folder.iterdir()
    edited(folder, with_fact("messages", ["elsewhere"]))
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert called(folder, 3.0).artifact.messages == ()
    path.unlink()
    os.mkfifo(path)
    assert called(folder, 3.0).artifact.messages == ()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_write_in_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CompileError, match="can be written by others") as caught:
        called(folder, 3.0)
    assert f"chmod go-w {folder}" in str(caught.value)
    assert [*folder.iterdir()] == []
    folder.chmod(0o755)
    called(folder, 3.0)
    assert len([*folder.iterdir()]) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(CompileError, match="belongs to another user"):
        called(folder, 3.0)


def test_a_new_folder_is_for_the_user_alone(tmp_path: Path) -> None:
    called(tmp_path / "new" / "cache", 3.0)
    assert (tmp_path / "new" / "cache").stat().st_mode & 0o777 == 0o700
