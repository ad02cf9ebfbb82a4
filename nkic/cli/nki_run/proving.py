"""Two compiled kernels compared as functions."""

from __future__ import annotations

import json

from nkic.base import files
from nkic.base.files import STANDARD
from nkic.cli.nki_run.options import EqualLine
from nkic.neff.load import load
from nkic.neff.read import open_file
from nkic.simulate.field.decide import equal

NOT_EQUAL = 1


def equal_files(line: EqualLine) -> int:
    """Tell whether the kernels are equal, and return the exit code. Raises `NkicError`."""
    first, second = (load(open_file(path)) for path in (line.before, line.after))
    answer = equal(first, second)
    record = {"schema": 1, **answer.as_json()}
    files.write(STANDARD, json.dumps(record, indent=1) + "\n" if line.json else answer.text)
    return 0 if answer else NOT_EQUAL
