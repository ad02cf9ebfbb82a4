"""Names of tensors in messages and listings: the variables to which they are assigned."""

from __future__ import annotations

from nkic.base.source import CallChain, Span
from nkic.syntax import nodes
from nkic.syntax.bindings import Resolved


class Names:
    """Looks variables up in the source, memoised by location."""

    def __init__(self, resolved: Resolved) -> None:
        self.modules = resolved.library.modules
        self._cache: dict[int, tuple[CallChain, str]] = {}  # by id of the location

    def of(self, at: CallChain) -> str:
        """Return `x` for `x = nl.ndarray(…)`, or "" if the call is part of a larger expression."""
        cached = self._cache.get(id(at))
        if cached is None:
            cached = self._cache[id(at)] = (at, self._find(at.primary))
        return cached[1]

    def _find(self, span: Span) -> str:
        module = self.modules.get(span.path)
        statement = module.statement_at(span) if module is not None else None
        if not isinstance(statement, nodes.Assign) or statement.value.span != span:
            return ""
        target = statement.targets[0]
        return target.id if isinstance(target, nodes.Name) else ""
