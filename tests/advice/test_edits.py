"""What edits make of a kernel's text, to follow an advice."""

from dataclasses import replace

import pytest

from nkic.base.source import SourceFile
from nkic.migrate.edits import edited
from nkic.report.critical import Line
from tests.advice.ladders import GATING_STEPS, own_tiles
from tests.advice.test_following import NORM, answer
from tests.harness.traced import HEAD


def test_declarations_move_as_a_person_moves_them() -> None:
    lines = [i for i, line in enumerate(NORM.splitlines(), 1) if line.startswith("    t = nl.")]
    numbers = ",".join(str(lines[0] + i) for i in range(6))
    (text, *_) = edited(SourceFile("k.py", NORM), answer(f"buffers:k.py:{numbers}"))
    assert text == HEAD + own_tiles


def test_a_comment_moves_with_its_declaration() -> None:
    text = "t = nl.ndarray(s)  # one\nfor i in r:\n    f(t)\n"
    moved = "for i in r:\n    t = nl.ndarray(s)  # one\n    f(t)\n"
    assert [*edited(SourceFile("k.py", text), answer("buffers:k.py:1"))] == [moved]


def test_a_tile_of_an_inner_loop_moves_there() -> None:
    text = HEAD + GATING_STEPS[0].text
    line = next(i for i, each in enumerate(text.splitlines(), 1) if each.startswith("    left ="))
    (inner, outer) = edited(SourceFile("k.py", text), answer(f"buffers:k.py:{line}"))
    assert "range(0, d, 128):\n            left = nl.ndarray" in inner
    assert "range(0, tokens, 128):\n        left = nl.ndarray" in outer


def kept(text: str, *lines: int) -> list[str]:
    """Return the texts in which these lines of k.py load once."""
    given = replace(answer("load-once:x"), loads=tuple(Line("k.py", line) for line in lines))
    return [*edited(SourceFile("k.py", text), given)]


LOOPS = """\
for i in r:
    for j in r:
        t = nl.ndarray(s)
        nisa.dma_copy(dst=t, src=x[PART])
        f(t)
"""


def test_a_load_is_kept_by_what_tells_it_apart() -> None:
    whole, rows = kept(LOOPS.replace("PART", "j"), 4)
    assert whole == (
        "t_kept = {}\n"
        "for i in r:\n"
        "    for j in r:\n"
        "        if j not in t_kept:\n"
        "            t = nl.ndarray(s)\n"
        "            nisa.dma_copy(dst=t, src=x[j])\n"
        "            t_kept[j] = t\n"
        "        t = t_kept[j]\n"
        "        f(t)\n"
    )
    assert rows.startswith("for i in r:\n    t_kept = {}\n    for j in r:\n        if j not in")
    both, _ = kept(LOOPS.replace("PART", "i, j"), 4)
    assert "if (i, j) not in t_kept:" in both and "t = t_kept[i, j]" in both


@pytest.mark.parametrize("part", ["y[i]", "y[nl.ds(i, 2)]", "nl.ds(i, 2)", "slice(i, 2)"])
def test_a_load_is_told_apart_by_what_its_slices_depend_on(part: str) -> None:
    """Slices and tensors are no keys of a dictionary."""
    text = LOOPS.replace("PART", "q").replace("    for j", f"    q = {part}\n    for j")
    assert all("if i not in t_kept:" in new for new in kept(text, 5)[:1])
    carried = LOOPS.replace("PART", "q").replace("f(t)", f"q = {part}")
    assert "if q not in t_kept:" in kept(carried, 4)[0]
    twice = text.replace("f(t)", "q = None")
    assert "if q not in t_kept:" in kept(twice, 5)[0]


def test_what_a_function_loads_is_kept_by_its_caller() -> None:
    text = "for i in r:\n    for j in r:\n        t = load(x[j])\n        f(t)\n"
    whole, _ = kept(text, 3)
    assert (
        "        if j not in t_kept:\n            t = load(x[j])\n            t_kept[j] = t\n"
        in whole
    )
    assert kept(text.replace("f(t)", "t = g()"), 3) == []  # another tile of that name


