"""The methods that `str` and `bytes` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate.objects import Class
from nkic.evaluate.tables import method
from nkic.evaluate.types import measures
from nkic.evaluate.types.shared import call_host, check_owner, host_method

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine


def textlike(kind: Class, python: type[str] | type[bytes]) -> None:
    """Register the shared methods for `kind`, whose values are of the Python class `python`."""
    for name, measure in measures.MEASURES.items():
        host_method(kind, python, name, measure)

    @method(kind, "split")
    def _split(m: Machine, text: Any, /, sep: Any = None, maxsplit: Any = -1) -> Any:
        check_owner(m, text, python, "split")
        measures.split(m, text, (sep, maxsplit))
        return call_host(m, python.split, (text, sep, maxsplit))

    @method(kind, "rsplit")
    def _rsplit(m: Machine, text: Any, /, sep: Any = None, maxsplit: Any = -1) -> Any:
        check_owner(m, text, python, "rsplit")
        measures.split_back(m, text, (sep, maxsplit))
        return call_host(m, python.rsplit, (text, sep, maxsplit))

    @method(kind, "splitlines")
    def _splitlines(m: Machine, text: Any, /, keepends: Any = False) -> Any:
        check_owner(m, text, python, "splitlines")
        measures.lines(m, text, ())
        return python.splitlines(text, m.truth(keepends))

    @method(kind, "expandtabs")
    def _expandtabs(m: Machine, text: Any, /, tabsize: Any = 8) -> Any:
        check_owner(m, text, python, "expandtabs")
        size = m.index(tabsize)
        measures.tabs(m, text, size)
        return python.expandtabs(text, size)

    @method(kind, "replace")
    def _replace(m: Machine, text: Any, old: Any, new: Any, count: Any = -1, /) -> Any:
        check_owner(m, text, python, "replace")
        args = (old, new, m.index(count))
        measures.replaced(m, text, args)
        return call_host(m, python.replace, (text, *args))
