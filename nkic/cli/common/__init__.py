"""The parts shared by `nkic` and `nki-run`: main function, options, terminal output.

A tool is a `click` command made with `cls=Tool` and decorated with `shared_options`; its function
takes the `Session` (`@click.pass_obj`) and returns None or an exit code; its `main` is `return
run(command, "nkic")`.
"""

from nkic.cli.common.help import Option, Tool
from nkic.cli.common.main import run
from nkic.cli.common.options import shared_options
from nkic.cli.common.session import Session

__all__ = ["Option", "Session", "Tool", "run", "shared_options"]
