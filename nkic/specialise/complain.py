"""Errors and warnings about kernels that evaluation survives: reported where the kernel stands."""

from __future__ import annotations

from nkic.base.diagnostics import Label, Level, make
from nkic.ir.tensors import Tensor
from nkic.specialise.location import here
from nkic.specialise.trace import active


def complain(
    slug: str,
    message: str,
    *,
    help: str = "",
    about: Tensor | None = None,
    level: Level = Level.ERROR,
) -> None:
    """Reports at the call that the kernel is making, with the calls that led there."""
    places = here().user_frames()
    labels = [Label(span, "called from here") for span in places[1:]]
    if about is not None:
        labels.append(Label(about.at.primary, f"{about.name} is {shown(about)}"))
    active().report.add(make(slug, message, places[0], help=help, labels=labels, level=level))


def shown(tensor: Tensor) -> str:
    """A tensor in words: `float32[128, 512] in sbuf`."""
    sizes = ", ".join(map(str, tensor.shape))
    return f"{tensor.dtype.name}[{sizes}] in {tensor.buffer.value}"
