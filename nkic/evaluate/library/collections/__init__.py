"""Python's `collections`: one module per family of classes."""

from __future__ import annotations

from typing import Any

from nkic.evaluate.library.collections import counters, deques, mappings, namedtuples

# The classes, by their name in `collections` and their name in `typing`.
_CLASSES = {
    ("deque", "Deque"): deques.DEQUE,
    ("defaultdict", "DefaultDict"): mappings.DEFAULT_DICT,
    ("OrderedDict", "OrderedDict"): mappings.ORDERED_DICT,
    ("ChainMap", "ChainMap"): mappings.CHAIN_MAP,
    ("Counter", "Counter"): counters.COUNTER,
}
MODULE: dict[str, Any] = {
    **namedtuples.FUNCTIONS,
    **{name: cls for (name, _), cls in _CLASSES.items()},
}
TYPING = {name: cls for (_, name), cls in _CLASSES.items()}
