"""`sbuf`, `psum` and `hbm`, which kernels of Beta 2 use without an import.

Source: the quickstart and the overview of DMA, SDK 2.27: `sbuf.view(dtype, shape)` allocates.
"""

from __future__ import annotations

from typing import Any

from nkic.language.dtypes_api import BUFFERS
from nkic.language.tensors.creation import make_tensor
from nkic.language.tensors.tensor import NkiTensor
from nkic.machine.memory import Buffer
from nkic.syntax import names


class Memory:
    """A memory in which tensors are allocated."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    def view(self, dtype: Any, shape: Any) -> NkiTensor:
        """Return a new, uninitialised tensor."""
        return make_tensor(shape, dtype, self._buffer, None, None)

    def __repr__(self) -> str:
        return self._buffer.value


MEMORIES = {name: Memory(BUFFERS[name]) for name in names.MEMORIES}
