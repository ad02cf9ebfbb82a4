"""A small sweep of injected faults (`make faults` runs all): no fault changes values silently."""

from collections import Counter

import pytest

from tests.faults.cases import OWN, subject
from tests.faults.sweep import PROOF, SAME, SILENT, UNPROVEN, WHATS, Table, markdown, sweep

# Faults that always change values or fail.
MUST = {"dropped instruction", "doubled instruction", "wrong offset"}


@pytest.mark.parametrize("name", ["01_tensor_add", "08_layer_norm", *OWN])
def test_no_fault_is_silent(name: str) -> None:
    table: Table = Counter()
    assert list(sweep(subject(name), 5, table, 2)) == []
    whats = {what for what, _, _ in table}
    assert whats == set(WHATS) - {"lowered, not proven"}
    for (what, kind, who), count in table.items():
        assert who != SILENT or what in UNPROVEN, (what, kind, count)
        if kind in MUST and what in ("schedule", "file"):
            assert who == PROOF
        if what == "file":
            assert who == PROOF, (kind, who)
    assert sum(n for (_, _, who), n in table.items() if who == PROOF) > 40


def test_the_table_counts_every_outcome_once() -> None:
    table: Table = Counter({("file", "lost wait", PROOF): 1_234, ("file", "lost wait", SAME): 2})
    assert "| file | lost wait | 1,236 | 1,234 | 0 | 0 | 0 | 2 | 0 |" in markdown(table)