def test_a_load_that_is_always_the_same_moves_out_of_the_loops() -> None:
    before, inside = kept(LOOPS.replace("PART", "0"), 4)
    moved = "t = nl.ndarray(s)\nnisa.dma_copy(dst=t, src=x[0])\n"
    assert before == f"{moved}for i in r:\n    for j in r:\n        f(t)\n"
    assert inside.startswith("for i in r:\n    t = nl.ndarray(s)\n    nisa.dma_copy(")


@pytest.mark.parametrize(
    "text",
    [
        "t = nl.ndarray(s)\nfor i in r:\n    nisa.dma_copy(dst=t, src=x[i])\n",  # one tile for all
        "for i in r:\n    t = g()\n    nisa.dma_copy(dst=t[0], src=x)\n",  # a part of a tile
        "t = nl.ndarray(s)\n\nnisa.dma_copy(dst=t, src=x)\n",  # no loop
        "for i in r:\n    t = a(); t = b()\n    nisa.dma_copy(dst=t, src=x)\n",  # two tiles
        "for i in r:\n    t = a()\n    assert i; nisa.dma_copy(dst=t, src=x)\n",  # not its own line
        "for i in r:\n    t = a()\n    nisa.dma_copy(dst=t, src=x); f(t)\n",
        "for i in r:\n    t = a(); assert i\n    nisa.dma_copy(dst=t, src=x)\n",
    ],
)
def test_what_is_not_kept(text: str) -> None:
    assert kept(text, 3) == []


def test_a_comment_moves_with_its_load() -> None:
    (text,) = kept("for i in r:\n    t = a()  # 1\n    nisa.dma_copy(dst=t, src=x)  # 2\n", 3)
    assert text == "t = a()  # 1\nnisa.dma_copy(dst=t, src=x)  # 2\nfor i in r:\n"


@pytest.mark.parametrize("name", ["q: int = i", "f(q := i)", "q = i"])
def test_every_assignment_tells_loads_apart(name: str) -> None:
    text = f"for i in r:\n    {name}\n    t = a()\n    nisa.dma_copy(dst=t, src=x[q])\n"
    assert all("if q not in t_kept:" in new for new in kept(text, 4))


BLOCKS = """\
def f():
    for m in range(0, M, T):
        for n in range(N):
            # one sum
            psum = nl.ndarray(s)
            for k in range(8):
                a = nl.ndarray(s)
                b = nl.ndarray(s)
                nisa.dma_copy(dst=a, src=x[k, m])
                nisa.dma_copy(dst=b, src=y[k, n])
                nisa.nc_matmul(dst=psum, stationary=a, moving=b)
            store(m, n, psum)
    return out
"""


def blocks(text: str, ways: str = "m*4,n*2") -> list[str]:
    loads = tuple(Line("k.py", line) for line in (9, 10))
    given = replace(answer(f"block:{ways}"), loads=loads)
    return [*edited(SourceFile("k.py", text), given)]


def test_loops_are_blocked() -> None:
    wide, short = blocks(BLOCKS)
    head = """\
def f():
    for m_block in range(0, M, 4 * T):
        a_kept = {}
        for n_block in range(0, N, 2):
            opened = {}
            for m in range(m_block, m_block + 4 * T, T):
                for n in range(n_block, n_block + 2, 1):
                    # one sum
                    psum = nl.ndarray(s)
                    opened[m, n] = psum
            for k in range(8):
                b_kept = {}
                for m in range(m_block, m_block + 4 * T, T):
                    for n in range(n_block, n_block + 2, 1):
                        psum = opened[m, n]
                        if (k, m) not in a_kept:
"""
    tail = """\
                        nisa.nc_matmul(dst=psum, stationary=a, moving=b)
            for m in range(m_block, m_block + 4 * T, T):
                for n in range(n_block, n_block + 2, 1):
                    psum = opened[m, n]
                    store(m, n, psum)
    return out
"""
    assert wide.startswith(head) and wide.endswith(tail) and short.endswith(tail)
    assert "if n not in b_kept:" in wide
    assert "            for k in range(8):\n                a_kept = {}\n" in short


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for n in range(N):", "for n in tiles:"),  # no range
        ("    for n in range(N):", "    g(m)\n        for n in range(N):"),  # no nest
        ("            store(m", "            for i in r:\n                store(m"),  # two loops
        ("dst=b, src", "dst=b[0], src"),  # no tile of its own
        ("for m in range(0, M, T):", "for i in range(0, M, T):"),  # another loop
        ("for k in range(8):", "for k in nl.affine_range(8):"),  # traced once by Beta 1
    ],
)
def test_what_is_not_blocked(old: str, new: str) -> None:
    text = BLOCKS.replace(old, new)
    assert text != BLOCKS and blocks(text) == []


