"""A language server: what nkic knows of a kernel, in the editor, while it is written.

The server (`lsp_server`) holds documents and answers the editor. It compiles nothing itself: a
process with limits (`lsp_child`) compiles one document at a time in the closed world, and is killed
when the text changes, when it takes too long or too much memory.
"""

from __future__ import annotations

from importlib.util import find_spec

from nkic.base.diagnostics import not_installed

LIBRARY = "pygls"


def start() -> int:
    """Serve one editor over standard input and output, and return the exit code.

    Raises `UsageFailed`, with the command that installs it, if pygls is missing.
    """
    if find_spec(LIBRARY) is None:
        raise not_installed("the language server needs", LIBRARY)
    from nkic.serve.lsp_server import serve  # pygls is slow to import

    return serve()
