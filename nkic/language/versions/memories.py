"""`sbuf`, `psum` and `hbm`, names that kernels of Beta 2 have without an import.

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
    """A memory that tensors are made in."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    def view(self, dtype: Any, shape: Any) -> NkiTensor:
        """A new tensor, its contents undefined."""
        return make_tensor(shape, dtype, self._buffer, None, None)

    def __repr__(self) -> str:
        return self._buffer.value


MEMORIES = {name: Memory(BUFFERS[name]) for name in names.MEMORIES}
