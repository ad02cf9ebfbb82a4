"""Test the HTML report: inert, self-contained and reproducible; and its rendering in a browser."""

import base64
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base.source import SourceFile
from nkic.machine.targets import TRN2
from nkic.report import page, run_report
from nkic.report.costs import edges
from nkic.report.critical import Spent, trusted
from nkic.report.lanes import markdown
from nkic.report.page import coloured
from nkic.report.page import page as page_page
from nkic.report.run_report import InputRow, RunReport
from nkic.report.verdict import insight
from tests.harness.traced import HEAD, recorded, run, sample
from tests.unit.report.test_insight import NAIVE, naive
from tests.unit.report.test_report_views import seen

TRUST = trusted({"dma.engine_rate": -0.9}, TRN2)
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


def reported(kernel: str = "matmul") -> RunReport:
    """A run's report, with the part that the page shows."""
    resources = {
        **{"sbuf_bytes": 1024, "sbuf_limit": 4096, "psum_banks": 1, "psum_limit": 8},
        "instructions": {"PE": 3, "ACT": 0},
    }
    return RunReport(
        kernel=kernel,
        target="trn2",
        id="0" * 64,
        cycles=1200,
        time_ns=1000.0,
        engines={},
        instructions=3,
        dma_bytes=10,
        precise_fp=True,
        accumulate="measured",
        resources=resources,
        inputs=[InputRow("lhsT", "float32", (512, 256), "npz")],
        outputs=[],
        compare=[],
        launch_ns=14_000.0,
        trust=TRUST,
    )


def record() -> dict[str, Any]:
    return run_report.record(reported())


def made(text: str = NAIVE) -> str:
    program = naive() if text == NAIVE else nkic.compile(SourceFile("k.py", HEAD + text)).executable
    kept = recorded(run(program))
    return page_page(insight(kept.trace, kept.again), reported(), program.sources)


