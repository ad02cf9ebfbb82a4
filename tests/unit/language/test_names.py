"""Test the names of nki.language in each version of NKI: data, the table in docs/language.md,
messages.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import nkic
from nkic.base.device import KernelError
from nkic.base.diagnostics import CompileFailed, Diagnostic, Level
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.interpret.objects import Builtin
from nkic.language import library, provide, versions
from nkic.language.binder import Binder
from nkic.language.namespace import Namespace, names_of, submodule
from nkic.language.provide import names, namespaces
from nkic.language.tensor import NkiTensor
from nkic.language.versions import Added, Deprecated, Removed
from nkic.machine import dtypes
from nkic.machine.instructions import ROWS
from nkic.machine.targets import Buffer
from nkic.specialise import closed
from nkic.specialise.request import Request, TensorType
from tests.harness.bless import blessing
from tests.harness.kernels import compile_text
from tests.harness.language import run

OLD_NAMES = versions.of("nki.language", Deprecated)
OLD_SIZES = versions.of("nki.language.tile_size", Deprecated)

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    t = nl.ndarray((128, 4, 8), dtype=nl.float32, buffer=nl.sbuf{address})
    h = nl.ndarray((128, 4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.memset(dst=t, value=0.0)
    nisa.dma_copy(dst=h, src=t)
    {line}
    return h
"""


def said(line: str, profile: Profile, address: str = "") -> tuple[Diagnostic, ...]:
    text = KERNEL.format(line=line, address=address)
    try:
        return run(text, {}, profile=profile)[1]
    except CompileFailed as failed:
        return failed.diagnostics


LINES = {
    "data": "nisa.memset(t.data, 1.0)",
    "slice": "t.slice(1, 0, 2)",
    "select": "t.select(1, 0)",
    "vector_select": "h.vector_select(0, nl.ndarray((8, 1), nl.int32, nl.sbuf))",
    "permute": "t.permute((0, 2, 1))",
    "broadcast": "t[:, 0:1].broadcast(1, 2)",
    "expand_dim": "t.expand_dim(1)",
    "squeeze_dim": "t[:, 0:1].squeeze_dim(1)",
    "reshape_dim": "t.reshape_dim(1, (2, 2))",
    "flatten_dims": "t.flatten_dims(1, 2)",
    "rearrange": "t.rearrange(('p', 'a', 'b'), ('p', 'b', 'a'))",
    "is_contiguous": "t.is_contiguous()",
    "is_indirect": "t.is_indirect()",
}


@pytest.mark.parametrize("name", LINES)
def test_methods_of_tensors(name: str) -> None:
    new = versions.TENSOR[name]
    assert not [d for d in said(LINES[name], new.since) if d.level.value == "error"]
    (found,) = said(LINES[name], Profile(new.since - 10))
    assert found.code.slug == "needs-profile"
    assert f"`{name}` of tensors: it was added in NKI {new.since.label}" in found.message
    assert found.primary is not None and found.primary.span.line == 12


def test_every_new_method_is_tried() -> None:
    assert set(versions.TENSOR) == {*LINES, "indirect"}


@pytest.mark.parametrize("name", versions.TILE_SIZE)
def test_sizes(name: str) -> None:
    new, line = (
        versions.TILE_SIZE[name],
        f"assert nl.tile_size.{name} > 0",
    )
    assert said(line, new.since) == ()
    (found,) = said(line, Profile.NKI_0_3)
    assert found.code.slug == "needs-profile" and new.since.label in found.message


def test_former_names_of_sizes_are_there_in_every_version() -> None:
    line = "assert nl.tile_size.psum_fmax == 512 and nl.tile_size.total_available_sbuf_size > 1e5"
    assert said(line, Profile.NKI_0_3) == ()
    assert {d.code.slug for d in said(line, Profile.NKI_0_4)} == {"deprecated"}


@pytest.mark.parametrize("name", versions.LANGUAGE)
def test_names(name: str) -> None:
    new = versions.LANGUAGE[name]
    library_names = library.public()
    assert name in names(new.since, library_names)
    assert name not in names(Profile(new.since - 10), library_names)
    (found,) = said(f"print(nl.{name})", Profile(new.since - 10))
    assert found.code.slug == "needs-profile" and found.help == new.instead


