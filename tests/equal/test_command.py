"""`nki-run equal` and `nkic.equal`."""

import json
from pathlib import Path

import numpy as np
import pytest

import nkic
from nkic.cli.common import run
from nkic.cli.nki_run import command
from tests.equal.kernels import answer, compiled

GATHER = """
    index = nl.ndarray((24, 32), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=w_hbm)
    out = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.nc_n_gather(dst=out, data=x, indices=index)
"""


def test_the_command_answers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = []
    for name, body in (("a", "out = x + w"), ("b", "out = w + x"), ("c", "out = x - w")):
        names.append(str(compiled(body).save(tmp_path / f"{name}.neff")))
    a, b, c = names
    assert run(command, "nki-run", ("equal", a, b)) == 0
    assert capfd.readouterr().out.startswith("equal: the same functions of their inputs")
    assert run(command, "nki-run", ("equal", a, c)) == 1
    assert "768 of 768 elements of output_0 differ: [22, 7] is -4.0365" in capfd.readouterr().out
    assert run(command, "nki-run", ("equal", a, c, "--json")) == 1
    record = json.loads(capfd.readouterr().out)
    assert (record["schema"], record["verdict"]) == (1, "different")
    assert record["counterexample"] == {"fill": "randn(1)", "output": "output_0"}


def test_kernels_without_floating_point_inputs_have_no_limits() -> None:
    found = answer("out = x + w", "out = w + x", "int32[24,32]", "int32[24,32]")
    assert found and not found.limits


def test_integer_inputs_are_taken_as_given() -> None:
    types = ("float32[24,32]", "uint32[24,32]")
    one, other = compiled(GATHER, *types), compiled("out = nl.copy(x)", *types)
    here = np.tile(np.arange(32), (24, 1))
    assert nkic.equal(one, other, {"w_hbm": here})
    assert nkic.equal(one, other, {"w_hbm": here[:, ::-1]}).verdict == "different"
    assert nkic.equal(one, other).verdict == "different"
    assert "for these values of integer inputs: w_hbm" in nkic.equal(one, one).text
    with pytest.raises(nkic.RunError, match="is not an integer input"):
        nkic.equal(one, other, {"x_hbm": here})
