"""HTML of artifacts and results for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from nkic.simulate.io.signature import Signature


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table; text is escaped."""
    return (
        "<table><thead>"
        + _row("th", head)
        + "</thead><tbody>"
        + "".join(_row("td", row) for row in rows)
        + "</tbody></table>"
    )


def signature(parameters: Signature) -> str:
    """Return the inputs and outputs of a kernel as a table."""
    rows = [("in", p.name, f"{p}") for p in parameters.inputs]
    rows += [("out", p.name, f"{p}") for p in parameters.outputs]
    return f"<b>{escape(parameters.kernel)}</b>{table(('', 'array', 'type'), rows)}"


def _row(cell: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(str(v))}</{cell}>' for v in values)}</tr>"
