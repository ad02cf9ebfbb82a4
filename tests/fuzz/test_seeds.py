"""Run every seed through its target, without a fuzzer: bugs that fuzzing found stay fixed."""

from pathlib import Path

import pytest

from tests.fuzz.targets import SEEDS, TARGETS

FILES = sorted(path for path in SEEDS.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_seed(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_a_seed_that_it_accepts_and_survives_damage(target: str) -> None:
    """Run each seed with bytes changed at several places."""
    seeds = [path.read_bytes() for path in FILES if path.parent.name == target]
    assert len(seeds) >= 2
    for seed in seeds:
        step = max(len(seed) // 8, 1)
        for at in range(0, len(seed), step):
            TARGETS[target](seed[:at] + bytes([seed[at] ^ 0x15]) + seed[at + 1 :])


def test_seeds_are_small() -> None:
    assert max(path.stat().st_size for path in FILES) <= 4096
    assert sum(path.stat().st_size for path in FILES) <= 64 << 10
