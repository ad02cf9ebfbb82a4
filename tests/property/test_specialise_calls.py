"""Any call with any arguments ends in a program or in located errors, never in a traceback."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import NkicError, Reporter
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.language import library
from nkic.language import provide as language
from nkic.machine import dtypes
from nkic.machine.instructions import ROWS
from nkic.source.parse import parse
from nkic.source.resolve import resolve
from nkic.specialise import PROVIDED, specialise
from nkic.specialise.request import Request, TensorType

TEMPLATE = """
import nki
import nki.isa as nisa
import nki.language as nl
import nki.typing as nt

@nki.jit
def kernel(a):
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    r = nisa.register_alloc(1)
    i = nisa.memset(t, 0.0)
    {line}
"""
METHODS = (
    *("is_contiguous", "get_pattern", "is_indirect", "slice", "select", "vector_select", "permute"),
    *("broadcast", "expand_dim", "squeeze_dim", "reshape", "reshape_dim", "flatten_dims"),
    *("rearrange", "view", "reinterpret_cast", "ap", "indirect"),
)
FUNCTIONS = sorted(
    name
    for name, value in language.names(Profile.NKI_0_6, library.public()).items()
    if callable(value)
)
_ATOMS = """
    t a r i nl.float32 nl.sbuf nl.psum nl.shared_hbm nl.add nl.exp nisa.engine.vector nl nisa
    nisa.tensor_copy nisa.dge_mode.none nt.tensor 0 1 2 64 128 -1 1.5 True None 'x' 'float32' ''
    ... () [] {} {'a':1} [[64,128],[1,64]] [1,64] (0,1) (128,8,8) slice(0,4) nl.ds(0,4)
    nl.ds(r,4) kernel print t[:,0:1] t[0:1,0:1] a[0] lambda*x:x range(3) nl.ndarray
    nl.NKIObject nl.tile_size
"""
_OPERATORS = "+ - * / // % ** @ & | ^ << >> < <= == != in"
ATOMS = st.sampled_from(_ATOMS.split())
VALUES = st.one_of(
    ATOMS,
    st.lists(ATOMS, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    st.lists(ATOMS, max_size=3).map(lambda parts: f"({''.join(f'{p}, ' for p in parts)})"),
)
KEYWORDS = st.sampled_from(sorted({p for row in ROWS.values() for p in row.parameters}))
ARGUMENTS = st.tuples(
    st.lists(VALUES, max_size=5),
    st.dictionaries(KEYWORDS, VALUES, max_size=2),
).map(lambda pair: ", ".join([*pair[0], *(f"{k}={v}" for k, v in pair[1].items())]))
CALLEES = st.one_of(
    st.sampled_from([f"t.{name}" for name in METHODS] + [f"a.{name}" for name in METHODS]),
    st.sampled_from([f"nl.{name}" for name in FUNCTIONS]),
    st.sampled_from([f"nisa.{name}" for name in sorted(ROWS)]),
)
OPERATORS = st.sampled_from(_OPERATORS.split())
LINES = st.one_of(
    st.tuples(CALLEES, ARGUMENTS).map(lambda pair: f"x = {pair[0]}({pair[1]})"),
    VALUES.map(lambda value: f"x = t[{value}]"),
    st.tuples(VALUES, VALUES).map(lambda pair: f"t[{pair[0]}] = {pair[1]}"),
    st.tuples(VALUES, OPERATORS, VALUES).map(lambda parts: f"x = {' '.join(parts)}"),
    VALUES.map(lambda value: f"return {value}"),
    VALUES.map(lambda value: f"print({value}, f'{{{value}}}')" if "'" not in value else "pass"),
    VALUES.map(lambda value: f"for x in {value}: pass"),
)
REQUEST = Request(args={"a": TensorType(dtypes.FLOAT32, (4, 128, 64), "test")})


@settings(max_examples=250)
@given(LINES)
def test_a_line_of_anything(line: str) -> None:
    report = Reporter()
    try:
        resolved = resolve(
            SourceFile("k.py", TEMPLATE.format(line=line)),
            None,
            load=lambda name, importer: None,
            parse=parse,
            provided=PROVIDED,
            report=report,
        )
        specialise(resolved, REQUEST, report)
    except NkicError as failure:
        assert failure.diagnostics
    assert all(found.primary is not None for found in report.errors)
