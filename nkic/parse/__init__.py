"""Parse a file's text into its syntax tree, by `grammar/nki.lark`.

Any valid Python file through 3.12 is accepted; any other file gets one located error.
"""

from __future__ import annotations

from functools import lru_cache

from nkic.base.source import SourceFile
from nkic.parse import actions
from nkic.parse.context import check_context
from nkic.parse.decoding import decode
from nkic.parse.lexer import lex
from nkic.parse.parser import Unexpected
from nkic.syntax.nodes import Module

__all__ = ["decode", "parse"]


@lru_cache(maxsize=256)
def parse(source: SourceFile) -> Module:
    """Return the syntax tree of `source`.

    Raises CompileFailed with one located error if it is not Python. Trees are memoised by path and
    text for the most recent files.
    """
    lexed = lex(source)
    try:
        module: Module = actions.parser().parse(lexed.tokens, source.path)
    except Unexpected as error:
        # Imported here because most files have no error.
        from nkic.parse.errors import explain

        raise explain(error, lexed, source.path) from None
    check_context(module, {token.text for token in lexed.tokens})
    return module