def test_beta2_has_addresses() -> None:
    assert said("pass", Profile.NKI_0_3, ", address=(0, 0)") == ()
    assert said("pass", Profile.BETA2, ", address=(0, 0)") == ()


def test_beta2_takes_no_slice_of_a_slice() -> None:
    line = "nisa.memset(dst=t[:, 0:2][:, 0:1], value=1.0)"
    assert said(line, Profile.NKI_0_3) == () == said(line.replace("[:, 0:2]", ""), Profile.BETA2)
    assert said("t.reshape((128, 32))[:, 0:4]", Profile.BETA2) == ()
    (found,) = said(line, Profile.BETA2)
    assert "slice of a slice: it was added in NKI 0.3" in found.message


# The table


def rows() -> Iterator[str]:
    """Return the names that were added, deprecated and removed, in the order of the data."""
    came = [
        *((f"nl.{name}", new) for name, new in versions.LANGUAGE.items()),
        *((f"nisa.{name}", new) for name, new in versions.of("nki.isa", Added).items()),
        *((f"nl.tile_size.{name}", new) for name, new in versions.TILE_SIZE.items()),
        *((f"t.{name}", new) for name, new in versions.TENSOR.items()),
    ]
    yield f"| functions of tensors: nl.load, nl.add … | {Profile.NKI_0_3.label} |  |  | nisa |"
    nested = ("an index of an index: t[0:64][8:16]", versions.NESTED)
    for name, new in [nested, *came]:
        yield f"| {name} | {new.since.label} |  |  | {new.instead} |"
    late = [
        *((f"nl.{name}", old) for name, old in OLD_NAMES.items()),
        *((f"nl.tile_size.{name}", old) for name, old in OLD_SIZES.items()),
        ("for i in nl.dynamic_range", versions.DYNAMIC_FOR),
        ("while register", versions.DYNAMIC_WHILE),
    ]
    for name, old in late:
        went = old.removed_in.label if old.removed_in else ""
        yield f"| {name} |  | {old.since.label} | {went} | {old.instead} |"
    for name, gone in versions.of("nki.language", Removed).items():
        yield f"| nl.{name} |  |  | {gone.since.label} | {gone.instead} |"


def table() -> str:
    head = ["| what | came | deprecated | went | instead |", "|---" * 5 + "|"]
    return "\n".join([*head, *rows()])


def test_the_documented_table_is_this_one() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "language.md"
    before, begin, rest = page.read_text("utf-8").partition("<!-- versions: begin -->\n")
    shown, end, after = rest.partition("\n<!-- versions: end -->")
    assert begin and end
    if blessing():
        page.write_text(before + begin + table() + end + after, "utf-8")
    else:
        assert shown == table(), "run this test with NKIC_BLESS=1"


# ------------------------------------------------------------------------------------------------
# Test the modules that kernels import: which names are deprecated, and which are suggested.

MODULE = Namespace("m", {"exp": 1}, watched={"axe": lambda: 2, "tensor_old": lambda: 3})


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("axp", "exp"),  # as close to axe, which is deprecated
        ("tensor_odl", "tensor_old"),  # no other name is close
    ],
)
def test_a_deprecated_name_is_suggested_only_if_no_other_is_as_close(name: str, near: str) -> None:
    with pytest.raises(KernelError) as raised:
        getattr(MODULE, name)
    assert raised.value.help == f"did you mean `{near}`?"
    assert submodule(MODULE, name).help == f"did you mean `{near}`?"


@pytest.mark.parametrize(
    ("profile", "is_deprecated"), [(Profile.NKI_0_5, False), (Profile.NKI_0_6, True)]
)
def test_names_are_deprecated_from_their_version_on(profile: Profile, is_deprecated: bool) -> None:
    modules = provide.namespaces(profile, lambda file, name: len)
    for module, name in (("nki.language", "affine_range"), ("nki.isa", "vector_engine")):
        assert name in names_of(modules[module])
        assert (name in modules[module].__dict__["@watched"]) is is_deprecated


