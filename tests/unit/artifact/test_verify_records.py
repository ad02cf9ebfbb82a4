"""Test which record of a file an error refers to."""

from dataclasses import replace

import pytest

from nkic.artifact.format import LIMITS
from nkic.artifact.verify import Unsound, check
from tests.harness.executables import sample


def test_refusals_count_records_from_the_first_stream() -> None:
    """A stream has its own record before those of its items."""
    streams, record = sample().streams, 0
    for number, one in enumerate(streams):
        twice = one._replace(core=1)
        with pytest.raises(Unsound) as caught:
            check(replace(sample(), streams=(*streams[:number], twice)), LIMITS)
        assert caught.value.record == record
        for at, item in enumerate(one.items):
            items = (*one.items[:at], item._replace(place=99), *one.items[at + 1 :])
            changed = (*streams[:number], one._replace(items=items), *streams[number + 1 :])
            with pytest.raises(Unsound, match="there is no place 99") as caught:
                check(replace(sample(), streams=changed), LIMITS)
            record += 1
            assert caught.value.record == record
        record += 1
