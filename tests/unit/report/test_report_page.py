"""Test the HTML report: inert, self-contained and reproducible; and its rendering in a browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base.source import SourceFile
from nkic.report.insight.verdict import insight
from nkic.report.page import parts
from nkic.report.page.page import page
from tests.harness.traced import HEAD, recorded, run, sample
from tests.unit.report.test_insight import NAIVE, naive
from tests.unit.report.test_report_views import seen

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


def record(kernel: str = "matmul") -> dict[str, Any]:
    """The part of a run's JSON that the page shows."""
    resources = {
        **{"sbuf_bytes": 1024, "sbuf_limit": 4096, "psum_banks": 1, "psum_limit": 8},
        "instructions": {"PE": 3, "ACT": 0},
    }
    return {
        **{"kernel": kernel, "target": "trn2", "id": "0" * 64, "cycles": 1200, "time_ns": 1000.0},
        **{"dma_bytes": 10, "resources": resources},
    }


def made(text: str = NAIVE) -> str:
    program = naive() if text == NAIVE else nkic.compile(SourceFile("k.py", HEAD + text)).executable
    kept = recorded(run(program))
    return page(insight(kept.trace, kept.again), record(), program.sources)


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
    text = page(found, record(EVIL), {path: SourceFile(path, f"{EVIL}\n" * 300)})
    assert EVIL not in text and "<img" not in text
    assert len(re.findall(r"<script", text)) == 2


def test_the_page_is_the_same_every_time() -> None:
    assert made() == made()


def test_every_instruction_is_on_the_page() -> None:
    found = seen("10_attention")
    text = page(found, record(), {})
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
    labelled = [a for tag, a in elements if tag in ("canvas", "section", "nav", "svg")]
    assert labelled and all(a.get("aria-label") for a in labelled)
    assert [a["tabindex"] for tag, a in elements if tag == "canvas"] == ["0", "0"]
    assert "load lhsT and rhs once and keep them in SBUF" in text
    assert "nisa.nc_matmul(dst=psum, stationary=a, moving=b" in text
    assert "No matrix products" in page(seen("01_tensor_add"), record(), {})


def test_the_critical_path_by_turn() -> None:
    found = seen("10_attention")
    ranked = parts.by_iteration(found)
    assert sum(time for _, time in ranked) == found.trace.end
    assert [time for _, time in ranked] == sorted((t for _, t in ranked), reverse=True)
    (line, iterations, spent), _ = ranked[0]
    text = page(found, record(), {})
    row = f"<td>{line}</td><td>{iterations}</td><td>{spent}</td>"
    assert row in text and re.fullmatch(r"(\w+=\d+ ?)+", iterations)


def test_triggers_are_on_the_page() -> None:
    found = seen("10_attention")
    (raw,) = re.findall(r'id="data">(.*?)</script>', page(found, record(), {}), re.S)
    data = json.loads(raw)
    times = np.frombuffer(base64.b64decode(data["triggers"]["time"]), "<f8")
    assert times.sum() == sum(event.trigger_hold for event in found.trace.events) > 0
    assert "SP" in [track["name"] for track in data["tracks"]]


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
    opened(browser, page(found, record(), {}), tmp_path)
    root = browser.execute_script("return document.documentElement.dataset.ready")
    assert int(root) == len(found.trace.events)
    assert ink(browser) > 5000
    assert browser.execute_script("return document.body.scrollWidth <= innerWidth")


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


def test_a_line_can_be_chosen_and_the_colours_changed(browser: Any, tmp_path: Path) -> None:
    opened(browser, made(), tmp_path)
    row = browser.find_element("css selector", "tr[data-line]")
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
    opened(browser, page(found, record(EVIL), {path: SourceFile(path, EVIL)}), tmp_path)
    assert browser.title != "owned"
    assert browser.find_element("tag name", "h1").text == EVIL


def test_the_verdict_is_that_of_the_run() -> None:
    kept = recorded(sample("06_matmul"))
    found = insight(kept.trace, kept.again)
    text = page(found, record(), {})
    assert asdict(found.verdict)["bound"] in text
