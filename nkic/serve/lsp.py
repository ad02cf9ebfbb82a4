"""A language server: what nkic knows of a kernel, in the editor, while it is written.

The server (`lsp_server`) holds documents and answers the editor. It compiles nothing itself: a
process with limits (`lsp_child`) compiles one document at a time in the closed world, and is killed
when the text changes, when it takes too long or too much memory.
"""

from __future__ import annotations

from nkic.base.diagnostics import need


def start() -> int:
    """Serve one editor over standard input and output, and return the exit code.

    Raises `UsageFailed`, with the command that installs it, if pygls is missing.
    """
    need("the language server needs", "pygls")
    from nkic.serve.lsp_server import serve  # pygls is slow to import

    return serve()
