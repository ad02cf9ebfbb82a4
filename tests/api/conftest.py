"""Fixtures that install nkic in place of the package nki for one test module."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

import nkic.nki


@contextmanager
def installed(kernels: str) -> Iterator[ModuleType]:
    """Yield a module of kernels that import nki, with nkic installed in its place."""
    nkic.nki.install()
    sys.modules.pop(kernels, None)
    yield importlib.import_module(kernels)
    nkic.nki.uninstall()


@pytest.fixture(scope="module")
def drop_in() -> Iterator[ModuleType]:
    with installed("tests.api.drop_in") as module:
        yield module
