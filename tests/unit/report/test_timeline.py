"""Test the picture of a run: well-formed, small, and as long as the run."""

from xml.etree import ElementTree

import pytest

from nkic.report.timeline import LEFT, RIGHT, WIDTH, Stretch, svg

SVG = "{http://www.w3.org/2000/svg}"
SPAN = WIDTH - LEFT - RIGHT


def drawn(stretches: list[Stretch], total: float) -> tuple[list[str], list[ElementTree.Element]]:
    """Return the texts of a picture, and its bars, which have a title."""
    root = ElementTree.fromstring(svg(stretches, total, "k: <1> & 2"))
    texts = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    bars = [one for one in root.iter(f"{SVG}rect") if one.find(f"{SVG}title") is not None]
    return texts, bars


def told(bar: ElementTree.Element) -> str:
    return "".join(bar.itertext())


def test_lanes_and_bars() -> None:
    texts, bars = drawn(
        [
            Stretch("core0.dma4", 0, 250, "dma_copy", "k.py:3"),
            Stretch("core0.vector", 500, 1000, "tensor_tensor", "<k>.py:4"),
        ],
        1000,
    )
    assert texts[0] == "k: <1> & 2" and texts[-2:] == ["vector", "dma4"]
    assert [told(bar) for bar in bars] == [
        "tensor_tensor <k>.py:4: 0.500 to 1.000 us",
        "dma_copy k.py:3: 0.000 to 0.250 us",
    ]
    assert [float(bar.get("width", "")) for bar in bars] == pytest.approx(
        [SPAN / 2, SPAN / 4], 1e-3
    )
    assert float(bars[0].get("x", "")) == pytest.approx(LEFT + SPAN / 2, 1e-3)


def test_cores_are_named_where_there_are_several() -> None:
    two = [Stretch(f"core{core}.tensor", 0, 10, "nc_matmul") for core in (1, 0)]
    assert drawn(two, 10)[0][-2:] == ["core0.tensor", "core1.tensor"]


def test_neighbours_are_one_bar() -> None:
    many = [Stretch("core0.vector", n, n + 0.9, "iota") for n in range(100_000)]
    _, (bar,) = drawn(many, 100_000)
    assert told(bar) == "100,000 instructions, the first is iota: 0.000 to 100.000 us"
    apart = [Stretch("core0.vector", n * 100, n * 100 + 10, "iota") for n in range(10)]
    assert len(drawn(apart, 1000)[1]) == 10


@pytest.mark.parametrize(
    ("total_ns", "marks"),
    [
        (0, ["0 us"]),
        (47_360, ["0 us", "10 us", "20 us", "30 us", "40 us"]),
        (900, ["0 us", "0.2 us", "0.4 us", "0.6 us", "0.8 us"]),
    ],
)
def test_marks_of_time(total_ns: float, marks: list[str]) -> None:
    assert drawn([], total_ns)[0][1:] == marks
