"""No function of NKI's surface accepts an unknown keyword, in any version."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

import nkic
from nkic.base.diagnostics import CompileFailed, Diagnostic, Level
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.interpret.objects import Builtin
from nkic.language import provide
from nkic.language.namespace import names_of
from nkic.machine import dtypes
from nkic.specialise import closed
from nkic.specialise.request import Request, TensorType

KERNEL = """\
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


def said(profile: Profile, module: str, name: str) -> list[Diagnostic]:
    """Return the diagnostics of a call with an unknown keyword."""
    decorates = name in WARNED or name in DECORATORS
    call = f"module.{name}(unheard_of=1){'(helper)(a)' if decorates else ''}"
    root = f"{provide.OLD_ROOT}.nki" if profile is Profile.BETA1 else "nki"
    text = KERNEL.format(root=root, module=module, call=call)
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
        (module, name): said(profile, module, name)
        for module, name in calls(profile)
        if name != "tensor" or module.endswith("language")  # annotations
    }
    assert len(found) > 150
    assert [key for key, told in found.items() if not refuses(key[1], told)] == []


def test_a_keyword_that_is_swallowed_is_seen() -> None:
    """A call without diagnostics fails the test, and so does a call with other errors."""
    told = said(Profile.NKI_0_7, "nki.language", "ds")
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
    text = KERNEL.format(root="nki", module="nki.isa", call=call)
    with pytest.raises(nkic.CompileError) as failed:
        nkic.compile(
            SourceFile("kernel.py", text), inputs={"a": "f32[128,64]"}, limits={"steps": 200_000}
        )
    assert "runaway" in [one.code.slug for one in failed.value.diagnostics]
