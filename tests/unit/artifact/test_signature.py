"""Signed files: whatever is changed is noticed, also by one who computes all hashes again."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, PublicFormat

from nkic.artifact import container
from nkic.artifact.encode import write
from nkic.artifact.read import info, load, open_file, read
from nkic.artifact.signature import SECTION, private_key, require, sign
from nkic.base.diagnostics import UsageFailed
from tests.harness.executables import ROWS, sample
from tests.harness.tamper import contents, rebuilt, refused

DATA = write(sample(), embed_source=True)
NONE = serialization.NoEncryption()


class Pair(NamedTuple):
    private: str
    public: str


@pytest.fixture
def keys(tmp_path: Path) -> Callable[..., Pair]:
    def make(seed: int = 1, ssh: bool = False) -> Pair:
        key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        form = PrivateFormat.OpenSSH if ssh else PrivateFormat.PKCS8
        pair = Pair(str(tmp_path / f"{seed}{ssh}.key"), str(tmp_path / f"{seed}{ssh}.pub"))
        Path(pair.private).write_bytes(key.private_bytes(Encoding.PEM, form, NONE))
        of_public = (
            (Encoding.OpenSSH, PublicFormat.OpenSSH)
            if ssh
            else (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        Path(pair.public).write_bytes(key.public_key().public_bytes(*of_public))
        return pair

    return make


@pytest.mark.parametrize("ssh", [False, True])
def test_a_signed_file_is_the_same_program(keys: Callable[..., Pair], ssh: bool) -> None:
    pair = keys(ssh=ssh)
    signed = sign(DATA, private_key(pair.private))
    require(signed, pair.public)
    assert read(signed, rows=ROWS) == read(DATA, rows=ROWS)
    assert rebuilt(signed, {SECTION: None}) == DATA
    assert sign(signed, private_key(pair.private)) == signed  # once, and always the same


def test_any_other_content_is_refused(keys: Callable[..., Pair]) -> None:
    """Each part in turn is changed, or dropped, with all hashes made right again."""
    pair = keys()
    signed = sign(DATA, private_key(pair.private))
    parts = contents(DATA)
    forged = [rebuilt(signed, {name: content + b"\0"}) for name, content in parts.items()]
    forged += [rebuilt(signed, {name: None}) for name in parts if name not in container.SEMANTIC]
    forged += [rebuilt(signed, {"extra": b"1"}), rebuilt(signed, {}, target="trn1")]
    forged += [rebuilt(signed, {}, producer="another"), rebuilt(signed, {}, opt=8)]
    said = {refused(partial(require, data, pair.public)) for data in forged}
    assert said == {("NKI0811", "the file is not the one that was signed (section `signature`)")}


def test_who_signed(keys: Callable[..., Pair]) -> None:
    mine, other = keys(1), keys(2)
    assert refused(lambda: require(DATA, mine.public)) == ("NKI0811", "the file has no signature")
    forged = sign(DATA, private_key(other.private))
    code, message = refused(lambda: require(forged, mine.public))
    assert (code, message[:40]) == ("NKI0811", "the file is signed with another key: " + "813")
    assert info(forged).as_json()["signer"] in message
    # The claim alone is not enough: the key of the one, and the signature of the other.
    own = contents(sign(DATA, private_key(mine.private)))[SECTION]
    mixed = rebuilt(forged, {SECTION: own[:32] + contents(forged)[SECTION][32:]})
    assert "not the one that was signed" in refused(lambda: require(mixed, mine.public))[1]
    short = rebuilt(forged, {SECTION: own[:-1]})
    assert refused(lambda: require(short, mine.public))[1] == "the file has no signature"


def test_a_newer_file_is_not_vouched_for(keys: Callable[..., Pair]) -> None:
    pair = keys()
    newer = rebuilt(sign(DATA, private_key(pair.private)), {}, fmt=(2, 9))
    assert info(newer).signer is not None
    assert "newer format" in refused(lambda: require(newer, pair.public))[1]


def test_the_door_of_files_checks(keys: Callable[..., Pair], tmp_path: Path) -> None:
    pair = keys()
    path = tmp_path / "k.neff"
    path.write_bytes(sign(DATA, private_key(pair.private)))
    assert load(open_file(str(path), signed_by=pair.public), rows=ROWS).name == "add"
    path.write_bytes(DATA)
    assert refused(lambda: open_file(str(path), signed_by=pair.public))[0] == "NKI0811"


def test_keys_that_cannot_be_used(keys: Callable[..., Pair], tmp_path: Path) -> None:
    pair = keys()
    path = tmp_path / "other.key"

    def refusal(content: bytes, private: bool = True) -> str:
        path.write_bytes(content)
        with pytest.raises(UsageFailed) as caught:
            private_key(str(path)) if private else require(DATA, str(path))
        (diagnostic,) = caught.value.diagnostics
        return diagnostic.message.removeprefix(f"{path}: ")

    curve = ec.generate_private_key(ec.SECP256R1())
    other = curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NONE)
    locked = ed25519.Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    assert refusal(other) == "this is not a private key of Ed25519"
    assert refusal(b"") == "this is not a private key of Ed25519"
    assert refusal(Path(pair.public).read_bytes()) == "this is not a private key of Ed25519"
    assert refusal(locked) == "the key is protected by a password"
    private = Path(pair.private).read_bytes()
    assert refusal(private, False) == "this is not a public key of Ed25519"
    assert refusal(b"ssh-rsa AAAA", False) == "this is not a public key of Ed25519"


def test_without_the_package_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cryptography", "cryptography.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    for use in (partial(require, b"", "key.pem"), partial(private_key, "key.pem")):
        with pytest.raises(UsageFailed) as failed:
            use()
        assert "pip install cryptography" in failed.value.diagnostics[0].help


def test_a_broken_package_is_told_from_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cryptography.py").write_text("raise ImportError('libssl is broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [n for n in sys.modules if n.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UsageFailed, match="cannot be imported: libssl is broken"):
        private_key("key.pem")
