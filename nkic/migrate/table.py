"""The rules of a migration, by the version in which the new form was introduced.

A rule is tried on every node of its kinds, innermost first. The pages are sections of NKI's
migration guide (SDK documentation, nki/migration). What a rule must know of single names comes from
the tables of versions (nkic/language/versions) and of instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import libcst as cst

from nkic.base.profiles import Profile
from nkic.migrate import operators
from nkic.migrate.rules import calls, imports, loops, names, parameters
from nkic.migrate.sheet import Sheet

BETA2, NKI_0_3, NKI_0_6 = Profile.BETA2, Profile.NKI_0_3, Profile.NKI_0_6


class Rule(NamedTuple):
    """One rule: its title, the version since which it applies, its documentation, its nodes, its
    function.
    """

    title: str
    since: Profile
    page: str
    node: type[cst.CSTNode]
    write: Callable[[Sheet, Any, Any], Any]


_TO_BETA2 = "NKI 0.1.0 to NKI 0.2.0"
_TO_0_3 = "NKI 0.2.0 to NKI 0.3.0"
_TO_0_6 = "NKI 0.5.0 to NKI 0.6.0"
_EVERY = "all, by version"
_NAMES = "a name that was replaced"
_IMPORTS = "an import of neuronxcc"
RULES = (
    Rule(_IMPORTS, BETA2, _TO_BETA2, cst.Import, imports.move_import),
    Rule(_IMPORTS, BETA2, _TO_BETA2, cst.ImportFrom, imports.move_import_from),
    Rule(_IMPORTS, BETA2, _TO_BETA2, cst.Attribute, imports.move_name),
    Rule("a decorator", BETA2, _TO_BETA2, cst.Attribute, imports.decorator_by_name),
    Rule("a decorator", BETA2, _TO_BETA2, cst.Decorator, imports.decorator),
    Rule("an operator by another name", BETA2, _TO_BETA2, cst.Call, calls.operators),
    Rule(operators.PASSED, BETA2, _TO_BETA2, cst.Call, operators.passed),
    Rule(operators.PASSED, BETA2, _TO_BETA2, cst.FunctionDef, operators.declared),
    Rule("a hint", BETA2, _TO_BETA2, cst.Call, parameters.hints),
    Rule("a constant's element type", BETA2, _TO_BETA2, cst.Call, calls.converted),
    Rule("a word by another name", BETA2, _TO_BETA2, cst.Call, calls.words),
    Rule("what was not said", BETA2, _TO_BETA2, cst.Call, calls.defaults),
    Rule("an option of nki.jit", NKI_0_3, _TO_0_3, cst.Call, parameters.jit_options),
    Rule("a parameter that is gone", BETA2, _EVERY, cst.Call, parameters.former_parameters),
    Rule("a number for an enumeration", NKI_0_3, _TO_0_3, cst.Call, calls.enumerations),
    Rule("a buffer by name", NKI_0_3, _TO_0_3, cst.Call, calls.buffer_names),
    Rule("an output in hbm", NKI_0_3, _TO_0_3, cst.Call, calls.shared_outputs),
    Rule("a memset of integers", NKI_0_3, _TO_0_3, cst.Call, calls.whole_fill),
    Rule("the order of arguments", NKI_0_3, _TO_0_3, cst.Call, calls.former_order),
    Rule("an axis with another meaning", NKI_0_3, _TO_0_3, cst.Call, calls.reduced_axis),
    Rule(_NAMES, BETA2, _EVERY, cst.Attribute, names.rename_attribute),
    Rule(_NAMES, BETA2, _EVERY, cst.Name, names.rename_name),
    Rule(_NAMES, BETA2, _EVERY, cst.ImportFrom, names.drop_import),
    Rule("a loop over nl.dynamic_range", NKI_0_6, _TO_0_6, cst.For, loops.counted),
    Rule("a while loop over a register", NKI_0_6, _TO_0_6, cst.While, loops.conditional),
)
