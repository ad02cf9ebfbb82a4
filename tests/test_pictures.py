"""The pages' pictures show the current output of the commands. NKIC_BLESS=1 draws them again."""

import re
from pathlib import Path

import pytest

from tests import pictures
from tests.harness.bless import blessing

MOST = 40_000  # the size of a picture in bytes
_CELLS = re.compile(r"[drobtic?\s]+|path\s+[PAVGSD\s]+")  # causes of waits, and the path


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    return {**dict(pictures.pictures()), pictures.EDITOR: pictures.in_editor()}


def words(svg: str) -> set[str]:
    """Return the words of a picture, without those that change with the machine's figures: numbers,
    names of engines, and the height and waits of lanes at each time.
    """
    lines = pictures.texts(svg).split("\n")
    kept = "\n".join(line for line in lines if not _CELLS.fullmatch(line))
    return set(re.findall(r"[A-Za-z]{4,}", kept)) - {"POOL"}


@pytest.mark.parametrize("name", [*(p.name for p in pictures.PICTURES), pictures.EDITOR])
def test_pictures_are_up_to_date(drawn: dict[str, str], name: str) -> None:
    path = pictures.FOLDER / f"{name}.svg"
    if blessing():
        path.write_text(drawn[name], encoding="utf-8")
    kept = path.read_text("utf-8")
    assert words(kept) == words(drawn[name])
    assert len(kept.encode()) < MOST
    assert "@font-face" not in kept and "<image" not in kept and "url(http" not in kept


def test_the_pictures_show_what_they_are_called(drawn: dict[str, str]) -> None:
    assert "error[NKI0301]" in pictures.texts(drawn["error"])
    verdict = pictures.texts(drawn["verdict"]).replace("\n", " ")
    assert "less time: declare a, b (matmul.py:10, 11) inside the loop" in verdict
    assert "height: busy; waiting for d data" in pictures.texts(drawn["timeline"])
    told = pictures.texts(drawn[pictures.EDITOR]).replace("\n", " ")
    assert re.search(r"Here , on trn2:.* nc_matmul *keeps tensor busy for \d+ ns, 32 times", told)
    assert re.search(r"accumulate=\(k > 0 \)\) *[\d,]+ cycles · \d+% · PE", told)
    assert re.search(r"nkic: matmul: [\d,]+ cycles .*, bound by PE, SBUF \d+%, PSUM 8/8", told)


def test_a_page_shows_every_picture() -> None:
    pages = {
        "README.md": "docs/pictures/verdict.svg",
        "docs/start.md": "pictures/error.svg",
        "docs/performance.md": "pictures/timeline.svg",
        "docs/editor.md": "pictures/editor.svg",
    }
    for page, picture in pages.items():
        assert f"]({picture})" in (pictures.PROJECT / page).read_text("utf-8"), page
    drawn = {*(picture.name for picture in pictures.PICTURES), pictures.EDITOR}
    assert {Path(picture).stem for picture in pages.values()} == drawn
