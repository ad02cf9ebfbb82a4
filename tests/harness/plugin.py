"""How a run of pytest gets nkic's plugin, also where the checkout was installed before it."""

from __future__ import annotations

from importlib.metadata import entry_points


def options() -> list[str]:
    """Nothing where the installed package announces it."""
    announced = any(one.name == "nkic" for one in entry_points(group="pytest11"))
    return [] if announced else ["-p", "nkic.pytest_plugin"]