CALLS = {
    "isa.dma_copy(dst=a, src=b)": "isa.dma_copy(dst=a, src=b, engine=isa.engine.scalar)",
    "isa.dma_copy(\n    dst=a,\n    src=b,\n)": "isa.dma_copy(\n    dst=a,\n    src=b,\n"
    "    engine=isa.engine.scalar,\n)",
    "isa.dma_copy(dst=a, src=f(b))": "isa.dma_copy(dst=a, src=f(b), engine=isa.engine.scalar)",
    "isa.dma_copy(dst=a, engine=isa.engine.sync, src=b)": "isa.dma_copy(dst=a, "
    "engine=isa.engine.scalar, src=b)",
    "isa.tensor_copy(dst=a, src=f(b))": "isa.tensor_copy(dst=a, src=f(b), "
    "engine=isa.engine.scalar)",
}


@pytest.mark.parametrize("before", ["", "\f# a form feed\u2028ends no line\r\n"])
@pytest.mark.parametrize("call", CALLS)
def test_keywords_are_added_to_a_call(call: str, before: str) -> None:
    source = SourceFile("k.py", f"{before}{call}\n")
    given = answer(f"trigger-scalar:k.py:{2 if before else 1}", "engine=nisa.engine.scalar")
    assert [*edited(source, given)] == [f"{before}{CALLS[call]}\n"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trigger-scalar:k.py:1", "nisa.dma_copy(a, b); nisa.dma_copy(c, d)"),
        ("trigger-scalar:other.py:1", "nisa.dma_copy(dst=a, src=b)"),
        ("load-once:x", "nisa.dma_copy(dst=a, src=b)"),
        ("fuse:k.py:1:3", "nisa.activation(dst=y, op=nl.exp, data=t)\nx = 1\nnisa.f(dst=r)"),
        ("fuse:k.py:1:2", "nisa.activation(y, nl.exp, t)\nnisa.tensor_reduce(dst=r)"),
        ("fuse:k.py:2:3", "if w:\n  nisa.activation(dst=y, op=f, data=y)\nnisa.f(dst=r, data=y)"),
        ("buffers:k.py:1", "t = nl.ndarray(s)\nf(t)"),
        ("buffers:k.py:1", "t = nl.ndarray(s); n = 2\nfor i in r:\n    f(t, n)"),
        *(
            ("join:k.py:1:2", text)
            for text in (
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m)  # why\n"
                "nisa.activation(dst=e, op=nl.exp, data=c)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m)\n"
                "nisa.activation(dst=e, op=nl.exp,  # why\n    data=c)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.power, operand0=m)\n"
                "nisa.activation(dst=e, op=nl.exp, data=c)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m, reverse0=True)\n"
                "nisa.activation(dst=e, op=nl.exp, data=c)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m)\n"
                "nisa.activation(dst=e, op=nl.exp, data=c, scale=2.0)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m)\n"
                "nisa.activation(dst=e, op=nl.exp, data=t, bias=c)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m)\n"
                "nisa.tensor_tensor(dst=e, data1=t, data2=c, op=nl.subtract)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m)\n"
                "nisa.tensor_tensor(dst=e, data1=c, data2=c, op=nl.add)",
                "nisa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m, op1=nl.add, "
                "operand1=n)\nnisa.tensor_scalar(dst=e, data=c, op0=nl.add, operand0=m)",
            )
        ),
    ],
)
def test_what_only_a_person_can_follow(name: str, text: str) -> None:
    given = answer(name, "engine=nisa.engine.scalar")
    assert [*edited(SourceFile("k.py", f"{text}\n"), given)] == []


