"""Turn off the cache: a test must compile, and not read what an earlier run kept.

Tests of the cache turn it on.
"""

import gc
import os

os.environ["NKIC_CACHE"] = "0"


def pytest_collection_finish() -> None:
    """Let the collector pass over the tests and modules, which stay: half a million objects."""
    gc.freeze()
