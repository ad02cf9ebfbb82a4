"""Sessions of an editor with the language server."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.workspace import PositionCodec

from nkic.base.diagnostics import UsageFailed
from nkic.compiler import pipeline
from nkic.machine.targets import Target
from nkic.program.program import Instruction
from nkic.serve import lsp, lsp_child
from nkic.serve.lsp_answers import Answer, Text, status
from tests.harness.commands import process
from tests.lsp.editor import PATIENCE, Editor, fixed, position

BLOCK = """\
# /// nkic
# kernel = "add"
# [args]
# a = "float32[128, 512]"
# b = "float32[128, 512]"
# ///
"""
KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def add(a, b):
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    a_tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    b_tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a_tile, src=a)
    nisa.dma_copy(dst=b_tile, src=b)
    nisa.tensor_tensor(dst=a_tile, data1=a_tile, data2=b_tile, op=nl.add)
    nisa.dma_copy(dst=c, src=a_tile)
    return c
"""
RIGHT = BLOCK + KERNEL
WRONG = RIGHT.replace("op=nl.add", "op=nl.addd")
LONG = 30  # seconds that no check takes
WHOLE = types.Range(types.Position(0, 0), types.Position(1000, 0))
ERROR = types.DiagnosticSeverity.Error


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with Editor(tmp_path_factory.mktemp("kernels"), debounce=20, seconds=LONG) as editor:
        yield editor
    assert editor.code == 0


def starts(found: list[types.Diagnostic]) -> list[tuple[Any, int, int]]:
    return [(d.code, d.range.start.line, d.range.start.character) for d in found]


def actions(editor: Editor, name: str, at: types.Range = WHOLE) -> list[types.CodeAction]:
    params = types.CodeActionParams(editor.at(name), at, types.CodeActionContext([]))
    found: list[types.CodeAction] = editor.await_(
        editor.client.text_document_code_action_async(params)
    )
    return found


