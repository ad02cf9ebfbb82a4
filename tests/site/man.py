"""Man pages of the commands and their subcommands, from their help: `make man` writes build/man."""

import re
import sys
from pathlib import Path

import click

from nkic import __version__
from nkic.cli.common.tool import Tool
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nkic import command as nkic

TOOLS = {"nkic": nkic, "nki-run": nki_run}


def page(name: str, command: Tool) -> str:
    """Return the page of a command: its help, with the headings of the help as sections."""
    with click.Context(command, info_name=name) as context:
        text = command.get_help(context)
    told = " ".join(str(command.help).split("\n\n")[0].split())
    title = name.replace(" ", "-")
    lines = [f'.TH {title.upper()} 1 "" "nkic {__version__}"', ".SH NAME", f"{title} - {told}"]
    lines += [".SH SYNOPSIS", ".nf"]
    for line in text.splitlines():
        heading = re.fullmatch(r"([A-Z][\w ]+):", line)
        usage = re.sub(r"^Usage: ", "", line)
        lines += [f".fi\n.SH {heading[1].upper()}", ".nf"] if heading else [escaped(usage)]
    return "\n".join([*lines, ".fi", ""])


def escaped(line: str) -> str:
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


def pages() -> dict[str, str]:
    """Return all pages by the names of their files."""
    made = {}
    for tool, suite in TOOLS.items():
        made[f"{tool}.1"] = page(tool, suite)
        for name, command in suite.commands.items():
            made[f"{tool}-{name}.1"] = page(f"{tool} {name}", command)
    return made


if __name__ == "__main__":
    folder = Path(sys.argv[1], "man1")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, "utf-8")
