"""The documentation as a site: its order, its links, and the pages that are made from the code."""

import os
import posixpath
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nkic.base.diagnostics import codes
from nkic.machine.instructions import ROWS
from tests.site import man, pages
from tests.site.examples import kernel

PROJECT = Path(__file__).resolve().parents[1]
NAV = (PROJECT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
FROM_CODE = {"codes.md", "interface.md"}
# The tests that run the code of the pages to learn from.
RUN_BY = {
    "start.md": "tests/cli/test_readme.py",
    "walkthrough.md": "tests/test_walkthrough.py",
    "performance.md": "tests/test_performance_page.py",
    "debugging.md": "tests/test_command_pages.py",
    "migration.md": "tests/test_command_pages.py",
}


@pytest.fixture(scope="module")
def prose() -> dict[str, str]:
    return pages.prose()


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.M | re.S)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    fenced = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    heads = re.findall(r"(?m)^#+ (.*)$", fenced)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_every_page_has_one_place_in_the_order(prose: dict[str, str]) -> None:
    listed = re.findall(r"(?m)^ +- [^:\n]+: (\S+\.md)$", NAV)
    assert len(listed) == NAV.count(".md")
    written = {uri for uri in prose if not uri.startswith("files/")}
    assert sorted(listed) == sorted(written | FROM_CODE), "give a new page a place in mkdocs.yml"


