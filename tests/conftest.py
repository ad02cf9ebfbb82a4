"""Turn off the cache: a test must compile, and not read what an earlier run kept.

Tests of the cache turn it on.
"""

import gc
import os

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from nkic.base.worker import FORKED

os.environ["NKIC_CACHE"] = "0"
# It would draw numbers and strings of all modules that happen to be loaded, which it parses for
# them, 7 s in every worker; and a test would draw others for every change to any module.
vars(providers).update(is_local_module_file=lambda path: False)
# No test depends on how busy the machine is.
settings.register_profile("nkic", deadline=None)
settings.load_profile("nkic")


def pytest_collection_finish() -> None:
    """Let the collector pass over the tests and modules, which stay: half a million objects."""
    gc.freeze()
    # The judge and the editor ask for their own, and the other's processes would import it anew.
    wanted = ["nkic.judge.process", "nkic.api.preloaded", "nkic.serve.lsp_child"]
    FORKED.set_forkserver_preload(wanted)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let the collector pass over what the tests of a file leave in caches, too."""
    if nextitem and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
