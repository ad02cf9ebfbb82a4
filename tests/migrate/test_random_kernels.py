"""Random kernels in the language of each NKI version compute the same bits after migration."""

import re
from collections.abc import Callable
from random import Random

import pytest

from nkic.base.profiles import Profile
from tests.migrate.test_cases import Job

HEAD = """\
# /// nkic
# nki = "{}"
# [args]
# a = "float32[128, 256]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit{}
def kernel(a):
    x = nl.ndarray((128, 256), dtype=nl.float32, buffer={})
    y = nl.ndarray((128, 256), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_copy(dst=y, src=x)
"""
TAIL = """\
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer={})
    nisa.dma_copy(dst=out, src=x)
    return out
"""
BETA2, NKI_0_3, NKI_0_5 = Profile.BETA2, Profile.NKI_0_3, Profile.NKI_0_5
Made = Callable[[Random, Profile], str]


def _engine(random: Random, version: Profile) -> str:
    said = ["nisa.engine.vector"] if version >= NKI_0_3 else []
    return random.choice([*said, *(["nisa.vector_engine"] if version <= NKI_0_5 else [])])


def scaled(random: Random, version: Profile) -> str:
    op = random.choice(["add", "multiply", "subtract", "maximum"])
    dtype = ", dtype=nl.float32" if version is BETA2 else ""
    engine = _engine(random, version)
    number = random.choice(["0.5", "1.25", "-2.0"])
    return f"nisa.tensor_scalar(x, x, op0=nl.{op}, operand0={number}{dtype}, engine={engine})"


def mixed(random: Random, version: Profile) -> str:
    dst, first, second = random.choice([("x", "x", "y"), ("y", "y", "x"), ("x", "y", "y")])
    return f"nisa.tensor_tensor(dst={dst}, data1={first}, data2={second}, op=nl.add)"


def cleared(random: Random, version: Profile) -> str:
    limit = "nl.tile_size.psum_fmax" if version <= NKI_0_3 else "nl.tile_size.psum_bank_fmax"
    start = random.randrange(0, 200)
    return f"nisa.memset(x[:, {start}:min({start + 9}, {limit})], value={random.random():.2f})"


def repeated(random: Random, version: Profile) -> str:
    names = ["affine_range", "sequential_range", "static_range"]
    loop = f"nl.{random.choice(names)}" if version <= NKI_0_5 else "range"
    inner = random.choice([cleared, scaled])(random, version)
    return f"for i in {loop}({random.randrange(1, 4)}):  # some turns\n        {inner}"


def counted(random: Random, version: Profile) -> str:
    bounds = random.choice(["3", "1, 4", "0, 6, 2"])
    inner = scaled(random, version).replace("operand0=", "operand0=1.0 * ")
    return f"for i in nl.dynamic_range({bounds}):\n        # on the device\n        {inner}"


def ended(random: Random, version: Profile) -> str:
    name = f"turns_{random.randrange(10**6)}"
    lines = (
        f"{name} = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)",
        f"nisa.memset(dst={name}, value={random.randrange(1, 4)})",
        f"register_{name} = nisa.register_alloc({random.randrange(1, 4)})",
        f"while register_{name}:",
        f"    {scaled(random, version)}",
        f"    nisa.tensor_scalar(dst={name}, data={name}, op0=nl.subtract, operand0=1)",
        f"    nisa.register_load(register_{name}, {name})",
    )
    return "\n    ".join(lines)


def made(seed: int, version: Profile) -> str:
    """Return a kernel of eight random statements."""
    random = Random(f"{seed} {version.label}")
    kinds: list[Made] = [scaled, mixed, cleared, repeated]
    kinds += [counted, ended] if NKI_0_3 <= version <= NKI_0_5 else []
    old = version is BETA2
    head = HEAD.format(version.label, '(mode="jax")' if old else "", '"sbuf"' if old else "nl.sbuf")
    body = "".join(f"    {random.choice(kinds)(random, version)}\n" for _ in range(8))
    return head + body + TAIL.format("nl.hbm" if old else "nl.shared_hbm")


VERSIONS = [one for one in Profile if BETA2 <= one < Profile.NKI_0_7]
FORMER = re.compile(r"_range\(|while |psum_fmax|vector_engine|dtype=nl.float32,|mode=|\"sbuf\"")


# The second and third kernel of each version reach no further line of nkic/migrate.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.label)
def test_a_migrated_kernel_computes_the_same_bits(version: Profile, seed: int) -> None:
    text = made(seed, version)
    job = Job(text)
    assert not job.made.left, text
    assert not FORMER.search(job.made.text.replace("(128, 256), dtype=nl.float32,", "")), text
    proof = job.proof()
    assert {one.verdict for one in proof.findings} == {"bits"}, (text, proof)
    assert Job(job.made.text).made.text == job.made.text