# ------------------------------------------------------------------------------------------------
# Every removed name of NKI names its replacement, in each version; so do deprecated names.

TEXT = """# /// nkic
# nki = "{nki}"
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl
{imports}

@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    {line}
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""
MODULES = {
    name: versions.of(name, Removed) for name in ("nki.language", "nki.isa", "nki", "nki.compiler")
}
VERSIONS = ("beta2", "0.3", "0.4", "0.6")


def removal_said(line: str, nki: str = "0.6", imports: str = "") -> tuple[Diagnostic, ...]:
    return compile_text(TEXT.format(line=line, nki=nki, imports=imports))


def one(line: str, nki: str = "0.6", imports: str = "") -> Diagnostic:
    (found,) = removal_said(line, nki, imports)
    return found


def removed_rows() -> Iterator[tuple[str, str, Removed]]:
    for module, table in MODULES.items():
        yield from ((module, name, gone) for name, gone in table.items())


@pytest.mark.parametrize("nki", VERSIONS)
@pytest.mark.parametrize(
    ("module", "name", "gone"), list(removed_rows()), ids=lambda v: str(v)[:24]
)
def test_removed_names(module: str, name: str, gone: Removed, nki: str) -> None:
    alias = {"nki.language": "nl", "nki.isa": "nisa"}.get(module, module)
    found = one(f"{alias}.{name}", nki)
    assert (found.code.slug, found.help) == ("removed-name", gone.instead)
    assert f"`{module}.{name}`" in found.message
    assert found.primary is not None
    assert (found.primary.span.line, found.primary.span.column) == (15, 5)


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("import nki.compiler as ncc", "ncc.sbuf"),
        ("from nki.compiler import sbuf", "sbuf.alloc"),
    ],
)
def test_removed_modules(imports: str, line: str) -> None:
    found = one(line, imports=imports)
    assert found.code.slug == "removed-name"
    assert "was removed in NKI beta2" in found.message


def test_modules_that_never_were() -> None:
    found = one("isb.memset", imports="import nki.isb as isb")
    assert (found.code.slug, found.message) == ("import-failed", "`nki` has no module `isb`")
    assert found.help == "did you mean `isa`?"


def test_what_is_there_is_not_called_removed() -> None:
    assert not set(versions.of("nki.isa", Removed)) & set(ROWS)
    assert not set(versions.of("nki.language", Removed)) & set(library.public())


@pytest.mark.parametrize("name", sorted(set(library.public()) - set(versions.LANGUAGE)))
def test_functions_of_tensors_came_with_0_3(name: str) -> None:
    found = one(f"nl.{name}(x)", "beta2")
    assert found.code.slug == "needs-profile"
    assert "added in NKI 0.3" in found.message


def deprecations() -> Iterator[tuple[str, Deprecated]]:
    yield from ((f"nl.{name}", old) for name, old in OLD_NAMES.items())
    yield from ((f"nisa.{name}", old) for name, old in versions.of("nki.isa", Deprecated).items())
    yield from ((f"nl.tile_size.{name}", old) for name, old in OLD_SIZES.items())


@pytest.mark.parametrize(("name", "old"), list(deprecations()), ids=lambda v: str(v)[:24])
def test_deprecated_names(name: str, old: Deprecated) -> None:
    for profile in Profile:
        if profile < Profile.BETA2:
            continue
        found = removal_said(f"{name}", profile.label)
        assert len(found) == (profile >= old.since)
        for warning in found:
            assert (warning.code.slug, warning.help) == ("deprecated", old.instead)
            assert f"since NKI {old.since.label}" in warning.message


def test_a_deprecated_name_with_a_successor_has_a_sure_fix() -> None:
    (fix,) = one("n = nl.tile_size.psum_fmax").fixes
    assert (fix.replacement, fix.sure) == ("psum_bank_fmax", True)
    assert (fix.span.column, fix.span.end_column) == (22, 31)
    (fix,) = one("e = nisa.vector_engine").fixes
    assert (fix.replacement, fix.span.column) == ("engine.vector", 14)


def test_a_deprecated_name_that_is_imported_under_another_has_none() -> None:
    found = one("r(2)", imports="from nki.isa import vector_engine as v\nr = lambda n: v")
    assert (found.code.slug, found.fixes) == ("deprecated", ())


@pytest.mark.parametrize(
    ("written", "fixed"),
    [
        ("import neuronxcc.nki.isa as old", "import nki.isa as old"),
        ("from neuronxcc.nki import isa as old", "from nki import isa as old"),
        ("from neuronxcc.nki.isa import memset as old", "from nki.isa import memset as old"),
    ],
)
def test_old_imports_have_a_sure_fix(written: str, fixed: str) -> None:
    found = one("old", imports=written)
    assert [(fix.replacement, fix.sure) for fix in found.fixes] == [(fixed, True)]


def test_an_old_import_of_what_is_gone_has_no_fix() -> None:
    found = one("old.sbuf", imports="import neuronxcc.nki.compiler as old")
    assert (found.code.slug, found.fixes) == ("removed-name", ())
    assert "no such module" in found.help


@pytest.mark.parametrize(
    ("options", "slugs"),
    [
        ("", []),
        ("debug_kernel=True, show_compiler_tb=True", []),
        ("mode='trace'", ["deprecated"]),
        ("platform_target='trn2'", ["removed-name"]),
        ("platfrom_target='trn2'", ["jit-option"]),
    ],
)
def test_options_of_jit(options: str, slugs: list[str]) -> None:
    text = TEXT.format(line="pass", nki="0.6", imports="").replace(
        "@nki.jit", f"@nki.jit({options})"
    )
    assert [found.code.slug for found in compile_text(text)] == slugs


# ------------------------------------------------------------------------------------------------
# Compare nkic's nki.language with the public one of NKI 0.6 and 0.7: names and parameters.

DATA = Path(__file__).resolve().parents[2] / "data" / "nki_language_0_6.txt"
_LINE = re.compile(r"(?P<name>[\w.]+)(?:\((?P<parameters>.*)\))?")

# Names that published kernels of 0.6 still use, in addition to the reference.
MORE = {
    "bool": "the dtype's own name",
    "par_dim": "marks the partition dimension, which is the first one anyway",
    "range": "another name of the range that is unrolled",
}
MORE_OF_TENSORS = {"base_tensor"}  # used only by published kernels


def published(path: Path = DATA) -> dict[str, list[str] | None]:
    """Return every public name; for functions the parameters with their defaults, None for
    values.
    """
    found: dict[str, list[str] | None] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match is not None, line
        text = match["parameters"]
        found[match["name"]] = None if text is None else [p for p in text.split(", ") if p]
    return found


PUBLIC = published()
ADDED = published(DATA.with_name("nki_language_0_7.txt"))
OURS = {**names(Profile.NKI_0_6, library.public()), "NKIObject": object}
FUNCTIONS = [n for n, parameters in PUBLIC.items() if parameters is not None and "." not in n]
METHODS = [n for n, parameters in PUBLIC.items() if parameters is not None and "." in n]


def definitions() -> dict[str, ast.FunctionDef]:
    files = {file.path: file for file in library.sources().values()}
    trees = [ast.parse(file.text) for file in files.values()]
    return {n.name: n for tree in trees for n in tree.body if isinstance(n, ast.FunctionDef)}


DEFINED = definitions()


def parameters_of(name: str) -> list[str]:
    """Return a function's parameters in nkic."""
    if name in DEFINED:
        return [word.strip() for word in ast.unparse(DEFINED[name].args).split(", ")]
    value: Any = OURS[name]
    if isinstance(value, Binder):
        return list(value._row.parameters)
    if name == "ndarray":  # a class that can be called like a function
        value = partial(type(value).__call__, value)
    return [_word(p.name, p.default) for p in inspect.signature(value).parameters.values()]


