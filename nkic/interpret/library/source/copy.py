"""`copy.replace`, since Python 3.13, for dataclasses and named tuples."""

import dataclasses


def replace(obj, /, **changes):
    if hasattr(obj, "_replace"):
        return obj._replace(**changes)
    if isinstance(obj, type) or not dataclasses.is_dataclass(obj):
        raise TypeError(f"replace() does not support {obj.__class__.__name__} objects")
    return dataclasses.replace(obj, **changes)
