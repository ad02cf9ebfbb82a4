"""Load nkic's pytest plugin, also where the checkout was installed before the plugin existed."""

from __future__ import annotations

from importlib.metadata import entry_points


def options() -> list[str]:
    """Return the options that load the plugin; none if the installed package announces it."""
    announced = any(one.name == "nkic" for one in entry_points(group="pytest11"))
    return [] if announced else ["-p", "nkic.pytest_plugin"]
