"""The classes of Python's builtin types: all attributes of such values that kernels can reach.

A name that is in none of these tables does not exist for a kernel. All evaluations share the
classes, which are immutable.
"""

from __future__ import annotations

from functools import cache

from nkic.interpret.classes import TypingForm
from nkic.interpret.iteration import DICT_ITEMS, DICT_KEYS, DICT_VALUES, KernelFrozenSet, KernelSet
from nkic.interpret.objects import (
    Builtin,
    Class,
    ClassMethod,
    Function,
    Generator,
    HostFunction,
    LazyIterator,
    Method,
    Property,
    StaticMethod,
    Super,
)
from nkic.interpret.operators import Union
from nkic.interpret.tables import OBJECT
from nkic.interpret.types import functions, protocols
from nkic.interpret.types.functions import (
    BUILTIN,
    CLASS_METHOD,
    ELLIPSIS,
    FORM,
    FUNCTION,
    GENERATOR,
    HOST,
    ITERATORS,
    LAZY_ITERATOR,
    METHOD,
    NONE,
    NOT_IMPLEMENTED,
    PROPERTY,
    STATIC,
    SUPER,
    TYPE,
    UNION,
)
from nkic.interpret.types.numbers import BOOL, FLOAT, INT
from nkic.interpret.types.sequences import (
    DICT,
    FROZENSET,
    ITEMS,
    KEYS,
    LIST,
    RANGE,
    SET,
    SLICE,
    TUPLE,
    VALUES,
)
from nkic.interpret.types.text import BYTES, STR

_NAMED = (
    *(OBJECT, TYPE, INT, BOOL, FLOAT, STR, BYTES, LIST, TUPLE, DICT, SET, FROZENSET, RANGE),
    *(SLICE, PROPERTY, STATIC, CLASS_METHOD, SUPER),
)


@cache
def table() -> dict[type, Class]:
    """Return the class of every builtin value, by the Python class that represents it."""
    return {
        **{cls.payload: cls for cls in _NAMED if cls is not OBJECT and cls.payload is not None},
        **{set: SET, frozenset: FROZENSET, KernelSet: SET, KernelFrozenSet: FROZENSET},
        **{DICT_KEYS: KEYS, DICT_VALUES: VALUES, DICT_ITEMS: ITEMS},
        **{type(None): NONE, type(...): ELLIPSIS, type(NotImplemented): NOT_IMPLEMENTED},
        **{Function: FUNCTION, Builtin: BUILTIN, HostFunction: HOST, Method: METHOD},
        **{Property: PROPERTY, StaticMethod: STATIC, ClassMethod: CLASS_METHOD, Super: SUPER},
        **{
            Generator: GENERATOR,
            LazyIterator: LAZY_ITERATOR,
            TypingForm: FORM,
            Union: UNION,
            Class: TYPE,
        },
        **ITERATORS,
    }


@cache
def by_name() -> dict[str, Class]:
    """Return the classes that are available by name without an import."""
    return {cls.name: cls for cls in _NAMED}


_ = (protocols, functions)  # imported for the special methods that they register
