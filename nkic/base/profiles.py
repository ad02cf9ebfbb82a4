"""Versions of NKI. Later versions compare greater.

Source: release notes of NKI 0.3.0 to 0.7.0; migration guides (Beta 1 to Beta 2, 0.3.0).
"""

from __future__ import annotations

from enum import IntEnum


class Profile(IntEnum):
    """A version of the language and its API."""

    BETA1 = 10  # 0.1, `neuronxcc.nki`
    BETA2 = 20  # 0.2, the first compiled `nki.*`
    NKI_0_3 = 30
    NKI_0_4 = 40
    NKI_0_5 = 50
    NKI_0_6 = 60
    NKI_0_7 = 70

    @property
    def label(self) -> str:
        """The name of the version in `--nki`."""
        return LABELS[self]


LABELS = {
    Profile.BETA1: "beta1",
    Profile.BETA2: "beta2",
    Profile.NKI_0_3: "0.3",
    Profile.NKI_0_4: "0.4",
    Profile.NKI_0_5: "0.5",
    Profile.NKI_0_6: "0.6",
    Profile.NKI_0_7: "0.7",
}
ALIASES = {"0.1": "beta1", "0.2": "beta2"}
KNOWN = f"known are: {', '.join(LABELS.values())}"
DEFAULT = Profile.NKI_0_7


def find(label: str) -> Profile | None:
    """Return the profile called `label`, or None."""
    canonical = ALIASES.get(label, label)
    return next((p for p, text in LABELS.items() if text == canonical), None)
