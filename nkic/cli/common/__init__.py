"""The parts shared by `nkic` and `nki-run`: main function, options, terminal output.

A tool is a `Tool`: a dataclass of options (`table`), and the function that carries out its values
in a `Session` and returns an exit code; its `main` is `return run(command, "nkic")`.
"""

from nkic.cli.common.help import Tool
from nkic.cli.common.main import run
from nkic.cli.common.session import Session

__all__ = ["Session", "Tool", "run"]
