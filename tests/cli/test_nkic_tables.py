"""--print for programs, and errors for unknown settings."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nkic.base.diagnostics import codes
from nkic.base.files import SETTINGS, VARIABLES
from nkic.compiler.pipeline import STAGES
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.targets import TARGETS
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import KERNEL, Run, failure

__all__ = ["folder", "nkic"]


def printed(nkic: Run, what: str, *words: str) -> Any:
    ran = nkic("--print", what, "--json", *words)
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    name = what.partition("=")[0]
    assert (found["schema"], found["print"]) == (1, name)
    return found[name]


@pytest.mark.parametrize(
    ("what", "key", "names"),
    [
        ("targets", "name", TARGETS),
        ("dtypes", "name", DTYPES),
        ("passes", "stage", STAGES),
        ("codes", "slug", codes()),
        ("env", "variable", VARIABLES),
        ("ops", "name", ROWS),
    ],
)
def test_every_row_is_there(nkic: Run, what: str, key: str, names: dict[str, Any]) -> None:
    assert sorted(row[key] for row in printed(nkic, what)) == sorted(names)


def test_values_are_numbers(nkic: Run) -> None:
    (trn2,) = [row for row in printed(nkic, "targets") if row["name"] == "trn2"]
    assert (trn2["default"], trn2["cores"], trn2["psum_banks"]) == (True, 2, 8)
    assert trn2["also_called"] == ["gen3"]
    (bf16,) = [row for row in printed(nkic, "dtypes") if row["name"] == "bfloat16"]
    assert bf16["bytes"] == 2 and 3.38e38 < bf16["highest"] < 3.4e38
    assert [row["name"] for row in printed(nkic, "profiles") if row["default"]] == ["0.7"]


def version(nkic: Run, *words: str) -> tuple[str, str]:
    """Return the NKI version and its source from `--print config`."""
    rows = {row["setting"]: row for row in printed(nkic, "config", "k.py", *words)}
    return rows["nki"]["value"], rows["nki"]["from"]


def test_who_says_the_version_of_nki(nkic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert version(nkic) == ("0.7", "default")
    Path("pyproject.toml").write_text("[tool.nkic]\nnki = 0.4\n")
    assert version(nkic) == ("0.4", "nki under [tool.nkic] in pyproject.toml")
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "custom")
    assert version(nkic) == ("0.6", "NKI_COMPILER_FRONTEND")
    monkeypatch.setenv("NKIC_NKI", "0.5")
    assert version(nkic) == ("0.5", "NKIC_NKI")
    Path("k.py").write_text(KERNEL.replace("# /// nkic\n", '# /// nkic\n# nki = "0.3"\n'))
    assert version(nkic) == ("0.3", "inline block of k.py")
    assert version(nkic, "--nki", "0.7") == ("0.7", "command line")


def test_a_pyproject_that_cannot_be_used(nkic: Run) -> None:
    Path("pyproject.toml").write_text("[tool.nkic")
    ran = nkic("k.py", "--check")
    assert ran.code == 2 and "pyproject.toml cannot be read for [tool.nkic]" in ran.err
    Path("pyproject.toml").write_text("#" * 2**20 + "\n")
    assert "more than 1,048,576 bytes" in nkic("k.py", "--check").err


def test_the_other_tables(nkic: Run) -> None:
    found = printed(nkic, "completion=bash")
    assert found["shell"] == "bash" and "_NKIC_COMPLETE" in found["script"]
    ran = nkic("--print", "schema", "--json")
    assert ran.code == 0 and json.loads(ran.out)["$schema"].startswith("https://json-schema.org/")
    rows = {row["setting"]: row for row in printed(nkic, "config", "k.py", "--limit", "cpu=7")}
    assert "setting" not in rows
    assert rows["argument a"]["value"] == "float32[128,64]"
    assert rows["limit"] == {"setting": "limit", "value": "cpu=7", "from": "command line"}


def test_kernels_for_programs_and_in_any_version(nkic: Run) -> None:
    text = nkic("k.py", "--print", "kernels").out
    found = json.loads(nkic("k.py", "--print", "kernels", "--json").out)
    assert found["kernels"] == [{"name": "double", "signature": text.rstrip("\n")}]
    for version in ("beta2", "0.3", "0.6"):
        assert nkic("k.py", "--print", "kernels", "--nki", version).out == text
    error = failure(nkic("k.py", "--print", "kernels", "--nki", "0.99"), 2, "bad-argument")
    assert "there is no version `0.99` of NKI" in error
    failure(nkic("k.py", "--print", "kernels", "--target", "trn1"), 2, "conflicting-options")


def test_json_of_nothing(nkic: Run) -> None:
    error = failure(nkic("k.py", "--json"), 2, "conflicting-options")
    assert "--message-format json" in error


def test_an_unknown_target_gets_the_list(nkic: Run) -> None:
    error = failure(nkic("k.py", "--target", "trn4"), 2, "bad-argument")
    assert all(name in error for name in TARGETS)
    assert "did you mean" not in error


def test_a_key_that_a_block_lacks_is_a_wrong_call(nkic: Run, folder: Path) -> None:
    text = KERNEL.replace("# [args]", '# kernal = "double"\n# [args]')
    (folder / "k.py").write_text(text, encoding="utf-8")
    error = failure(nkic("k.py", "--check"), 2, "bad-inline-block")
    assert error.startswith("k.py:2:1: ")
    assert "did you mean `kernel`?" in error
    failure(nkic("k.py", "--print", "config"), 2, "bad-inline-block")


def test_variables_that_nobody_reads(nkic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKIC_CRASHDIR", "here")
    monkeypatch.setenv("NKIC_BACKTRACE", "0")
    done = nkic("k.py", "--check")
    assert done.code == 0
    assert done.err.startswith(
        "warning[NKI0011]: the environment sets `NKIC_CRASHDIR`, which nkic does not read\n"
        "  = help: did you mean `NKIC_CRASH_DIR`?\n"
    )
    assert done.err.count("NKI0011") == 1
    assert nkic("k.py", "--check", "-A", "unknown-variable").err == ""
    failure(nkic("k.py", "--check", "-D", "unknown-variable"), 2, "unknown-variable")
    assert "NKI0011" in nkic("--print", "env").err


def test_the_schema_of_settings_is_what_is_read(folder: Path, nkic: Run) -> None:
    schema = json.loads(nkic("--print", "schema=settings").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    for text, record in {
        "nki = 0.6": {"nki": 0.6},
        'nki = "beta2"': {"nki": "beta2"},
        'nki = "0.66"': {"nki": "0.66"},
        "nki = [1]": {"nki": [1]},
        'evaluate = "closed"': {"evaluate": "closed"},
        'evaluate = "natve"': {"evaluate": "natve"},
        "evaluate = true": {"evaluate": True},
        'nikc = "0.6"': {"nikc": "0.6"},
    }.items():
        (folder / "pyproject.toml").write_text(f"[tool.nkic]\n{text}\n", "utf-8")
        ran = nkic("k.py", "--check", "--print", "config")
        assert (ran.code == 0) is valid(record), text
    assert "unknown key `nikc`" in ran.err and "known are: evaluate, nki" in ran.err
    assert schema["properties"].keys() == SETTINGS.keys()
