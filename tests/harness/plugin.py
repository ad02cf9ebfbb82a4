"""Load nkic's pytest plugin, also where the checkout was installed before the plugin existed."""

import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from subprocess import CompletedProcess

from tests.harness import warm


def options() -> list[str]:
    """Return the options that load the plugin; none if the installed package announces it."""
    announced = any(one.name == "nkic" for one in entry_points(group="pytest11"))
    return [] if announced else ["-p", "nkic.pytest_plugin"]


def pytest_with_it(
    folder: Path, *options: str, env: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run pytest with this plugin alone: those of other packages would take most of the time."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
    kept |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(env or {})}
    words = ("-q", "-p", "no:cacheprovider", "-p", "nkic.pytest_plugin", *options)
    return warm.run_text(
        "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))", *words, cwd=folder, env=kept
    )