JOINED = {
    (
        "isa.tensor_scalar(dst=c, data=t, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=b)",
        "isa.activation(dst=e, op=nl.exp, data=c)",
    ): ["isa.activation(dst=e, op=nl.exp, data=t, scale=2.0, bias=b)"],
    (
        "isa.tensor_scalar(dst=c, data=t, op0=nl.subtract, operand0=m)",
        "isa.activation(dst=e, op=nl.exp, data=c)",
    ): [
        "negated = nl.ndarray(m.shape, nl.float32)",
        "isa.tensor_scalar(dst=negated, data=m, op0=nl.multiply, operand0=-1.0)",
        "isa.activation(dst=e, op=nl.exp, data=t, bias=negated)",
    ],
    (
        "isa.tensor_scalar(dst=c, data=t, op0=nl.subtract, operand0=1.5, op1=None)",
        "isa.activation(dst=e, op=nl.exp, data=c, bias=None, scale=1.0)",
    ): ["isa.activation(dst=e, op=nl.exp, data=t, bias=-(1.5), scale=1.0)"],
    (
        "isa.tensor_scalar(dst=c, data=t, op0=nl.subtract, operand0=m)",
        "isa.tensor_scalar(dst=e, data=c, op0=nl.multiply, operand0=r)",
    ): [
        "isa.tensor_scalar(dst=e, data=t, op0=nl.subtract, operand0=m, op1=nl.multiply, operand1=r)"
    ],
    (
        "isa.tensor_scalar(dst=c, data=t, op0=nl.subtract, operand0=m)",
        "isa.tensor_tensor(dst=e, data1=u, data2=c, op=nl.multiply)",
    ): [
        "isa.scalar_tensor_tensor(dst=e, data=t, op0=nl.subtract, operand0=m, op1=nl.multiply, "
        "operand1=u)"
    ],
}


@pytest.mark.parametrize(("first", "second"), JOINED)
def test_one_instruction_does_what_two_did(first: str, second: str) -> None:
    """What is declared between stays; a tile that nothing uses any more goes."""
    lines = ["def f():", "c = nl.ndarray(s)", first, "e = nl.ndarray(s)", second, "nl.store(o, e)"]
    (new,) = edited(SourceFile("k.py", "\n    ".join(lines) + "\n"), answer("join:k.py:3:5"))
    after = ["def f():", "e = nl.ndarray(s)", *JOINED[first, second], "nl.store(o, e)"]
    assert new == "\n    ".join(after) + "\n"


def test_a_tile_that_others_read_stays() -> None:
    first = "isa.tensor_scalar(dst=c, data=t, op0=nl.add, operand0=m)"
    lines = ["def f():", "c = nl.ndarray(s)", first, "isa.activation(dst=e, op=nl.exp, data=c)"]
    text = "\n    ".join([*lines, "nl.store(o, c)"]) + "\n"
    (new,) = edited(SourceFile("k.py", text), answer("join:k.py:3:4"))
    assert "    c = nl.ndarray(s)\n" in new


SUMS = """\
for m in r:
    total = nl.ndarray(s)
    nisa.memset(dst=total, value=0.0)
    for k in r:
        for j in range(2):
            t = load(k, j, m)
            p = nl.ndarray(s, buffer=nl.psum)  # one bank
            nisa.nc_matmul(dst=p, stationary=t, moving=t)
            ADD
    store(m, total)
"""
ADD = "nisa.tensor_tensor(dst=total, data1=total, data2=p, op=nl.add)"
ALL_IN_PSUM = """\
    p = nl.ndarray(s, buffer=nl.psum)  # one bank
    for k in r:
        for j in range(2):
            t = load(k, j, m)
            nisa.nc_matmul(dst=p, stationary=t, moving=t)
"""


def in_psum(text: str) -> list[str]:
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "tensor_tensor" in each)
    return [*edited(SourceFile("k.py", text), answer(f"accumulate:k.py:{line}"))]