def test_the_text_names_the_files_that_follow_it() -> None:
    """`file=NAME` is not shown where Markdown is read as it is, or on a page of a repository."""
    for page in (PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")):
        before, *blocks = re.split(r"(?m)^```(?=\w)", page.read_text("utf-8"))
        for block in blocks:
            name = re.match(r"\w+ file=(\S+)\n", block)
            assert name is None or f"`{name[1]}`" in before, f"{page.name}: {name[1]}"
            before = block.partition("\n```\n")[2]


def test_links_lead_somewhere(prose: dict[str, str]) -> None:
    made = {f"instructions/{name}.md" for name in ROWS} | FROM_CODE
    made |= {f"errors/{code.number}.md" for code in codes().values()}
    wrong, followed = [], 0
    for uri, text in prose.items():
        for _, _, target in pages.LINK.findall(without_code(text)):
            path, _, anchor = target.partition("#")
            if "://" in target or target == "...":
                continue
            page = posixpath.normpath(posixpath.join(posixpath.dirname(uri), path)) if path else uri
            there = page in {*prose, *made} or (PROJECT / "docs" / page).is_file()
            if not there or (anchor and anchor not in anchors(prose[page])):
                wrong.append((uri, target))
            followed += 1
    assert wrong == []
    assert followed > 300


def test_a_broken_link_stays_as_it_is_to_be_found() -> None:
    linked: set[str] = set()
    text = pages.written("[gone](gone.md) [log](benchmarks.md#log)", "docs/timing.md", linked)
    assert text == "[gone](gone.md) [log](benchmarks.md#log)"
    assert anchors("# A b, c!\n```\n# no\n```\n## The `x` of y\n") == {"a-b-c", "the-x-of-y"}


def test_mentions_become_links() -> None:
    linked: set[str] = set()
    text = "NKI0501 (docs/errors.md), `docs/errors.md`, [docs/tune.md](tune.md)\n    docs/neff.md\n"
    assert pages.written(text, "docs/timing.md", linked) == (
        "[NKI0501](errors/NKI0501.md) ([Messages](errors.md)), `docs/errors.md`, "
        f"[{pages.title('docs/tune.md')}](tune.md)\n    docs/neff.md\n"
    )
    outside = pages.written("[s](../samples/README.md) [k](../Makefile)", "docs/tune.md", linked)
    assert outside == "[s](samples.md) [k](files/Makefile.md)"
    assert linked == {"samples/README.md", "Makefile"}


def test_lists_are_as_the_generator_reads_them() -> None:
    text = "In turn:\n- a\n- b\n  more\n1. first:\n   - x\n   - y\n"
    made = pages.written(text, "docs/tune.md", set())
    assert made == "In turn:\n\n- a\n- b\n  more\n1. first:\n\n    - x\n    - y\n"


def test_code_to_learn_from_is_run() -> None:
    learn = NAV.partition("- Learn:")[2].partition("- How to:")[0]
    for page in re.findall(r": (\S+\.md)$", learn, re.M):
        source = PROJECT / "docs" / page
        if source.is_file() and "```python" in source.read_text("utf-8"):
            assert page in (PROJECT / RUN_BY[page]).read_text("utf-8")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_example_of_an_instruction_uses_it(name: str) -> None:
    text = kernel(name)
    compile(text, name, "exec")
    operator = {"scalar_compute": "+ 3", "device_print": "nl.device_print("}
    assert operator.get(name, f"{ROWS[name].called}(") in text


def test_the_page_of_an_instruction() -> None:
    page = pages.instruction("tensor_reduce")
    assert "`axis`: a tuple of ints" in page
    assert "| elements of `data` | 1 to 65535 | 1 to 65535 | 1 to 65535 |" in page
    assert re.search(r"types of `data` \| [^|]+ \| [^|]+ \| [^|]*float8_e8m0fnu", page)
    assert "Standing: documented" in page
    assert "| trn2, vector | 125 | 592 | 2,192 | 92 | 325 | 1,125 |" in page
    assert "nisa.tensor_reduce(dst=dst, data=data_tile, op=nl.add, axis=(1,))" in page
    assert "output_0  float32[128, 1]" in page


def test_pages_from_the_code() -> None:
    made = pages.error_pages()
    assert made.keys() == {"codes.md"} | {f"errors/{each.number}.md" for each in codes().values()}
    assert "[NKI0501](errors/NKI0501.md) | `sbuf-overflow` | A tensor does not" in made["codes.md"]
    assert made["errors/NKI0501.md"].startswith("# NKI0501 sbuf-overflow: A tensor does not fit")
    interface = pages.interface()
    assert "## run_ranks\n" in interface and "Raises `RunError`" in interface


def test_man_pages_are_the_help() -> None:
    made = man.pages()
    assert {"nkic.1", "nkic-evaluate.1", "nki-run.1", "nki-run-profile.1"} <= made.keys()
    text = made["nki-run-profile.1"]
    assert text.startswith('.TH NKI-RUN-PROFILE 1 "" "nkic ')
    assert ".SH REPORTS\n.nf\n  \\-\\-report KIND[=FILE]" in text
    assert "nki-run-profile - Run a kernel and show where its time goes" in text
    assert man.escaped(".x \\n") == "\\&.x \\en"
    for each in made.values():
        assert each.count(".nf\n") == each.count(".fi\n") and "Usage" not in each


class Loads(HTMLParser):
    """Collects what a page loads, and its viewport."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.viewport = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe") and given.get("src"):
            self.loads.append(str(given["src"]))
        if tag == "link" and given.get("rel") != "canonical":
            self.loads.append(str(given["href"]))
        if given.get("name") == "viewport":
            self.viewport = str(given["content"])


@pytest.mark.slow  # compiles and runs an example of every instruction: half a minute
def test_the_site(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="needs mkdocs-material: pip install '.[site]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    proxy = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")  # no network
    environ = {**os.environ, **proxy, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "WARNING" not in done.stderr
    made = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.html")}
    assert {f"instructions/{name}.html" for name in ROWS} <= made.keys()
    for uri in ("index.html", "performance.html", "instructions/nc_matmul.html"):
        text = made[uri].read_text("utf-8")
        page = Loads(text)
        assert page.loads and not [each for each in page.loads if re.match(r"\w+:|//", each)]
        assert page.viewport.startswith("width=device-width")
        assert 'data-md-color-scheme="slate"' in text and 'data-md-color-scheme="default"' in text
        assert "<p>|" not in text and "<p>```" not in text
        assert any(each.endswith("iframe-worker.js") for each in page.loads)
    assert (tmp_path / "iframe-worker.js").is_file() and (
        tmp_path / "search/search_index.js"
    ).is_file()
    index = (tmp_path / "search/search_index.json").read_text("utf-8")
    assert '"instructions/bn_aggr.html"' in index and '"errors/NKI0501.html"' in index
