"""Test the modules that kernels import: which names are deprecated, and which are suggested."""

import pytest

from nkic.base.device import KernelError
from nkic.base.profiles import Profile
from nkic.language import provide
from nkic.language.namespace import Namespace, names_of, submodule

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
