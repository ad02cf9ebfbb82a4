"""Expected outputs: arrays of any numeric type, matched to the outputs by name and shape."""

from __future__ import annotations

from collections.abc import Collection

from nkic.arrays.npz import read_npz
from nkic.arrays.offers import Offer
from nkic.arrays.streams import opened
from nkic.base.diagnostics import InputFailed, make
from nkic.base.text import clean
from nkic.machine.dtypes import DType
from nkic.simulate.io.bind import offered_numbers
from nkic.simulate.io.numbers import Numbers, numbers, unpacked_shape
from nkic.simulate.io.signature import (
    ArrayParameter,
    Signature,
    SignatureLine,
    summary,
    superfluous,
    table,
)


def load_expected(
    signature: Signature, path: str, skipped: Collection[str] = ()
) -> dict[str, Numbers]:
    """Return the numbers expected of each output that is not `skipped`.

    Packed elements are unpacked. For an output with two names, one is enough. Raises `InputFailed`
    with the whole signature if an array is missing, superfluous, of another shape or not of
    numbers; `UsageFailed` for a file that cannot be read.
    """
    with opened(path, sum(p.elements * p.dtype.lanes * 8 for p in signature.outputs)) as file:
        offers = read_npz(file, path)
        tensors = {p.tensor for p in signature.outputs if p.name in offers and p.tensor >= 0}
        missing = [p for p in signature.outputs if p.name not in offers]
        left_out = {*skipped, *(p.name for p in missing if p.tensor in tensors)}
        _check(signature, offers, left_out)
        wanted = [p for p in signature.outputs if p.name not in left_out]
        return {p.name: numbers_of(offers[p.name], p.dtype) for p in wanted}


def _check(signature: Signature, offers: dict[str, Offer], skipped: Collection[str]) -> None:
    lines = [
        SignatureLine(p.name, f"{p}", "" if p.name in skipped else _problem(p, offers.get(p.name)))
        for p in signature.outputs
    ]
    names = [p.name for p in signature.outputs]
    lines += superfluous("output", [name for name in offers if name not in names], names)
    if not any(line.problem for line in lines):
        return
    kernel = clean(signature.kernel)
    message = f"the expected outputs do not fit kernel `{kernel}`: {summary(lines)}"
    note = table(f"outputs of {kernel}:", lines)
    help = "`--compare NAME=skip` leaves an output out"
    raise InputFailed([make("expected-does-not-fit", message, notes=[note], help=help)])


def _problem(parameter: ArrayParameter, offer: Offer | None) -> str:
    if offer is None:
        return "missing"
    shape = shape_as(offer, parameter.shape, parameter.dtype)
    return "" if offer.shape == shape else f"is {offer} in {offer.origin}"


def shape_as(offer: Offer, shape: tuple[int, ...], dtype: DType) -> tuple[int, ...] | None:
    """Return the shape that an offer needs for a comparison with an array of `shape` and `dtype`.

    Return None if its elements are not numbers.
    """
    if _type(offer, dtype) is not None:
        return shape
    if offer.element.kind == "V" or not offer.element.readable:
        return None
    return unpacked_shape(shape, dtype)


def _type(offer: Offer, dtype: DType) -> DType | None:
    """Return the NKI type of the offer's elements: its own, or the output's if it matches."""
    return offer.nki_dtype or (dtype if offer.is_of(dtype) else None)


def numbers_of(offer: Offer, dtype: DType) -> Numbers:
    """Return the offer's elements as numbers, for a comparison with an array of `dtype`."""
    stored = _type(offer, dtype)
    return offered_numbers(offer) if stored is None else numbers(offer.load_as(stored), stored)
