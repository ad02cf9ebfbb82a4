"""Further cases of Beta 1: what the Neuron team contributed to nki-samples."""

from __future__ import annotations

from tests.conformance.beta1_cases import SAMPLES

TEAM = "contributed/neuron-team-kernels/"
assert SAMPLES