def _word(name: str, default: Any) -> str:
    return name if default is inspect.Parameter.empty else f"{name}={default!r}"


def spelled(words: list[str]) -> list[str]:
    text = "\n".join(words).replace("nl.", "").replace('"', "'")
    text = re.sub(r"<?Buffer\.(\w+)(: [^>]*>)?", lambda m: m[1].lower(), text)
    return text.replace("DType(float32)", "float32").split("\n") if words else []


def test_every_public_name_is_there_and_no_other() -> None:
    public = {name for name in PUBLIC if "." not in name}
    assert sorted(public - set(OURS)) == []
    assert sorted(set(OURS) - public) == sorted(MORE)


def test_no_name_is_said_to_be_missing() -> None:
    space = namespaces(Profile.NKI_0_6, lambda file, name: lambda: None)["nki.language"]
    assert not set(PUBLIC) & set(space.__dict__["@absent"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters(name: str) -> None:
    assert spelled(parameters_of(name)) == spelled(PUBLIC[name] or [])


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_tensors_are_the_public_ones(name: str) -> None:
    method = getattr(NkiTensor, name.removeprefix("NkiTensor."))
    own = [_word(p.name, p.default) for p in list(inspect.signature(method).parameters.values())]
    assert own[1:] == PUBLIC[name]


def test_members() -> None:
    for name in PUBLIC:
        owner, _, member = name.rpartition(".")
        if owner == "NkiTensor":
            assert hasattr(NkiTensor, member), name
        elif owner:
            assert member in dir(OURS[owner]), name


def test_tensors_have_no_further_public_attributes() -> None:
    public = {name.removeprefix("NkiTensor.") for name in PUBLIC}
    own = {name for name in vars(NkiTensor) if not name.startswith("_")}
    assert own - public == MORE_OF_TENSORS | {"data"}


def test_what_0_7_adds() -> None:
    ours = names(Profile.NKI_0_7, library.public())
    assert {*ours} - {*OURS} == {name for name in ADDED if "." not in name}
    assert {*OURS} - {*ours} == {"NKIObject"}  # which depends on the evaluator
    for name in ADDED:
        owner, _, member = name.rpartition(".")
        assert not owner or member in dir(NkiTensor if owner == "NkiTensor" else ours[owner])
    for name in ("NkiGrid", "NkiTileGrid", "NkiBlockGrid"):
        public = {n.removeprefix(f"{name}.") for n in ADDED if n.startswith(f"{name}.")}
        assert {n for n in dir(ours[name]) if not n.startswith("_")} == public


@pytest.mark.parametrize("name", [n for n, found in ADDED.items() if found is not None])
def test_parameters_of_0_7(name: str) -> None:
    function = names(Profile.NKI_0_7, ())[name]
    found = [_word(p.name, p.default) for p in inspect.signature(function).parameters.values()]
    assert found == ADDED[name]


def test_dtypes_and_buffers_are_what_they_are_called() -> None:
    newest = names(Profile.NKI_0_7, library.public())
    for name, dtype in dtypes.DTYPES.items():
        assert newest[name] is dtype
    assert {*dtypes.DTYPES} - {*OURS} == {"int64"}  # added in NKI 0.7
    assert OURS["hbm"] is OURS["private_hbm"] is OURS["MemoryRegion"].private_hbm is Buffer.HBM


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_no_parameter_is_ignored(name: str) -> None:
    """The body reads each parameter. `keepdims` of var is documented as without effect."""
    function = DEFINED[name]
    read = {n.id for body in function.body for n in ast.walk(body) if isinstance(n, ast.Name)}
    given = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    assert given - read == ({"keepdims"} if name == "var" else set())


# ------------------------------------------------------------------------------------------------
# No function of NKI's surface accepts an unknown keyword, in any version.

KEYWORD_KERNEL = """\
import {root} as nki
import {module} as module


@nki.jit
def kernel(a):
    return {call}


def helper(a):
    return a
"""
LINE = 7  # of the call
ARGS = {"a": TensorType(dtypes.FLOAT32, (128, 64), "test")}
DECORATORS = ("enable_stack_allocator", "force_auto_alloc", "skip_middle_end_transformations")
# Decorators accept options of tools that run kernels; an option without meaning is a warning.
WARNED = {"jit", "trace", "baremetal", "benchmark", "profile"}
# Other errors about a call: nothing is called, or not in this way.
OTHERWISE = re.compile(
    r"is not callable|cannot create '\w+' instances|wraps the storage of a framework"
    r"|is an operator of instructions|has no function `nl\.\w+`|take(s|n)? no (keyword )?arguments"
)


def calls(profile: Profile) -> Iterator[tuple[str, str]]:
    """Return every public name of a version, by its module."""
    former = profile is Profile.BETA1
    spaces = provide.namespaces(profile, lambda file, name: helper, object)
    for module, space in spaces.items():
        if module.startswith(provide.OLD_ROOT) is former and module != "nkic.stdlib":
            yield from ((module, name) for name in names_of(space))


def helper() -> None:
    """A replacement for a function of the library."""


def keyword_said(profile: Profile, module: str, name: str) -> list[Diagnostic]:
    decorates = name in WARNED or name in DECORATORS
    call = f"module.{name}(unheard_of=1){'(helper)(a)' if decorates else ''}"
    root = f"{provide.OLD_ROOT}.nki" if profile is Profile.BETA1 else "nki"
    text = KEYWORD_KERNEL.format(root=root, module=module, call=call)
    request = Request(args=ARGS, profile=profile)
    try:
        found = compile_source(SourceFile("kernel.py", text), request, lambda name, importer: None)
    except CompileFailed as failed:
        return list(failed.diagnostics)
    return list(found.warnings)


def refuses(name: str, found: list[Diagnostic]) -> bool:
    """Return whether a diagnostic rejects the keyword, and points at the call."""
    here = [one for one in found if one.primary is not None and one.primary.span.line == LINE]
    if name in WARNED:
        return any("unheard_of" in one.message for one in here)
    errors = [one.message for one in here if one.level is Level.ERROR]
    return any("unheard_of" in text or OTHERWISE.search(text) for text in errors)


@pytest.mark.parametrize(
    "profile",
    [
        Profile.BETA1,
        Profile.NKI_0_7,
        # The functions between the first and the last version are those of one of the two.
        *(pytest.param(one, marks=pytest.mark.slow) for one in (Profile.BETA2, Profile.NKI_0_3)),
    ],
)
def test_every_function_refuses_a_keyword_that_it_does_not_know(profile: Profile) -> None:
    found = {
        (module, name): keyword_said(profile, module, name)
        for module, name in calls(profile)
        if name != "tensor" or module.endswith("language")  # annotations
    }
    assert len(found) > 150
    assert [key for key, told in found.items() if not refuses(key[1], told)] == []


def test_a_keyword_that_is_swallowed_is_seen() -> None:
    """A call without diagnostics fails the test, and so does a call with other errors."""
    told = keyword_said(Profile.NKI_0_7, "nki.language", "ds")
    assert refuses("ds", told)
    assert not refuses("ds", [])
    assert not refuses("ds", [one for one in told if "unheard_of" not in one.message])


def test_methods_name_their_parameters() -> None:
    """Methods of tensors, registers and similar values, as their classes declare them."""
    found = {}
    for host, made in {**closed.surface_classes(), **closed.beta1_classes()}.items():
        for name, member in made.members.items():
            if isinstance(member, Builtin) and not name.startswith("__"):
                found[f"{host.__name__}.{name}"] = inspect.signature(getattr(host, name))
    assert len(found) > 30
    assert [name for name, one in found.items() if any_keyword(one)] == []


def any_keyword(signature: inspect.Signature) -> bool:
    """Return whether the function accepts arbitrary keywords."""
    return any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())


def test_a_refused_call_costs_steps() -> None:
    """Equal errors are told once, but each is made in full."""
    call = "[module.memset(a, value=0.0, unheard_of=1) for _ in range(1000)]"
    text = KEYWORD_KERNEL.format(root="nki", module="nki.isa", call=call)
    with pytest.raises(nkic.CompileError) as failed:
        nkic.compile(
            SourceFile("kernel.py", text), inputs={"a": "f32[128,64]"}, limits={"steps": 200_000}
        )
    assert "runaway" in [one.code.slug for one in failed.value.diagnostics]