class _Seen(HTMLParser):
    """Collects elements with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_nothing_is_fetched() -> None:
    text = made()
    assert "http:" not in text and "https:" not in text and "@import" not in text
    elements = _Seen(text).found
    for _, attributes in elements:
        assert not {"src", "srcset", "action", "onclick", "onload"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    assert {tag for tag, _ in elements}.isdisjoint({"link", "iframe", "img", "object", "base"})


def test_the_policy_allows_this_script_alone() -> None:
    text = made()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(sha256(body.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_names_cannot_become_markup() -> None:
    found = seen("06_matmul")
    path = next(line.path for line in found.accounts.by_line if line.number)
    text = page_page(found, reported(EVIL), {path: SourceFile(path, f"{EVIL}\n" * 300)})
    assert EVIL not in text and "<img" not in text
    assert len(re.findall(r"<script", text)) == 2


def test_the_page_is_the_same_every_time() -> None:
    assert made() == made()


def test_every_instruction_is_on_the_page() -> None:
    found = seen("10_attention")
    text = page_page(found, reported(), {})
    (raw,) = re.findall(r'id="data">(.*?)</script>', text, re.S)
    data = json.loads(raw)

    def column(name: str, kind: str) -> Any:
        return np.frombuffer(base64.b64decode(data["events"][name]), kind)

    events = found.trace.events
    assert column("start", "<f8").tolist() == [event.start for event in events]
    assert column("time", "<f8").tolist() == [event.free - event.start for event in events]
    names = [data["names"][n] if n >= 0 else None for n in column("name", "<i4")]
    assert names == [event.record.row and event.record.row.name for event in events]
    stalls = [max(found.accounts.stalls(e), key=lambda p: p[1], default=("", 0)) for e in events]
    assert [data["causes"][n] for n in column("cause", "u1")] == [cause for cause, _ in stalls]
    assert column("wait", "<f8").tolist() == [time for _, time in stalls]
    for memory in data["memory"]:
        live_ranges = [
            one for one in found.live_ranges if one.buffer.value.upper() == memory["name"]
        ]
        sizes = np.frombuffer(base64.b64decode(memory["bytes"]), "<f8")
        assert sizes.tolist() == [life.bytes for life in live_ranges]


def test_tables_and_labels() -> None:
    text = made()
    elements = _Seen(text).found
    assert [a["aria-hidden"] for _, a in elements if a.get("id") == "pinned"] == ["true"]
    labelled = [a for tag, a in elements if tag in ("canvas", "section", "nav", "svg")]
    assert [a for a in labelled if not a.get("aria-label")] == [{"id": "strip"}]  # in "pinned"
    assert [a.get("tabindex") for tag, a in elements if tag == "canvas"] == ["0", "0", None]
    rows = re.findall(r"<tr\b[^>]*>(.*?)</tr>", text, re.S)
    for row in rows:  # a row is a row, and a cell of it names it
        assert 'scope="row"' in row or 'scope="col"' in row or "<td>in " in row
    assert not re.search(r"<(tr|td|th|li)\b[^>]*\b(role|tabindex)=", text)
    assert "load lhsT and rhs once and keep them in SBUF" in text
    assert "nisa.nc_matmul(dst=psum, stationary=a, moving=b" in text
    assert "No matrix products" in page_page(seen("01_tensor_add"), reported(), {})


def test_the_critical_path_by_turn() -> None:
    found = seen("10_attention")
    ranked = page.by_iteration(found)
    assert sum(time for _, time in ranked) == found.trace.end
    assert [time for _, time in ranked] == sorted((t for _, t in ranked), reverse=True)
    (line, iterations, spent), _ = ranked[0]
    text = page_page(found, reported(), {})
    row = rf'<a href="#(line-\d+-\d+)">{re.escape(line)}</a></th><td>{iterations}</td><td>{spent}<'
    (target,) = re.findall(row, text)
    assert f'id="{target}"' in text and re.fullmatch(r"(\w+=\d+ ?)+", iterations)
    (more,) = re.findall(r"<summary>and (\d+) more</summary>(<table.*?</table>)", text)
    assert int(more[0]) == len(ranked) - page.MAX_CRITICAL == more[1].count("<tr>") - 1


def test_triggers_are_on_the_page() -> None:
    found = seen("10_attention")
    (raw,) = re.findall(r'id="data">(.*?)</script>', page_page(found, reported(), {}), re.S)
    data = json.loads(raw)
    times = np.frombuffer(base64.b64decode(data["triggers"]["time"]), "<f8")
    marks = np.frombuffer(base64.b64decode(data["path"]["stream"]), "<u2")
    (sync,) = [track["stream"] for track in data["tracks"] if track["name"] == "SP"]
    held = [number for number, s in enumerate(found.path) if s.spent is Spent.TRIGGER]
    assert held and set(marks[held]) == {sync}
    assert times.sum() == sum(event.trigger_hold for event in found.trace.events) > 0
    assert "SP" in [track["name"] for track in data["tracks"]]


def test_reports_say_how_far_to_trust_them_and_how_to_repeat_them() -> None:
    found, run = seen("01_tensor_add"), reported()
    notes = found.trace.executable.meta
    said = (
        "about 15 us: kernel 1.00 us + launch about 14 us",
        f"likely within {TRUST.percent} %",
        TRUST.checked,
        "lhsT float32[512, 256] (npz)",
        "trn2, 1 core",
        "of nkic's order (-O1, -O2), which may change the author's",
        "machine 123abc",
        "float32 is kept between instructions",
        "nki-run k.neff --fill 'randn(0)'",
        f"{notes['producer']}, as NKI {notes['nki']}",
        f"nkic {nkic.__version__}",
        "0" * 64,
    )
    run = replace(run, machine="123abc", precise_fp=False)
    command = "nki-run k.neff --fill 'randn(0)'"
    on_page = unescape(page_page(found, run, {}, None, command))
    in_markdown = unescape(markdown(found, run, None, command)).replace("\\", "")
    for words in said:
        assert words in on_page and words in in_markdown, words
    assert page_page(found, run, {}, None, command) == page_page(found, run, {}, None, command)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            'for i in range(8):  # <b>\n    x = """a\nb"""',
            [
                '<i class="word">for</i> i <i class="word">in</i> range(<i class="number">8</i>):'
                '  <i class="comment"># &lt;b&gt;</i>',
                '    x = <i class="text">&quot;&quot;&quot;a</i>',
                '<i class="text">b&quot;&quot;&quot;</i>',
            ],
        ),
        (
            "if x < 2:\r\n    (<y",
            ['<i class="word">if</i> x &lt; <i class="number">2</i>:', "    (&lt;y"],
        ),
        ('s = """<', ["s = &quot;&quot;&quot;&lt;"]),
        ("a = \x00<", ["a = \\x00&lt;"]),
    ],
)
def test_words_of_the_source_have_colours(text: str, lines: list[str]) -> None:
    """Also of texts that are not Python: without colours, but whole and escaped."""
    assert coloured(SourceFile("k.py", text)) == lines


def test_lines_without_text_say_how_to_give_it() -> None:
    kept = recorded(run(naive()))
    without = page_page(insight(kept.trace, kept.again), reported(), {})
    assert without.count("run with --source FILE") == 1
    assert "run with --source FILE" not in made()


