"""Element types that NumPy lacks, passed through files between both tools."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.harness import warm

COPY_KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def kept(path: Path, name: str) -> tuple[str, bytes]:
    """Return the recorded type and the bytes of an array."""
    with np.load(path) as found:
        return json.loads(found["__nki_dtypes__"].tobytes())[name], found[name].tobytes()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2"])
def test_types_that_numpy_lacks_survive_files(tmp_path: Path, name: str) -> None:
    """Values survive npz, `--like`, kernel, outputs and input again, bit for bit."""
    (tmp_path / "k.py").write_text(COPY_KERNEL, "utf-8")
    values = np.arange(-32, 32).reshape(4, 16).astype(getattr(ml_dtypes, name))
    np.savez(tmp_path / "raw.npz", a=values)  # NumPy stores only the bytes: the type is lost
    target = ("--target", "trn3")
    words = ("k.py", "--arg", f"a={name}[4,16]", *target, "-o", "copy.neff")
    assert warm.run(warm.NKIC, *words, cwd=tmp_path).returncode == 0
    run = ("copy.neff", "--inputs", "raw.npz", "--outputs", "out.npz")
    assert warm.run(warm.NKI_RUN, *run, cwd=tmp_path).returncode == 0
    assert kept(tmp_path / "out.npz", "output_0") == (name, values.tobytes())

    with np.load(tmp_path / "out.npz") as found:
        noted = np.frombuffer(f'{{"a": "{name}"}}'.encode(), np.uint8)
        np.savez(tmp_path / "noted.npz", a=found["output_0"], __nki_dtypes__=noted)
    words = ("k.py", "--like", "noted.npz", *target, "-o", "like.neff")
    assert warm.run(warm.NKIC, *words, cwd=tmp_path).returncode == 0
    run = ("like.neff", "--inputs", "noted.npz", "--outputs", "again.npz")
    assert warm.run(warm.NKI_RUN, *run, cwd=tmp_path).returncode == 0
    assert kept(tmp_path / "again.npz", "output_0") == (name, values.tobytes())
