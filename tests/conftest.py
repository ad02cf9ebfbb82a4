"""Tests compile: what another run kept must not stand in for it. Tests of the cache say so."""

import os

os.environ["NKIC_CACHE"] = "0"