def test_products_are_added_in_psum() -> None:
    """The tile is declared where the sum's loops begin, and the sum is made where they end."""
    (text,) = in_psum(SUMS.replace("ADD", ADD))
    start = SUMS[: SUMS.index("    for k")]
    assert text == f"{start}{ALL_IN_PSUM}    {ADD}\n    store(m, total)\n"


@pytest.mark.parametrize("is_else", [False, True])
def test_the_copy_of_the_first_product_becomes_that_of_the_sum(is_else: bool) -> None:
    copy = "nisa.tensor_copy(dst=total, src=p)"
    first, second = (copy, ADD) if is_else else (ADD, copy)
    choice = f"if k + j > 0:\n                {first}\n            else:\n                {second}"
    (text,) = in_psum(SUMS.replace("ADD", choice))
    assert text.endswith(f"{ALL_IN_PSUM}    {copy}\n    store(m, total)\n")


def test_new_lines_end_and_begin_as_those_of_the_file() -> None:
    text = SUMS.replace("ADD", ADD.replace(", ", ",\n                "))
    (plain,) = in_psum(text)
    (other,) = in_psum(text.replace("\n", "\r\n"))
    assert other == plain.replace("\n", "\r\n")
    tabbed = LOOPS.replace("PART", "j").replace("    ", "\t")
    assert kept(tabbed, 4) == [
        each.replace("    ", "\t") for each in kept(LOOPS.replace("PART", "j"), 4)
    ]


def test_a_sum_that_a_copy_begins_stays_in_the_loop_of_its_products() -> None:
    """The copy begins it anew in each iteration of the loop around."""
    copy = "nisa.tensor_copy(dst=total, src=p)"
    choice = f"if j:\n                {ADD}\n            else:\n                {copy}"
    (text,) = in_psum(SUMS.replace("ADD", choice))
    assert "    for k in r:\n        p = nl.ndarray" in text
    assert f"moving=t)\n        {copy}\n    store" in text


def test_a_last_line_without_an_end() -> None:
    text = SUMS.replace("ADD", ADD).replace("    store(m, total)\n", "").rstrip()
    (plain,) = in_psum(text)
    assert in_psum(text.replace("\n", "\r\n")) == [plain.replace("\n", "\r\n")]


def test_a_sum_that_each_iteration_begins_stays_in_its_loop() -> None:
    text = SUMS.replace("ADD", ADD).replace(
        "    for k in r:\n", "    for k in r:\n        f(total)\n"
    )
    (text,) = in_psum(text)
    assert "f(total)\n        p = nl.ndarray(s, buffer=nl.psum)  # one bank\n        for j" in text
    assert f"moving=t)\n        {ADD}\n    store(m" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ADD, ADD.replace("total", "total[j]")),  # another sum for each product
        (ADD, ADD.replace("=total", "=other").replace("dst=other", "dst=total")),  # no sum
        (ADD, ADD.replace("data2=p", "data2=total")),
        (ADD, f"if j:\n                {ADD}"),  # not every product
        (ADD, f"{ADD}; f()"),
        (ADD, f"{ADD}\n            f(p)"),
        (ADD, f"{ADD}\n            f(total)"),
        ("p = nl.ndarray(s, buffer=nl.psum)", "p = ones[j]"),
        ("            p = nl.ndarray(s, buffer=nl.psum)  # one bank\n", ""),
        ("t = load(k, j, m)", "s = t = load(k, j, m)"),
        (ADD, f"{ADD}\n        else:\n            f(total)"),
    ],
)
def test_what_psum_does_not_add(old: str, new: str) -> None:
    assert in_psum(SUMS.replace("ADD", ADD).replace(old, new)) == []


COLUMNS = """\
for i in range(0, R, 128):
    for j in range(4, C // 64, 2):
        t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        s = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i : i + 128, START])
        f(t[:, 0:1], s)
"""


