"""Turn off the cache: a test must compile, and not read what an earlier run kept.

Tests of the cache turn it on.
"""

import os

os.environ["NKIC_CACHE"] = "0"