def edits(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    assert action.edit is not None and action.edit.changes is not None
    return list(action.edit.changes[uri])


def test_an_error_appears_moves_is_fixed_and_goes(editor: Editor) -> None:
    assert editor.open("add.py", RIGHT) == []
    (error,) = editor.change("add.py", WRONG)
    assert starts([error]) == [("NKI0204", 18, 66)]
    assert error.severity is ERROR and "`nki.language` has no `addd`" in error.message
    moved = WRONG.replace("import nki\n", "# one more line 😀\nimport nki\n", 1)
    assert starts(editor.change("add.py", moved)) == [("NKI0204", 19, 66)]
    action = actions(editor, "add.py")[0]
    assert action.title == "write `add`" and action.kind == types.CodeActionKind.QuickFix
    right = fixed(moved, edits(action, editor.uri("add.py")))
    assert right == moved.replace("addd", "add")
    assert editor.change("add.py", right) == []


def test_a_position_is_in_the_editors_units(editor: Editor) -> None:
    text = WRONG.replace("    nisa.tensor_tensor(", "    '😀😀'; nisa.tensor_tensor(")
    found = editor.open("units.py", text)
    assert starts(found) == [("NKI0204", 18, 66 + len("'😀😀'; ") + 2)]


def test_a_kernel_without_types_asks_for_a_block(editor: Editor) -> None:
    (asks,) = editor.open("untyped.py", KERNEL)
    assert asks.severity is types.DiagnosticSeverity.Information
    assert asks.range.start == position(KERNEL, "add(a")
    (action,) = actions(editor, "untyped.py")
    assert action.title == "add a types block"
    typed = fixed(KERNEL, edits(action, editor.uri("untyped.py")))
    assert typed == BLOCK.replace("128, 512", "128,512") + KERNEL
    assert editor.change("untyped.py", typed) == []
    wrong = KERNEL.replace("nisa.dma_copy(dst=b_tile, src=b)", "open('x')")
    assert "NKI0201" in {d.code for d in editor.change("untyped.py", wrong)}


def test_of_several_kernels_each_takes_the_types_that_it_has(editor: Editor) -> None:
    second = KERNEL[KERNEL.index("@nki.jit") :].replace("add(a, b)", "twice(a)")
    second = second.replace("src=b)", "src=a)").replace("op=nl.add", "op=nl.addd")
    both = RIGHT.replace('# kernel = "add"\n', "") + "\n\n" + second
    assert [d.code for d in editor.open("both.py", both)] == ["NKI0204"]
    named = RIGHT + "\n\n" + second
    (asks,) = editor.change("both.py", named)  # the block's types are those of `add`
    assert asks.severity is types.DiagnosticSeverity.Information and "`twice`" in asks.message


def test_an_unsaved_sibling_is_read_and_checked_with_its_importer(editor: Editor) -> None:
    (editor.folder / "helper.py").write_text("def size():\n    return 128\n")
    text = RIGHT.replace("import nki\n", "import nki\nfrom helper import size\n", 1)
    text = text.replace("nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)", "tile(a)")
    text = text.replace(
        "@nki.jit",
        "def tile(a):\n    return nl.ndarray((size(), 512), a.dtype, buffer=nl.sbuf)\n\n\n@nki.jit",
    )
    assert editor.open("user.py", text) == []
    editor.open("helper.py", "def size():\n    return 256\n")
    editor.change("helper.py", "def size():\n    return 512\n")
    editor.await_(symbols(editor, "user.py"))
    (error,) = editor.found("user.py")
    assert "dimension 0 of (512, 512) needs 512" in error.message
    editor.change("helper.py", "def size():\n    return 128\n")
    editor.await_(symbols(editor, "user.py"))
    assert editor.found("user.py") == []


def symbols(editor: Editor, name: str) -> Any:
    params = types.DocumentSymbolParams(editor.at(name))
    return editor.client.text_document_document_symbol_async(params)


def renamed(editor: Editor, name: str, at: types.Position, new: str) -> list[types.TextEdit]:
    params = types.RenameParams(editor.at(name), at, new)
    found = editor.await_(editor.client.text_document_rename_async(params))
    return list(found.changes[editor.uri(name)])


SCOPES = """
def scale(tile, by=2.0):
    def inner(tile):
        return [by for by in (tile, by)]
    by = by * 2
    return inner(tile), f"{by}", lambda by: by

def other(by):
    return scale(by, by=by)
"""


def test_a_name_is_renamed_where_it_means_the_same(editor: Editor) -> None:
    text = RIGHT + SCOPES
    editor.open("rename.py", text)
    tile = renamed(editor, "rename.py", position(text, "a_tile, src=a)"), "left")
    assert fixed(text, tile) == text.replace("a_tile", "left")
    by = renamed(editor, "rename.py", position(text, "by = by * 2"), "factor")
    assert (
        fixed(SCOPES, moved(by, RIGHT))
        == """
def scale(tile, factor=2.0):
    def inner(tile):
        return [by for by in (tile, factor)]
    factor = factor * 2
    return inner(tile), f"{factor}", lambda by: by

def other(by):
    return scale(by, factor=by)
"""
    )
    function = renamed(editor, "rename.py", position(text, "scale("), "grow")
    assert fixed(text, function) == text.replace("scale(", "grow(")


def moved(edits: list[types.TextEdit], before: str) -> list[types.TextEdit]:
    """Return edits of a text from which `before` was taken."""
    lines = before.count("\n")
    for edit in edits:
        edit.range.start.line -= lines
        edit.range.end.line -= lines
    return edits


@pytest.mark.parametrize(
    ("words", "new", "why"),
    [
        ("a, b):", "left", "cannot rename"),  # a kernel's argument: the block names it, too
        ("nisa", "isa", "cannot rename"),
        ("c = nl", "b_tile", "used in this file already"),
        ("c = nl", "in", "no name"),
    ],
)
def test_what_is_not_renamed(editor: Editor, words: str, new: str, why: str) -> None:
    editor.open("rename.py", RIGHT)
    with pytest.raises(JsonRpcException, match=why):
        renamed(editor, "rename.py", position(RIGHT, words), new)


def test_symbols_are_kernels_and_what_is_inside_them(editor: Editor) -> None:
    text = RIGHT.replace("    c = nl", "    def inner():\n        pass\n\n    c = nl", 1)
    editor.open("symbols.py", text)
    (kernel,) = editor.await_(symbols(editor, "symbols.py"))
    assert (kernel.name, kernel.detail) == ("add", "kernel")
    assert [child.name for child in kernel.children] == ["inner"]
    editor.change("symbols.py", text + "(")
    (kernel,) = editor.await_(symbols(editor, "symbols.py"))  # as before the error
    assert kernel.name == "add"


def hovered(editor: Editor, name: str, at: types.Position) -> str:
    params = types.HoverParams(editor.at(name), at)
    found = editor.await_(editor.client.text_document_hover_async(params))
    return found.contents.value if found else ""


def test_hover_shows_instructions_and_tensors(editor: Editor) -> None:
    editor.open("hover.py", RIGHT)
    page = hovered(editor, "hover.py", position(RIGHT, "tensor_tensor", 3))
    assert page.startswith("```python\ntensor_tensor(dst, data1, data2, op")
    assert "trn1 and newer, since NKI beta2" in page and "- `op`: an operator" in page
    tiles = ", ".join(f"`{name}` float32[128, 512]" for name in ("dst", "data1", "data2"))
    here = r"\n\*\*Here\*\*, on trn2:\n\n- `tensor_tensor` keeps vector busy for (\d+) ns "
    here += rf"\({re.escape(tiles)}\)\n\ndst = "
    assert (told := re.search(here, page)) and 512 / 0.96 < int(told[1]) < 650, page
    copied = hovered(editor, "hover.py", position(RIGHT, "nisa.dma_copy(dst=b_tile", 6))
    moved = (
        r"- `dma_copy` moves data for [\d,]+ ns, and triggering it keeps sync busy for [\d,]+ ns \("
    )
    moved += r"`dst` float32\[128, 512\], `src` float32\[128, 512\] in hbm\)"
    assert re.search(moved, copied)
    assert "Here" not in hovered(editor, "hover.py", position(RIGHT, "nl.add", 4))
    tile = hovered(editor, "hover.py", position(RIGHT, "data1=a_tile", 8))
    assert tile.startswith("**a_tile**: `float32[128, 512]` in sbuf\n\n128 partitions of 2.0 KiB")
    assert "address 0 in partitions from 0" in tile and "line 17 to its last in line 20" in tile
    assert hovered(editor, "hover.py", position(RIGHT, "return")) == ""


def test_hover_counts_the_forms_of_a_call(editor: Editor) -> None:
    line = "    nisa.tensor_tensor(dst=a_tile, data1=a_tile, data2=b_tile, op=nl.add)\n"
    cut = line.replace("_tile", "_tile[0:128, 0:n]").replace("    nisa", "        nisa")
    text = RIGHT.replace(line, "    for n in (8, 16, 8, 32, 64, 128):\n" + cut)
    editor.open("forms.py", text)
    page = hovered(editor, "forms.py", position(text, "tensor_tensor"))
    here = page.partition("**Here**, on trn2:\n\n")[2].split("\n")
    assert re.fullmatch(r"- .* for \d+ ns, 2 times \(`dst` float32\[128, 8\], .*\)", here[0])
    assert "[128, 16]" in here[1] and "[128, 32]" in here[2] and here[3] == "- and 2 other forms"
    fewer = text.replace("32, 64, 128", "32, 64")
    editor.change("forms.py", fewer)
    page = hovered(editor, "forms.py", position(fewer, "tensor_tensor"))
    assert "- and 1 other form\n" in page
    twice = editor.change("forms.py", "# a line more\n" + text)
    assert twice == []
    assert "Here" in hovered(editor, "forms.py", position("\n" + text, "tensor_tensor"))
    editor.configure(debounce=1000)
    other = "\n" + text.replace("nl.add)", "nl.subtract)")
    editor.type("forms.py", other)  # nothing is known of this text yet
    assert "Here" not in hovered(editor, "forms.py", position(other, "tensor_tensor"))
    editor.configure(debounce=20)


def test_forms_that_differ_in_numbers_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "    nisa.tensor_tensor(dst=a_tile, data1=a_tile, data2=b_tile, op=nl.add)\n"
    scaled = "    nisa.tensor_scalar(dst=a_tile, data=b_tile, op0=nl.add, operand0=1.0 + i)\n"
    text = RIGHT.replace(line, f"    for i in range(9):\n    {scaled}")
    form, made = lsp_child._form, list[str]()

    def counted(instruction: Instruction, target: Target) -> Any:
        made.append(instruction.row.name)
        return form(instruction, target)

    monkeypatch.setattr(lsp_child, "_form", counted)
    answer = lsp_child.checked("/nowhere/k.py", text.encode(), {}, LONG, 0, {})
    (told,) = [call["forms"] for call in answer["costs"] if call["at"][0] == 20]
    assert [each["number"] for each in told] == [9] and made.count("tensor_scalar") == 1


def test_costs_are_of_the_files_own_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    helper = "import nki.isa as nisa\n" + "\n" * 99
    helper += "def zero(tile):\n    nisa.memset(dst=tile, value=0)\n"
    text = RIGHT.replace("import nki\n", "import nki\nfrom helper import zero\n", 1)
    text = text.replace("    return c", "    zero(b_tile)\n    return c")
    (tmp_path / "helper.py").write_text(helper)
    answer = lsp_child.checked(str(tmp_path / "user.py"), text.encode(), {}, LONG, 0, {})
    assert [call["at"][0] for call in answer["costs"]] == [18, 19, 20, 21]


def test_no_cost_is_computed_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> Any:
        answer = lsp_child.checked("/nowhere/k.py", RIGHT.encode(), {}, LONG, 0, {})
        return answer["costs"], len(answer["tensors"])

    now, compile_source = time.monotonic(), pipeline.compile_source
    assert [len(told()[0]), told()[1]] == [4, 5]

    def late(*given: Any) -> None:
        compile_source(*given)
        monkeypatch.setattr(time, "monotonic", lambda: now + 2 * LONG)

    monkeypatch.setattr(pipeline, "compile_source", late)
    assert told() == ([], 5)


BETA1 = """\
# /// nkic
# [args]
# a = "float32[128, 512]"
# ///
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def double(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(a), 2.0))
    return out
"""
CALLS = {"store": "dma_copy", "multiply": "tensor_scalar", "load": "dma_copy"}


def test_hover_shows_the_cost_of_calls_of_beta1(editor: Editor) -> None:
    assert editor.open("beta1.py", BETA1) == []
    told = {name: hovered(editor, "beta1.py", position(BETA1, f"nl.{name}", 4)) for name in CALLS}
    for name, instruction in CALLS.items():
        assert re.match(rf"\*\*Here\*\*, on trn2:\n\n- `{instruction}` ", told[name]), told[name]
    sum = BETA1.replace("nl.multiply(nl.load(a), 2.0)", "tile * 2.0")
    sum = sum.replace("    nl.store", "    tile = nl.load(a)\n    nl.store")
    assert editor.change("beta1.py", sum) == []
    both = hovered(editor, "beta1.py", position(sum, "tile * 2.0"))
    assert both.startswith("**tile**: `float32[128, 512]` in sbuf")
    assert "\n\n**Here**, on trn2:\n\n- `tensor_scalar` " in both


def test_the_status_is_time_and_memory(editor: Editor) -> None:
    editor.open("status.py", RIGHT)
    told = editor.status("status.py", "nkic: about ")
    line = r"add: estimated at [\d.]+ us; its busiest engine needs [\d.]+ us; SBUF 2%, PSUM 0/8"
    assert re.fullmatch(line, told)
    editor.change("status.py", WRONG)
    assert editor.status("status.py", "nkic: 1 error") == ""
    editor.change("status.py", RIGHT)
    editor.status("status.py", "nkic: about ")
    (editor.folder / "status.py").write_text(RIGHT)
    editor.command("nkic.run", "status.py")
    assert editor.status("status.py", "nkic: add: ").startswith("add: estimated at ")
    editor.change("status.py", RIGHT + "# another text\n")
    editor.status("status.py", "nkic: about ")
    editor.close("status.py")
    editor.open("after.py", "")
    own = [status for status in editor.statuses if status[0] == editor.uri("status.py")]
    assert own[-1][1:] == ("", "")


def test_the_status_after_a_run_is_of_the_kernel_that_ran() -> None:
    kernels = [
        {"kernel": name, "ns": 1, "busiest_ns": 0, "sbuf": [used, 100], "psum": [0, 8]}
        for name, used in (("one", 10), ("two", 20))
    ]
    answer = Answer(1, Text("", PositionCodec()), kernels=kernels)
    assert status(answer, "")[0].endswith("us, SBUF 10%, PSUM 0/8")
    ran = "two: 5 cycles (1.00 us), bound by dma"
    assert status(answer, ran)[0] == f"nkic: {ran}, SBUF 20%, PSUM 0/8"


def test_types_are_those_of_the_last_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NKIC_CACHE", "1")
    monkeypatch.setenv("NKIC_CACHE_DIR", str(tmp_path / "cache"))
    text = KERNEL.replace("add(a, b)", "add(a, b, factors)")
    (tmp_path / "k.py").write_text(text)
    words = ["k.py", "--const", "factors=[1, 2]", "--target", "trn1", "--arg", "b=f32[128,256]"]
    with Editor(tmp_path, debounce=20, seconds=LONG) as editor:
        assert process(*words, cwd=tmp_path).returncode != 0, "the type of `a` is missing"
        (asks,) = editor.open("k.py", text)
        assert asks.severity is types.DiagnosticSeverity.Information
        assert process(*words, "--arg", "a=f32[128,256]", cwd=tmp_path).returncode == 0
        other = ("--arg", "a=f32[8,16]", "--arg", "b=f32[8,16]", "--const", "factors=3")
        assert process("k.py", *other, "--no-cache", cwd=tmp_path).returncode == 0
        assert editor.change("k.py", "# one\n" + text) == []
        page = hovered(editor, "k.py", position("\n" + text, "tensor_tensor"))
        assert "**Here**, on trn1" in page and "[128, 256]" in page
        (action,) = [a for a in actions(editor, "k.py") if "last command" in a.title]
        typed = fixed("# one\n" + text, edits(action, editor.uri("k.py")))
        assert editor.change("k.py", typed) == []
        assert not [a for a in actions(editor, "k.py") if "last command" in a.title]
        # Parameters that were added since: one block, of what the command said and of examples.
        (asks,) = editor.change("k.py", text.replace("factors)", "factors, bias, *, n: int)"))
        assert "no type for `bias`, `n`" in asks.message
        (action,) = [a for a in actions(editor, "k.py") if "types block" in a.title]
        (edit,) = edits(action, editor.uri("k.py"))
        assert edit.new_text == (
            '# /// nkic\n# kernel = "add"\n# target = "trn1"\n# [args]\n# a = "float32[128,256]"\n'
            '# b = "float32[128,256]"\n# bias = "float32[128,256]"\n'
            "# [consts]\n# factors = [1, 2]\n# n = 1\n# ///\n"
        )
        # What a block cannot say.
        words[words.index("factors=[1, 2]")] = "factors=(1, 2)"
        assert process(*words, "--arg", "a=f32[128,256]", cwd=tmp_path).returncode == 0
        assert editor.change("k.py", text) == []
        assert not [a for a in actions(editor, "k.py") if "last command" in a.title]
    assert typed == (
        '# /// nkic\n# kernel = "add"\n# target = "trn1"\n# [args]\n# b = "float32[128,256]"\n'
        '# a = "float32[128,256]"\n# [consts]\n# factors = [1, 2]\n# ///\n# one\n' + text
    )


TWICE = "\n\n" + KERNEL[KERNEL.index("@nki.jit") :].replace("add(a, b)", "twice(a)").replace(
    "src=b)", "src=a)"
)
ONE = KERNEL.replace("add(a, b)", "one(a, n)").replace("src=b)", "src=a)")
COMMAND = "with the types of the last command"


def offered(editor: Editor, name: str) -> list[str]:
    """Return the types blocks of the last command that an editor is offered."""
    found = [a for a in actions(editor, name) if a.title.endswith(COMMAND)]
    return [e.new_text for a in found for e in edits(a, editor.uri(name))]


def test_the_types_of_the_last_command_are_for_its_kernel_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NKIC_CACHE", "1")
    monkeypatch.setenv("NKIC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "one.py").write_text(ONE)
    np.savez(tmp_path / "tiles.npz", a=np.zeros((8, 16), "f4"), b=np.zeros((8, 16), "f4"))

    def compiled(*words: str) -> None:
        assert process(*words, cwd=tmp_path).returncode == 0

    with Editor(tmp_path, debounce=20, seconds=LONG) as editor:
        typed = ("k.py", "--arg", "a=f32[128,256]", "--arg", "b=f32[128,256]")
        compiled("k.py", "--like", "tiles.npz")
        compiled(*typed, "--target", "trn1")
        assert editor.open("k.py", KERNEL) == []
        assert "[128,256]" in offered(editor, "k.py")[0]
        # A second kernel takes none of them; one that was renamed, or whose argument was, neither.
        (asks,) = editor.change("k.py", KERNEL + TWICE)
        assert "`twice`" in asks.message and "b: " not in asks.message
        renamed = KERNEL.replace("add(a, b)", "add(a, d)").replace("src=b)", "src=d)")
        (asks,) = editor.change("k.py", renamed)
        assert asks.severity is types.DiagnosticSeverity.Information
        assert offered(editor, "k.py") == []
        named = KERNEL.replace("def add(", "def plus(")
        (asks,) = editor.change("k.py", named)
        assert asks.severity is types.DiagnosticSeverity.Information
        assert offered(editor, "k.py") == []
        # What the file says comes first: the target, and the types of another kernel.
        on_trn2 = '# /// nkic\n# target = "trn2"\n# ///\n' + KERNEL
        assert editor.change("k.py", on_trn2) == []
        assert "on trn2" in hovered(editor, "k.py", position(on_trn2, "tensor_tensor"))
        assert offered(editor, "k.py") == []
        block = '# /// nkic\n# kernel = "twice"\n# [args]\n# a = "f32[64, 8]"\n# ///\n'
        assert editor.change("k.py", block + KERNEL + TWICE) == []
        # The same command again, answered from the cache.
        compiled("k.py", "--like", "tiles.npz")
        assert editor.change("k.py", KERNEL) == []
        assert "float32[8,16]" in offered(editor, "k.py")[0]
        editor.open("one.py", ONE)
        for value, said in SAID.items():
            compiled("one.py", "--arg", "a=f32[8,8]", "--const", f"n={value}")
            assert editor.change("one.py", f"# {value!a}\n{ONE}") == []
            blocks = offered(editor, "one.py")
            assert [f"# n = {said}\n" in b for b in blocks] == [True] * bool(said), value
            assert editor.change("one.py", "".join(blocks) + ONE) == []


SAID = {  # values, and how a block says them, if it can
    "'😀'": '"😀"',
    "'a\x7f'": '"a\\u007f"',
    "'\\ud800'": "",
    f"{1 << 63}": "",
    f"[{(1 << 63) - 1}, True]": f"[{(1 << 63) - 1}, true]",
    "1e400": "",
}


def hints(editor: Editor, name: str) -> list[types.InlayHint]:
    params = types.InlayHintParams(editor.at(name), WHOLE)
    found: list[types.InlayHint] = editor.await_(
        editor.client.text_document_inlay_hint_async(params)
    )
    return found


def test_hints_stand_behind_declarations(editor: Editor) -> None:
    editor.open("hints.py", RIGHT)
    found = hints(editor, "hints.py")
    assert [(h.label, h.position.line) for h in found] == [
        ("float32[128, 512]", 13),
        ("float32[128, 512] · 2.0 KiB/partition", 14),
        ("float32[128, 512] · 2.0 KiB/partition", 15),
    ]
    end = RIGHT.splitlines()[13]
    assert found[0].position.character == len(end)


def test_a_hint_of_several_sizes_fits_a_line_of_vs_code(editor: Editor) -> None:
    text = """# /// nkic
# [args]
# x = "float32[712, 1000]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((712, 1000), dtype=x.dtype, buffer=nl.shared_hbm)
    for row, p in [(0, 128), (128, 64), (192, 32), (224, 128), (352, 8), (360, 128), (488, 128),
                   (616, 96)]:
        tile = nl.ndarray((p, 1000), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[row : row + p, :])
        nisa.dma_copy(dst=out[row : row + p, :], src=tile)
    for dtype, shape in [(nl.float32, (128, 4)), (nl.int32, (128, 4)), (nl.float32, (128, 2, 2))]:
        nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)
    return out
"""
    editor.open("sizes.py", text)
    labels = [str(h.label).split(" · ")[0] for h in hints(editor, "sizes.py")]
    assert labels == [
        "float32[712, 1000]",
        "float32[128|64|32|…, 1000]",
        "float32[128, 4] or int32[128, 4] or float32[128, 2, 2]",
    ]


def test_a_helper_that_names_its_tensors(editor: Editor) -> None:
    """Each name has its own page; the hints of one place are one for each memory."""
    text = """# /// nkic
# [args]
# x = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


def alloc(shape, name, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=nl.float32, buffer=buffer, name=name)


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = alloc((128, 512), "a")
    b = alloc((64, 256), "b", nl.psum)
    nisa.memset(b, 0)
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_copy(dst=alloc((128, 256), "c")[0:64], src=b)
    nisa.dma_copy(dst=out, src=a)
    return out
"""
    editor.open("named.py", text)
    labels = [str(h.label).split(" · ")[0] for h in hints(editor, "named.py")]
    assert labels == ["float32[128, 512]", "float32[128, 512|256]", "float32[64, 256]"]
    found = hovered(editor, "named.py", position(text, "memset(b", 7))
    assert "float32[64, 256]` in psum" in found and "64 partitions of 1.0 KiB" in found


def test_a_run_shows_the_cycles_of_lines(editor: Editor) -> None:
    editor.open("run.py", RIGHT)
    (refused,) = editor.command("nkic.run", "run.py")
    assert (refused.type, refused.message) == (types.MessageType.Error, "save the file first")
    (editor.folder / "run.py").write_text(RIGHT)
    before = editor.refreshed
    (said,) = editor.command("nkic.run", "run.py")
    assert said.message.startswith("add: ") and " cycles (" in said.message
    costs = {h.position.line: h.label for h in hints(editor, "run.py") if "cycles" in str(h.label)}
    assert [*costs] == [16, 17, 18, 19]
    assert re.fullmatch(r"[\d,]+ cycles · \d+% · DVE", str(costs[18]))
    assert editor.refreshed == before + 1
    editor.change("run.py", RIGHT + "# another text\n")
    assert not [h for h in hints(editor, "run.py") if "cycles" in str(h.label)]


def test_a_page_about_a_run_is_shown(editor: Editor) -> None:
    editor.open("page.py", RIGHT)
    (editor.folder / "page.py").write_text(RIGHT)
    assert editor.command("nkic.report", "page.py") == []
    page = Path(unquote(urlparse(editor.shown[-1]).path))
    assert page.name == "page.html" and "<title>add" in page.read_text("utf-8")
    editor.shows = False
    (said,) = editor.command("nkic.report", "page.py")
    editor.shows = True
    assert said.message.startswith("the page about the run is /") and "page.html" in said.message
    (editor.folder / "page.py").write_text(WRONG)
    editor.change("page.py", WRONG)
    (said,) = editor.command("nkic.report", "page.py")
    assert said.type is types.MessageType.Error and "no `addd`" in said.message


def test_a_saved_kernel_is_run_if_the_settings_say_so(editor: Editor) -> None:
    editor.open("saved.py", RIGHT)
    before = editor.refreshed
    editor.save("saved.py", RIGHT)
    editor.command("nkic.migrate", "saved.py")  # answered after what came before it
    assert editor.refreshed == before
    editor.configure(run=True)
    editor.save("saved.py", RIGHT)
    editor.await_refresh(before)
    editor.configure(run=False)
    assert [h.position.line for h in hints(editor, "saved.py") if "cycles" in str(h.label)] == [
        *range(16, 20)
    ]


def test_a_kernel_that_does_not_compile_is_not_run(editor: Editor) -> None:
    editor.open("fails.py", WRONG)
    (editor.folder / "fails.py").write_text(WRONG)
    (said,) = editor.command("nkic.run", "fails.py")
    assert said.type is types.MessageType.Error and "`nki.language` has no `addd`" in said.message


def test_a_kernel_is_migrated_and_compared(editor: Editor) -> None:
    old = BLOCK.replace("# [args]", '# nki = "0.5"\n# [args]') + KERNEL
    old = old.replace(
        "    nisa.tensor_tensor(", "    for i in nl.affine_range(1):\n        nisa.tensor_tensor("
    )
    (editor.folder / "old.py").write_text(old)
    editor.open("old.py", old)
    (action,) = [a for a in actions(editor, "old.py") if a.command is not None]
    assert action.title == "migrate this kernel to NKI 0.7"
    assert "nkic.migrate" in str(action.command)  # the client reads it as if it were a command
    (said,) = editor.command("nkic.migrate", "old.py")
    assert "verified" in said.message and "same bits" in said.message
    (edit,) = (editor.applied[-1].changes or {})[editor.uri("old.py")]
    new = old.replace("nl.affine_range", "range").replace('"0.5"', '"0.7"')
    assert fixed(old, [edit]) == new
    assert [a for a in actions(editor, "run.py") if a.command is not None] == []


def completed(editor: Editor, name: str, at: types.Position) -> set[str]:
    params = types.CompletionParams(editor.at(name), at)
    found = editor.await_(editor.client.text_document_completion_async(params))
    return {item.label for item in found}


def test_completion_is_filtered_by_version_and_target(editor: Editor) -> None:
    text = RIGHT.replace("# [args]", '# nki = "0.3"\n# target = "trn1"\n# [args]')
    for name, wanted in (("new.py", RIGHT), ("old.py", text)):
        editor.open(name, wanted)
    new = completed(editor, "new.py", position(RIGHT, "nl.add", 3))
    old = completed(editor, "old.py", position(text, "nl.add", 3))
    assert {"add", "fori_loop"} <= new and "fori_loop" in new - old and "add" in old
    new = completed(editor, "new.py", position(RIGHT, "nisa.dma", 5))
    assert "tensor_tensor" in new and "activate2" not in new  # of trn3
    enum = RIGHT.replace("op=nl.add", "op=nisa.engine.")
    editor.change("new.py", enum)
    assert "vector" in completed(editor, "new.py", position(enum, "nisa.engine.", 12))


def test_the_signature_follows_the_cursor(editor: Editor) -> None:
    editor.open("call.py", RIGHT)
    for words, active in (("data2=b_tile, op", 14), ("dst=a_tile, data1", 4)):
        at = position(RIGHT, words, active)
        params = types.SignatureHelpParams(editor.at("call.py"), at)
        found = editor.await_(editor.client.text_document_signature_help_async(params))
        names = [p.label for p in found.signatures[0].parameters]
        assert found.signatures[0].label.startswith("tensor_tensor(dst, data1")
        assert names[found.active_parameter] == {14: "op", 4: "dst"}[active]


def test_definitions_are_in_the_stubs(editor: Editor) -> None:
    editor.open("definition.py", RIGHT)
    params = types.DefinitionParams(editor.at("definition.py"), position(RIGHT, "tensor_tensor"))
    found = editor.await_(editor.client.text_document_definition_async(params))
    stub = Path(found.uri.removeprefix("file://")).read_text().splitlines()
    assert stub[found.range.start.line].startswith("def tensor_tensor(")


def test_other_files_are_left_alone(editor: Editor) -> None:
    assert editor.open("host.py", "import os\n(((\n") == []


ENDLESS = RIGHT.replace("    return c", "    while True:\n        pass\n    return c")
COPY = "    nisa.tensor_copy(dst=a_tile, src=b_tile)\n"
SLOW = RIGHT.replace("    return c", f"    for i in range(400000):\n    {COPY}    return c")


def test_a_check_of_an_older_text_is_ended(editor: Editor) -> None:
    editor.configure(seconds=PATIENCE)  # too long to wait for
    try:
        editor.show("cancel.py", SLOW)
        time.sleep(0.3)  # until it is being checked
        begin = time.monotonic()
        assert starts(editor.change("cancel.py", WRONG)) == [("NKI0204", 18, 66)]
        assert {e.version for e in editor.published if e.uri == editor.uri("cancel.py")} == {2}
        assert time.monotonic() - begin < 10  # the other would have taken longer
    finally:
        editor.configure(seconds=LONG)


def test_the_last_of_many_changes_is_checked(editor: Editor) -> None:
    editor.open("typed.py", RIGHT)
    for end in range(20):
        editor.type("typed.py", RIGHT + "#" * end)
    assert editor.change("typed.py", WRONG) != []
    versions = [e.version for e in editor.published if e.uri == editor.uri("typed.py")]
    assert len(versions) < 10 and versions[-1] == 22  # most were typed over before they were due


def test_a_closed_document_has_no_diagnostics(editor: Editor) -> None:
    editor.open("closed.py", WRONG)
    editor.close("closed.py")
    editor.open("a name, with ä.py", RIGHT)
    last = [e for e in editor.published if e.uri == editor.uri("closed.py")][-1]
    assert list(last.diagnostics) == []


def test_a_slow_kernel_is_stopped_at_its_line(editor: Editor) -> None:
    editor.configure(seconds=1)
    (error,) = editor.open("slow.py", SLOW)
    editor.configure(seconds=LONG)
    assert "takes more than" in error.message and error.range.start.line in (20, 21), error.message
    assert starts(editor.open("next.py", WRONG)) == [("NKI0204", 18, 66)]


def test_an_endless_loop_is_an_error(editor: Editor) -> None:
    (error,) = editor.open("endless.py", ENDLESS)
    assert starts([error]) == [("NKI0215", 20, 10)]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nkic.base.diagnostics.find_spec", lambda name: None)
    with pytest.raises(UsageFailed, match="needs pygls") as failed:
        lsp.start()
    assert "pip install pygls" in failed.value.diagnostics[0].help


ODD = ("", "file://[", "file:--prove-source", "file:///dev/stdin", "file:///a%00.py", "a:%FF")


def test_a_document_of_any_address_disturbs_no_other(editor: Editor) -> None:
    for uri in ODD:
        item = types.TextDocumentItem(uri, "python", 1, RIGHT)
        editor.tell(editor.client.text_document_did_open, types.DidOpenTextDocumentParams(item))
    for uri in ODD:
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), WHOLE)
        editor.await_(editor.client.text_document_inlay_hint_async(params))
        said = len(editor.said)
        command = types.ExecuteCommandParams("nkic.run", [uri])
        editor.await_(editor.client.workspace_execute_command_async(command))
        assert [m.message for m in editor.said[said:]] == ["save the file first"]
    assert starts(editor.open("beside.py", WRONG))
    for uri in ODD:
        closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        editor.tell(editor.client.text_document_did_close, closed)