@pytest.mark.parametrize(
    ("start", "wide"),
    [
        ("j * 64 : (j + 1) * 64", "j * 64 : j * 64 + 512"),
        ("nl.ds(j * 64, 64)", "nl.ds(j * 64, 512)"),
        ("slice(j * 64, j * 64 + 64)", "slice(j * 64, j * 64 + 512)"),
        ("j << 6 : j + 1 << 6", "j << 6 : (j << 6) + 512"),
    ],
)
def test_tiles_get_wider(start: str, wide: str) -> None:
    """Rows, single columns and the loop around it stay as they are."""
    given = answer("larger-tiles:k.py:5:64:8")
    (text,) = edited(SourceFile("k.py", COLUMNS.replace("START", start)), given)
    changed = (
        COLUMNS.replace("START", wide).replace("2):", "16):").replace("(128, 64)", "(128, 512)")
    )
    assert text == changed
    named = (
        COLUMNS.replace("nisa.dma", f"c = {start}\n        nisa.dma") if "(" in start[:6] else ""
    )
    for text in edited(SourceFile("k.py", named.replace("START", "c")), given):
        assert f"c = {wide}" in text and "x[i : i + 128, c]" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(4, C // 64, 2)", "tiles"),
        ("f(t[", "if j == 8:\n            g(t)\n        f(t["),  # for these columns alone
        ("f(t[", "f(j, t["),
    ],
)
def test_a_loop_whose_iterations_differ_stays(old: str, new: str) -> None:
    text = COLUMNS.replace(old, new).replace("START", "j * 64 : (j + 1) * 64")
    assert [*edited(SourceFile("k.py", text), answer("larger-tiles:k.py:5:64:8"))] == []


def test_a_declaration_between_stays_in_front() -> None:
    """The sum's tile is often declared where it is needed."""
    first, tile = "    nisa.activation(dst=y, op=nl.exp, data=t)\n", "    r = nl.ndarray(s)\n"
    text = f"if 1:\n{first}{tile}    nisa.tensor_reduce(dst=r, op=nl.add, data=y, axis=1)\n"
    (new,) = edited(SourceFile("k.py", text), answer("fuse:k.py:2:4"))
    assert new.startswith(f"if 1:\n{tile}{first[:-2]}, reduce_op=nl.add, reduce_res=r, ")


PIECES = """\
for i in r:
    for k in range(0, d, 128):
        t = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)  # a piece
        nisa.dma_copy(dst=t, src=x[i, PART])  # of a row
        f(t)
"""


def in_one(text: str) -> list[str]:
    return [*edited(SourceFile("k.py", text), answer("whole-rows:k.py:4"))]


@pytest.mark.parametrize(
    ("loop", "part", "end"),
    [
        ("range(0, d, 128)", "k : k + 128", "d"),
        ("range(n)", "k * W : (k + 1) * W", "n * W"),
        ("range(d // 128)", "k * 128:k * 128 + 128", "(d // 128) * 128"),
    ],
)
def test_pieces_of_a_row_are_loaded_at_once(loop: str, part: str, end: str) -> None:
    (text,) = in_one(PIECES.replace("range(0, d, 128)", loop).replace("PART", part))
    assert text == (
        "for i in r:\n"
        f"    t_row = nl.ndarray((128, {end}), dtype=x.dtype, buffer=nl.sbuf)  # a piece\n"
        f"    nisa.dma_copy(dst=t_row, src=x[i, 0 : {end}])\n"
        f"    for k in {loop}:\n"
        f"        t = t_row[:, {part}]  # of a row\n"
        "        f(t)\n"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(0, d", "range(128, d"),
        ("range(0, d, 128)", "tiles"),
        ("x[i, k : k + 128]", "x[k, k : k + 128]"),
        ("x[i, k : k + 128]", "x[i, k : k + 128, 0]"),
        ("x[i, k : k + 128]", "x[i, 2 + k : k + 130]"),
        ("x[i, k : k + 128]", "x[i, : k]"),
        ("f(t)", "i = f(t)"),
        ("(128, 128)", "(128, 1, 128)"),
        ("(128, 128)", "()"),
        ("(128, 128)", "shape"),
    ],
)
def test_what_is_not_one_row(old: str, new: str) -> None:
    assert in_one(PIECES.replace("PART", "k : k + 128").replace(old, new)) == []