def test_hostile_command_lines_stay_text() -> None:
    found, command = seen("01_tensor_add"), f"nki-run '{EVIL}\n| x |' `a`"
    assert "<img" not in page_page(found, reported(), {}, None, command)
    text = markdown(found, reported(), None, command)
    assert "<img" not in text and "`" not in text
    (row,) = [line for line in text.splitlines() if line.startswith("| command |")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3


def test_places_of_the_verdict_are_links() -> None:
    text = made()
    (verdict,) = re.findall(r'<div class="verdict">(.*?)</div>', text, re.S)
    links = re.findall(r'<a href="#(line-0-(\d+))">k\.py:(\d+)</a>', verdict)
    assert len(links) >= 3
    for target, number, words in links:
        assert number == words
        (row,) = re.findall(rf'<tr id="{target}".*?</tr>', text, re.S)
        assert f">{number}<" in row


# ---- colours ---------------------------------------------------------------------------------

CSS = Path(page.__file__).with_name("page.css").read_text("utf-8")
ENGINES = ("tensor", "scalar", "vector", "gpsimd", "sync", "dma")
OWNERS = ("owner-1", "owner-2", "owner-3", "owner-4", "owner-5", "owner-rest")


def palettes() -> dict[str, dict[str, str]]:
    """Return the colours of the light page, and of the dark one, as requested and as preferred."""
    blocks = re.findall(r":root(\S*) \{\n\s*color-scheme.*?\}|not.*? \{\n(.*?)\}", CSS, re.S)
    assert len(blocks) == 3
    found = re.findall(r"\{\n((?:\s+(?:color-scheme[^;]*;|--)[^\n]*\n)+)\s*\}", CSS)
    light, preferred, chosen = (dict(re.findall(r"--([\w-]+): (#\w{6})", one)) for one in found)
    return {"light": light, "preferred": preferred, "chosen": chosen}


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "preferred", "chosen"])
def test_colours_have_the_contrast_of_wcag_aa(theme: str) -> None:
    colours = palettes()[theme]
    assert colours.keys() == palettes()["light"].keys()
    texts = [
        *((front, back) for front in ("front", "soft", "link") for back in ("back", "fill")),
        ("front", "bar"),
        ("back", "link"),
        *((engine, "back") for engine in ENGINES),  # labels in bars
    ]
    for one, other in texts:
        assert contrast(colours[one], colours[other]) >= 4.5, (one, other)
    shapes = [(shape, "fill") for shape in (*ENGINES, *OWNERS, "span")]
    shapes += [(shape, "back") for shape in ("path", "hot", *OWNERS)]
    for one, other in shapes:
        assert contrast(colours[one], colours[other]) >= 3, (one, other)


def test_both_dark_themes_are_the_same() -> None:
    assert palettes()["preferred"] == palettes()["chosen"] != palettes()["light"]


def test_memory_has_colours_of_its_own() -> None:
    for colours in palettes().values():
        used = [colours[name] for name in (*ENGINES, *OWNERS, "path")]
        assert len({*used}) == len(used) or colours["sync"] == colours["soft"]


# ---- in a browser --------------------------------------------------------------------------

FLAGS = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync"),
    *("disable-background-networking", "disable-component-update", "window-size=1300,1000"),
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium here")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    user = tmp_path_factory.mktemp("user")
    for word in (*FLAGS, f"user-data-dir={user}"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield found
    found.quit()


def opened(browser: Any, text: str, folder: Path) -> None:
    (folder / "report.html").write_text(text, encoding="utf-8")
    browser.get((folder / "report.html").as_uri())
    said = [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]
    assert said == []  # no error, and nothing that the policy rejected


def ink(browser: Any) -> int:
    """Count pixels of the timeline that differ from the pixel at its corner."""
    script = """
        const canvas = document.getElementById("timeline");
        const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let count = 0;
        for (let i = 0; i < all.length; i += 4) count += all[i] !== all[0] || all[i+1] !== all[1];
        return count;"""
    return int(browser.execute_script(script))


def settled(browser: Any) -> None:
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )


def test_a_browser_draws_it(browser: Any, tmp_path: Path) -> None:
    found = seen("10_attention")
    opened(browser, page_page(found, reported(), {}), tmp_path)
    root = browser.execute_script("return document.documentElement.dataset.ready")
    assert int(root) == len(found.trace.events)
    assert ink(browser) > 5000
    assert browser.execute_script("return document.body.scrollWidth <= innerWidth")


