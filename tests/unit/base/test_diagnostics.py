"""Test the code table, the reporter's bookkeeping, and the exit code of each failure."""

import pytest

from nkic.base import diagnostics
from nkic.base.diagnostics import CompileFailed, Diagnostic, Level, Reporter, codes, make
from nkic.base.source import Span

SLUG = "bad-value"


def span(line: int, column: int = 1) -> Span:
    return Span("k.py", line, column, line, column + 3)


def test_codes_come_from_the_names_of_the_pages() -> None:
    code = codes()["internal-error"]
    assert (code.number, code.slug) == ("NKI9001", "internal-error")


def test_make_labels_the_primary_span() -> None:
    found = make(SLUG, "seven is too many", span(3), label="here", notes=["a", "b"], help="six")
    assert found.primary == diagnostics.Label(span(3), "here")
    assert (found.level, found.notes, found.help) == (Level.ERROR, ("a", "b"), "six")


def test_equal_labels_become_one() -> None:
    call, other = diagnostics.Label(span(5), "called from here"), diagnostics.Label(span(1), "t")
    found = make(SLUG, "too deep", span(3), labels=[call, call, other, call])
    assert [(one.span.line, one.text) for one in found.labels] == [
        (5, "called from here, 3 times"),
        (1, "t"),
    ]


def test_make_without_a_span_has_no_place() -> None:
    assert make(SLUG, "nowhere").primary is None


def test_unknown_slug_is_an_error() -> None:
    with pytest.raises(KeyError):
        make("no-such-slug", "…")


def test_same_code_at_same_place_is_counted() -> None:
    reporter = Reporter()
    for step in range(4):
        reporter.error(SLUG, f"iteration {step}", span(3))
    assert [(d.message, d.count) for d in reporter.all] == [("iteration 0", 4)]


def test_other_place_or_other_code_is_kept_apart_in_order() -> None:
    reporter = Reporter()
    reporter.error(SLUG, "a", span(3))
    reporter.warning("bad-usage", "b", span(3))
    reporter.error(SLUG, "c", span(2))
    assert [d.message for d in reporter.all] == ["a", "b", "c"]
    assert [d.message for d in reporter.errors] == ["a", "c"]


def test_without_a_place_messages_tell_them_apart() -> None:
    reporter = Reporter()
    for message in ("a", "b", "a"):
        reporter.error(SLUG, message)
    assert [(d.message, d.count) for d in reporter.all] == [("a", 2), ("b", 1)]


def test_reporter_gives_up_at_max_errors_with_all_of_them() -> None:
    reporter = Reporter(max_errors=3)
    reporter.warning(SLUG, "not counted", span(9))
    reporter.error(SLUG, "one", span(1))
    reporter.error(SLUG, "one again", span(1))
    reporter.error(SLUG, "two", span(2))
    with pytest.raises(CompileFailed) as raised:
        reporter.error(SLUG, "three", span(3))
    messages = [d.message for d in raised.value.diagnostics]
    assert messages == ["not counted", "one", "two", "three"]


def test_stop_if_errors_lets_warnings_pass() -> None:
    reporter = Reporter()
    reporter.warning(SLUG, "hm", span(1))
    reporter.stop_if_errors()
    reporter.error(SLUG, "no", span(2))
    with pytest.raises(CompileFailed):
        reporter.stop_if_errors()


def test_fatal_raises_with_earlier_reports() -> None:
    reporter = Reporter()
    reporter.warning(SLUG, "hm", span(1))
    with pytest.raises(CompileFailed) as raised:
        reporter.fatal(SLUG, "stop", span(2))
    assert [d.message for d in raised.value.diagnostics] == ["hm", "stop"]


def test_only_an_error_inside_a_place_is_its_cause() -> None:
    call, argument = Span("k.py", 3, 1, 3, 20), Span("k.py", 3, 9, 3, 19)
    report = Reporter()
    report.warning(SLUG, "inside", argument)
    report.error(SLUG, "elsewhere", Span("k.py", 5, 1, 5, 4))
    report.stop_if_errors_in(call)
    report.error(SLUG, "inside", Span("k.py", 3, 10, 3, 12))
    with pytest.raises(CompileFailed):
        report.stop_if_errors_in(call)


@pytest.mark.parametrize(
    ("name", "exit_code"),
    [
        ("CompileFailed", 1),
        ("UsageFailed", 2),
        ("ArtifactFailed", 3),
        ("InputFailed", 4),
        ("ProgramFault", 5),
        ("LimitHit", 6),
    ],
)
def test_exit_codes_are_the_published_ones(name: str, exit_code: int) -> None:
    failure: type[diagnostics.NkicError] = getattr(diagnostics, name)
    carried: list[Diagnostic] = [make(SLUG, "why")]
    assert failure.exit_code == exit_code
    assert failure(carried).diagnostics == tuple(carried)
    assert str(failure(carried)) == "why"


def test_a_text_that_a_kernel_made_very_long_is_cut() -> None:
    long = "x" * 1_000_000
    found = make(
        "kernel-raised", long, Span("k.py", 1, 1, 1, 2), label=long, notes=[long], help=long
    )
    assert found.primary is not None
    for text in (found.message, found.primary.text, *found.notes, found.help):
        assert len(text) < 4_100 and text.endswith("… (996,000 more characters)")
