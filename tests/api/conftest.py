"""Fixtures that install nkic in place of the package nki for one test module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import nkic.nki

KERNELS = "tests.api.drop_in"


@pytest.fixture(scope="module")
def drop_in() -> Iterator[ModuleType]:
    """Yield the module of kernels that import nki, with nkic installed in its place."""
    nkic.nki.install()
    sys.modules.pop(KERNELS, None)
    yield importlib.import_module(KERNELS)
    nkic.nki.uninstall()