@contextmanager
def sized(browser: Any, width: int) -> Iterator[None]:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# The short words of tables that are broken over two lines: `machin` and `e`.
BROKEN = """
    const texts = [...document.querySelectorAll("td, th")].flatMap((cell) => [...cell.childNodes]);
    return texts.filter((node) => node.nodeType === Node.TEXT_NODE).flatMap((node) => {
        const words = [...node.data.matchAll(/(?<!\\S)[a-z]{2,9}(?!\\S)/g)];
        return words.filter((word) => {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            return range.getClientRects().length > 1;
        }).map(String);
    });"""


@pytest.mark.parametrize("width", [390, 1280])
def test_no_width_scrolls_sideways(browser: Any, tmp_path: Path, width: int) -> None:
    with sized(browser, width):
        found = seen("06_matmul")
        command = f"nki-run {'x' * 300}"
        opened(browser, page_page(found, reported("k" * 100), {}, None, command), tmp_path)
        script = "return [document.documentElement.scrollWidth, innerWidth]"
        reached, inner = browser.execute_script(script)
        assert reached <= inner == width
        assert browser.execute_script(BROKEN) == []


def test_keys_work_before_anything_has_the_focus(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    chain = pytest.importorskip("selenium.webdriver").ActionChains(browser)
    chain.send_keys("]").perform()
    assert "dma_copy in k.py" in browser.find_element("id", "told").text
    browser.find_element("id", "in").click()  # a button has the focus
    chain.send_keys("m").perform()
    measured = browser.find_element("id", "told").text
    whole = run(naive()).time_ns / 1000
    (half,) = re.findall(
        r"^([\d.]+) us, [\d,]+ cycles, from [\d.]+ us to [\d.]+ us; busy:", measured
    )
    assert float(half) == pytest.approx(whole / 2, rel=0.01)


def wheel(browser: Any, **how: object) -> bool:
    """Turn the wheel over the timeline; return whether the page may scroll."""
    script = """
        const how = {deltaY: 100, bubbles: true, cancelable: true, ...arguments[0]};
        return document.getElementById("timeline").dispatchEvent(new WheelEvent("wheel", how));"""
    return bool(browser.execute_script(script, how))


def test_the_wheel_scrolls_the_page_and_zooms_on_request(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    assert wheel(browser)
    assert not wheel(browser, ctrlKey=True)
    assert not wheel(browser, deltaX=200)


def test_a_span_is_measured_by_dragging(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    browser.find_element("id", "measure").click()
    canvas = browser.find_element("id", "timeline")
    chain = pytest.importorskip("selenium.webdriver").ActionChains(browser)
    chain.move_to_element_with_offset(canvas, -100, 0).click_and_hold()
    chain.move_by_offset(200, 0).release().perform()
    words = browser.find_element("id", "told").text
    (time,) = re.findall(r"^([\d.]+) us, ", words)
    width = browser.execute_script("return arguments[0].clientWidth", canvas) - 74
    assert float(time) == pytest.approx(run(naive()).time_ns / 1000 * 200 / width, rel=0.02)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_timeline_stays_in_view_below_it(browser: Any, tmp_path: Path, width: int) -> None:
    with sized(browser, width):
        opened(browser, made(), tmp_path)
        strip = browser.find_element("id", "pinned")
        assert not strip.is_displayed()
        row = browser.find_element("css selector", "tr.costs th button")
        browser.execute_script("arguments[0].scrollIntoView({block: 'end'})", row)
        settled(browser)
        assert strip.is_displayed()
        row.click()
        settled(browser)
        assert re.fullmatch(
            r"k\.py:\d+: [\d,]+ instructions, from [\d.]+ us to [\d.]+ us",
            browser.find_element("id", "strip-told").text,
        )


def test_memory_is_drawn_against_its_size(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    script = """
        const canvas = document.getElementById("memory"), pen = canvas.getContext("2d");
        const all = pen.getImageData(100, 22, canvas.width - 120, 110).data;
        let rows = new Set();
        for (let i = 0; i < all.length; i += 4)
            if (Math.max(all[i], all[i+1], all[i+2]) - Math.min(all[i], all[i+1], all[i+2]) > 40)
                rows.add(Math.floor(i / 4 / (canvas.width - 120)));
        return rows.size;"""
    part = browser.execute_script(script)
    assert part < 20  # of 110 rows: the tiles take a small part of SBUF
    button = browser.find_element("id", "scale")
    button.click()
    settled(browser)
    assert button.get_attribute("aria-pressed") == "true"
    assert browser.execute_script(script) > 80


def test_keys_zoom_and_follow_the_critical_path(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    canvas = browser.find_element("id", "timeline")
    whole = ink(browser)
    canvas.send_keys("]")
    told = browser.find_element("id", "told").text
    assert re.match(
        r"dma_copy in k\.py:\d+ \(m=0 n=0 k=0\); from 0 us, [\d,]+ cycles, result after", told
    )
    assert told.endswith("on the critical path")
    canvas.send_keys("+++")
    settled(browser)
    assert ink(browser) != whole
    canvas.send_keys("0")
    settled(browser)
    assert abs(ink(browser) - whole) < whole / 10
    assert browser.find_element("id", "told").get_attribute("aria-live") == "polite"


def test_a_search_shows_what_it_finds(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    search, told = browser.find_element("id", "search"), browser.find_element("id", "told")
    browser.find_element("id", "timeline").send_keys("/")
    assert browser.switch_to.active_element == search and search.get_attribute("value") == ""
    search.send_keys("DMA_copy in k.py")
    found = re.match(r"dma_copy in k\.py: (\d+) instructions, from 0 us to ", told.text)
    assert found is not None and int(found[1]) > 1
    search.send_keys("\n")
    first = told.text
    assert re.match(r"dma_copy in k\.py:\d+ .*from 0 us", first)
    search.send_keys("\n")
    assert told.text.startswith("dma_copy in k.py:") and told.text != first
    search.send_keys("m0")  # no keys of the timeline
    assert told.text == "dma_copy in k.pym0: no instruction"
    search.send_keys("\ue00c")  # Escape
    assert told.text == "" and search.get_attribute("value") == ""


PICTURE = "return document.getElementById('timeline').toDataURL()"


def test_arrows_lead_from_and_to_what_depends(browser: Any, tmp_path: Path) -> None:
    found = recorded(run(naive()))
    drawn = page.columns(insight(found.trace, found.again))
    after, needs = (
        np.frombuffer(base64.b64decode(drawn["edges"][name]), "<i4") for name in ("after", "needs")
    )
    assert (needs < after).all() and len({*zip(after, needs, strict=True)}) == len(after) > 0
    opened(browser, made(), tmp_path)
    search, told = browser.find_element("id", "search"), browser.find_element("id", "told")
    search.send_keys("nc_matmul\n")
    counts = re.search(r"; needs (\d+), needed by (\d+)", told.text)
    assert counts is not None and int(counts[1]) >= 2  # both of its operands
    settled(browser)
    drawn_with = browser.execute_script(PICTURE)
    assert len(browser.find_elements("id", "arrows")) == 1
    text = made()
    without = re.sub(r'"edges": ?\{.*?\}', '"edges": {"after": "", "needs": ""}', text)
    assert without != text
    opened(browser, without, tmp_path)
    browser.find_element("id", "search").send_keys("nc_matmul\n")
    settled(browser)
    assert browser.execute_script(PICTURE) != drawn_with
    told = browser.find_element("id", "told").text
    assert "needs" not in told and not browser.find_elements("id", "arrows")


def test_too_many_dependences_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = recorded(run(naive()))
    number = len(edges(found.trace, insight(found.trace, found.again).accounts.uses))
    for most, kept in ((number, True), (number - 1, False)):
        monkeypatch.setattr(page, "MOST_EDGES", most)
        drawn = page.columns(insight(found.trace, found.again))["edges"]
        assert bool(drawn["after"]) is bool(drawn["needs"]) is kept


def test_a_line_can_be_chosen_and_the_colours_changed(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    row = browser.find_element("css selector", "tr.costs th button[data-line]")
    row.send_keys("\n")
    assert row.get_attribute("aria-pressed") == "true"
    script = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(script)
    browser.find_element("id", "theme").click()
    assert {before, browser.execute_script(script)} == {"rgb(255, 255, 255)", "rgb(22, 24, 28)"}
    settled(browser)
    assert ink(browser) > 5000


def test_hostile_names_stay_text(browser: Any, tmp_path: Path) -> None:
    found = seen("06_matmul")
    path = next(line.path for line in found.accounts.by_line if line.number)
    opened(browser, page_page(found, reported(EVIL), {path: SourceFile(path, EVIL)}), tmp_path)
    assert browser.title != "owned"
    assert browser.find_element("tag name", "h1").text == EVIL


def test_the_verdict_is_that_of_the_run() -> None:
    kept = recorded(sample("01_tensor_add"))
    found = insight(kept.trace, kept.again)
    text = page_page(found, reported(), {})
    assert asdict(found.verdict)["bound"] in text
