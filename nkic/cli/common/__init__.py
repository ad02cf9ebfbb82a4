"""The parts shared by `nkic` and `nki-run`: main function, options, terminal output.

A tool is a `Tool`: a dataclass of options (`options`), and the function that carries out its values
in a `Session` and returns an exit code; its `main` is `return run(command, "nkic")`.
"""

from nkic.cli.common.main import run
from nkic.cli.common.session import Session, of_file
from nkic.cli.common.tool import Tool

__all__ = ["Session", "Tool", "of_file", "run"]
