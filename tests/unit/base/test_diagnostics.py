"""Test the code table, the reporter's bookkeeping, and the exit code of each failure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkic.base import diagnostics, levels
from nkic.base.diagnostics import (
    CompileFailed,
    Diagnostic,
    Level,
    Reporter,
    UsageFailed,
    codes,
    make,
)
from nkic.base.levels import DEFAULT, Settings, Wish, apply, selected
from nkic.base.source import SourceFile, Span

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


# ------------------------------------------------------------------------------------------------
# Test the levels of warnings: options on the command line and comments in the source.

# Codes of the family 02, one code of another family, and their names.
FIRST, SECOND, OTHER = "output-not-returned", "input-returned", "input-cast"


def warning(
    slug: str = FIRST, line: int = 2, level: Level = Level.WARNING, end: int = 0
) -> Diagnostic:
    return make(slug, "m", Span("k.py", line, 1, end or line, 5), level=level)


def settings(*wishes: tuple[Wish, str], all_errors: bool = False) -> Settings:
    found = Settings(all_errors=all_errors)
    for wish, word in wishes:
        found = found.adding(wish, word)
    return found


def said(wanted: Settings, *found: Diagnostic) -> list[tuple[str, str]]:
    return [(one.code.slug, one.level.value) for one in apply(found, wanted)]


# ---- wishes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "level"),
    [
        (DEFAULT, "warning"),
        (settings((Wish.ALLOW, FIRST)), None),
        (settings((Wish.ALLOW, "02")), None),
        (settings((Wish.ALLOW, "NKI02")), None),
        (settings((Wish.ALLOW, SECOND)), "warning"),
        (settings((Wish.ALLOW, "05")), "warning"),
        (settings((Wish.DENY, "nki0254")), "error"),
        (settings((Wish.DENY, "0254")), "error"),
        (settings((Wish.DENY, "02"), (Wish.ALLOW, FIRST)), None),
        (settings((Wish.ALLOW, "02"), (Wish.DENY, FIRST)), "error"),
        (settings((Wish.WARN, FIRST), (Wish.ALLOW, "02")), "warning"),
        (settings(all_errors=True), "error"),
        (settings((Wish.WARN, FIRST), all_errors=True), "warning"),
        (settings((Wish.ALLOW, "02"), all_errors=True), None),
    ],
)
def test_code_beats_family_beats_werror(wanted: Settings, level: str | None) -> None:
    assert said(wanted, warning()) == ([(FIRST, level)] if level else [])


def test_errors_stay_errors() -> None:
    wanted = settings((Wish.ALLOW, FIRST), (Wish.ALLOW, "02"))
    assert said(wanted, warning(level=Level.ERROR)) == [(FIRST, "error")]


def test_werror_is_about_warnings_and_deny_about_remarks_too() -> None:
    remark = warning(OTHER, level=Level.REMARK)
    assert said(settings(all_errors=True), remark) == [(OTHER, "remark")]
    assert said(settings((Wish.DENY, OTHER)), remark) == [(OTHER, "error")]


@pytest.mark.parametrize("slug", sorted(levels.OFF_BY_DEFAULT))
def test_what_is_off_is_said_where_asked_for(slug: str) -> None:
    found = warning(slug)
    family = found.code.number[3:5]
    assert said(DEFAULT, found) == said(settings(all_errors=True), found) == []
    for word in (slug, family):
        assert said(settings((Wish.WARN, word)), found) == [(slug, "warning")]


def test_a_denied_warning_says_why_it_is_an_error() -> None:
    (by_all,) = apply([warning()], settings(all_errors=True))
    (by_name,) = apply([warning()], settings((Wish.DENY, FIRST)))
    assert by_all.notes == ("a warning, which `-Werror` makes an error",)
    assert by_name.notes == ("a warning, which `-D NKI0254` makes an error",)


@pytest.mark.parametrize(
    ("word", "help"),
    [
        ("output-not-returnd", "did you mean `output-not-returned`?"),
        ("NKI0299", "families are"),
        ("99", "families are 00, 01, 02, "),
        ("", "families are"),
    ],
)
def test_unknown_words_are_refused(word: str, help: str) -> None:
    with pytest.raises(UsageFailed) as failure:
        settings((Wish.ALLOW, word))
    (found,) = failure.value.diagnostics
    assert (found.code.slug, f"`{word}`" in found.message) == ("unknown-code", True)
    assert found.help.startswith(help)


def test_contradictions_are_refused_however_they_are_spelt() -> None:
    with pytest.raises(UsageFailed) as failure:
        settings((Wish.ALLOW, FIRST), (Wish.ALLOW, FIRST), (Wish.DENY, "0254"))
    assert "`-A NKI0254` and `-D NKI0254`" in str(failure.value)


def test_a_family_is_two_digits_and_a_code_four() -> None:
    assert selected("02", "x") == selected("nki02", "x") == "02"
    assert selected("0201", "x") == selected("unknown-name", "x") == "NKI0201"


# ---- comments ------------------------------------------------------------------------------------


def after(text: str, *found: Diagnostic, compiled: range = range(1, 20)) -> list[tuple[str, int]]:
    """Return the remaining warnings, with the lines of their places."""
    files = {"k.py": SourceFile("k.py", text)}
    kept = apply(found, DEFAULT, files, lambda: {("k.py", line) for line in compiled})
    return [(one.code.slug, one.primary.span.line) for one in kept if one.primary]


@pytest.mark.parametrize(
    "text",
    [
        "a\nb  # nkic: ignore[output-not-returned] why",
        "a\nb  # nkic: ignore[NKI0254]",
        "a\nb  # noqa  # nkic:ignore[ 0254 ]",
        "# nkic: ignore[NKI0254] why\nb",
    ],
)
def test_a_comment_takes_its_lines_warning_back(text: str) -> None:
    assert after(text, warning()) == []


def test_a_comment_alone_is_about_the_next_line_of_code() -> None:
    text = "# nkic: ignore[0254]\n\n# because\nx = 1\ny = 2"
    assert after(text, warning(line=4), warning(SECOND, 4), warning(line=5)) == [
        (SECOND, 4),
        (FIRST, 5),
    ]


def test_a_comment_behind_code_is_not_about_the_next_line() -> None:
    assert after("a  # nkic: ignore[0254]\nb", warning()) == [(FIRST, 2), ("unused-ignore", 1)]


def test_a_comment_on_any_line_of_a_call() -> None:
    text = "x\nf(\n    a,  # nkic: ignore[0254]\n)"
    assert after(text, warning(line=2, end=4)) == []


def test_several_codes_in_one_comment_are_used_one_by_one() -> None:
    text = "a\nb  # nkic: ignore[NKI0254, input-returned, unknown-nme]"
    files = {"k.py": SourceFile("k.py", text)}
    unused, unknown = apply([warning()], DEFAULT, files, lambda: {("k.py", 2)})
    assert unused.message == "line 2 gives no warning NKI0255 (input-returned) to ignore"
    assert unused.primary is not None
    assert files["k.py"].text_of(unused.primary.span) == "input-returned"
    assert unknown.help == "did you mean `unknown-name`?"


def test_a_comment_without_a_code_is_reported() -> None:
    assert after("# nkic: ignore\nb", warning()) == [(FIRST, 2), ("unused-ignore", 1)]


def test_errors_are_not_ignored() -> None:
    text = "a\nb  # nkic: ignore[0254]"
    assert after(text, warning(level=Level.ERROR)) == [(FIRST, 2), ("unused-ignore", 2)]


def test_an_ignore_of_an_allowed_warning_is_not_unused() -> None:
    files = {"k.py": SourceFile("k.py", "a\nb  # nkic: ignore[0254]")}
    wanted = settings((Wish.ALLOW, FIRST))
    assert apply([warning()], wanted, files, lambda: {("k.py", 2)}) == ()


def test_only_lines_that_were_compiled_have_unused_ignores() -> None:
    text = "a\nb  # nkic: ignore[0254]"
    assert after(text, compiled=range(2, 3)) == [("unused-ignore", 2)]
    assert after(text, compiled=range(3, 9)) == []  # possibly of another kernel
    assert apply([], DEFAULT, {"k.py": SourceFile("k.py", text)}) == ()  # not reached


def test_unused_ignores_are_warnings_like_others() -> None:
    files = {"k.py": SourceFile("k.py", "a  # nkic: ignore[0254]")}
    reached = {("k.py", 1)}
    (denied,) = apply([], settings(all_errors=True), files, lambda: reached)
    assert denied.level is Level.ERROR
    assert apply([], settings((Wish.ALLOW, "unused-ignore")), files, lambda: reached) == ()


@given(
    st.dictionaries(st.sampled_from([FIRST, SECOND, "02", "10"]), st.sampled_from(Wish)),
    st.booleans(),
    st.lists(
        st.builds(
            warning,
            st.sampled_from([FIRST, SECOND, OTHER]),
            st.integers(1, 3),
            st.sampled_from(Level),
        ),
        max_size=4,
    ),
    st.lists(st.sampled_from(["x", "x  # nkic: ignore[0254]", "# nkic: ignore[0255]"]), max_size=4),
)
def test_twice_is_once(
    wishes: dict[str, Wish], all_errors: bool, found: list[Diagnostic], lines: list[str]
) -> None:
    wanted = settings(*((w, name) for name, w in wishes.items()), all_errors=all_errors)
    files = {"k.py": SourceFile("k.py", "\n".join(lines))}
    once = apply(found, wanted, files, lambda: {("k.py", n) for n in range(5)})
    assert apply(once, wanted, files) == once
    errors = [one for one in found if one.level is Level.ERROR]
    assert [one for one in once if one in errors] == errors
