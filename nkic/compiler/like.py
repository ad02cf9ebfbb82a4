"""`--like`: types of tensor arguments from the arrays of an npz file, whose data is not read.

The reader is that of `nki-run`, so both reject the same files.
"""

from __future__ import annotations

from nkic.artifact.archive import opened_file
from nkic.artifact.arrays import Offer, of_numpy, read_npz
from nkic.specialise.request import TensorType


def read_like(path: str) -> dict[str, TensorType]:
    """Return the type of every array by name. Raises `UsageFailed` and `InputFailed`."""
    with opened_file(path) as file:
        return {
            name: _type(offer, f"--like {path}") for name, offer in read_npz(file, path).items()
        }


def _type(offer: Offer, origin: str) -> TensorType:
    dtype, note = offer.nki_dtype or of_numpy(offer.element), ""
    if dtype is None:
        note = f"its NumPy type {offer.element} is not an NKI dtype"
    elif not offer.shape:
        note = "it has no dimensions; a tensor in HBM has at least one"
    return TensorType(dtype, offer.shape or None, origin, note)
