"""Kernels that call one function of a module with hostile arguments, by seed.

A call starts from plausible arguments, legal ones for instructions, of which some are replaced, so
that it comes as far as possible: a call that nothing rejects goes through every stage.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from nkic.base.profiles import Profile
from nkic.interpret import builtins, library
from nkic.interpret.classes import TypingForm
from nkic.interpret.library import forms
from nkic.interpret.objects import Class, Getter, Written
from nkic.language import library as stdlib
from nkic.language import provide
from nkic.language.binder import Binder
from nkic.language.namespace import Namespace, names_of
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Register, Tile
from nkic.source import bindings
from nkic.specialise import numpy as numpy_names
from tests.unit.instances import LEGAL

HOSTILE = """
    0 1 -1 2 3 7 127 128 129 255 512 4096 65536 2**24+1 2**31-1 2**31 -2**31 2**32 2**63 -2**63
    2**64 10**40 -10**40 2**8000 True False 0.5 -0.0 1e308 -1e308 1e-320 nan inf -inf '' 'x'
    'add' 'float32' '\\0' '\\u202e' 'x'*2000 '%s'*50 '{}'*50 '/etc/passwd' b'x' b'\\xff'*99 None
    ... NotImplemented [] () {} set() [0] [[]] [None]*40 [1]*5000 (1,2,3) (-1,) (0,0) (128,16)
    (128,0) (2**40,2**40) (1,)*9 (1,)*40 [[1,2],[3]] {'a':1} {1:{}} range(5) range(10**9)
    slice(None) slice(5,-5,-1) deep cycle object() int type Exception Evil() Evil Same()
    lambda:0 lambda*a:a len iter([1]) (x*x_for_x_in_[1]) nl.float32 nl.bfloat16 nl.int8 nl.sbuf
    nl.psum nl.shared_hbm nl.add nl.ndarray nl nisa np nl.ds(0,4) nl.ds(-5,2**40) nl.tile_size
    nki.jit np.float32 np.zeros((2,2)) np.zeros((0,5)) np.eye(3,k=-9) np.ones((1,)*9)
    np.ones(6).reshape((3,2)) np.array(5) np.array([]) f p h i u b o r f[0:1] f[:,0:1] f[5:3]
    f[:,0] p[:,0:4] h[0] h[0:64,0:8]
"""
PLAUSIBLE = {
    "dst": "f p h o", "src": "f p h a", "op": "nl.add nl.multiply nl.maximum 'add' nl.exp",
    "dtype": "nl.float32 nl.bfloat16 nl.int32 nl.uint8 'float16'", "shape": "(128,16) (64,) (1,8)",
    "buffer": "nl.sbuf nl.psum nl.hbm nl.shared_hbm", "axis": "0 1 -1 (1,) (0,1) [1] 9",
    "mask": "None f>0", "name": "'n' ''", "dims": "(1,0) (0,1)", "": "f f p h i 1 2 (1,0) a",
}  # fmt: skip
HEAD = """
from dataclasses import dataclass
class Evil:
    def __len__(self): return 2**70
    def __index__(self): return 2**70
    def __iter__(self): return iter([self] * 3)
    def __getitem__(self, key): return self
    def __eq__(self, other): return self
    def __hash__(self): return 2**70
    def __bool__(self): return True
    def __repr__(self): return 'evil' * 1000
    def __call__(self, *args): return self
    def __add__(self, other): return self
    def __float__(self): return 1e400
    def __int__(self): return -2**70
class Same(int):
    def __eq__(self, other): return True
    def __hash__(self): return hash('float32')
"""
SETUP = """
    inf, nan = float('inf'), float('nan')
    deep, cycle = [1], [1]
    for _ in range(2000): deep = [deep]
    cycle.append(cycle)
"""
TENSORS = {
    "f": "(128, 16), dtype=nl.float32, buffer=nl.sbuf",
    "p": "(128, 16), dtype=nl.float32, buffer=nl.psum",
    "i": "(128, 16), dtype=nl.int32, buffer=nl.sbuf",
    "u": "(128, 8), dtype=nl.uint8, buffer=nl.sbuf",
    "b": "(64, 2, 4), dtype=nl.bfloat16, buffer=nl.sbuf",
    "h": "(128, 16), dtype=nl.float32, buffer=nl.hbm",
    "o": "(128, 16), dtype=nl.float32, buffer=nl.shared_hbm",
}


class Target(NamedTuple):
    """A function that a kernel can name. `parameters` are its names of arguments, if known."""

    module: str
    name: str
    parameters: tuple[str, ...]
    legal: dict[str, Any]

    @property
    def path(self) -> str:
        """The function as kernels write it."""
        return f"{self.module}.{self.name}" if self.module else self.name


NOT_CALLED = (Getter, TypingForm, forms.Alias, str, float, int, tuple)
SHORT = {"nki.language": "nl", "nki.isa": "nisa", "nki.collectives": "ncc", "nki": "nki"}


@cache
def targets(profile: Profile) -> tuple[Target, ...]:
    """Return every function of every module, and the methods of its classes and of tensors."""
    found: dict[str, Target] = {}
    spaces = provide.namespaces(profile, lambda file, name: len)
    root = "neuronxcc." if profile is Profile.BETA1 else ""
    for module, short in SHORT.items():
        for name in names_of(spaces[f"{root}{module}"]):
            each = Target(short, name, *_parameters(spaces[f"{root}{module}"], name))
            found[each.path] = each
    for name in numpy_names.table().names():
        found[f"np.{name}"] = Target("np", name, (), {})
    for module, table in {**library.modules(), "": builtins.table()}.items():
        for name, value in table.items():
            if isinstance(value, NOT_CALLED):
                continue
            if module not in ("typing_extensions", "__future__"):
                found[f"{module}.{name}"] = Target(module, name, (), {})
                for method, member in _members(value):
                    if isinstance(member, NOT_CALLED) or method == "@keep":
                        continue
                    path = f"{name}.{method}"
                    found[f"{module}.{path}"] = Target(module, path, (), {})
    for tensor in ("f", "h", "r"):
        for method in METHODS:
            found[f"{tensor}.{method}"] = Target(tensor, method, (), {})
    return tuple(found.values())


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of a class; of one that is kernel source, with None in their places."""
    if isinstance(value, Class):
        yield from value.members.items()
    if isinstance(value, Written) and value.files[value.name].text.startswith("class"):
        defined = re.findall(r"(?m)^    (?:def )?(\w+)(?:\(| = )", value.files[value.name].text)
        yield from (
            (name, None) for name in defined if not name.startswith("__") or name[-1] == "_"
        )


METHODS = bindings.words("""
    get_pattern slice select vector_select permute broadcast expand_dim squeeze_dim reshape
    reshape_dim flatten_dims rearrange view reinterpret_cast ap indirect __getitem__
    __setitem__
""")


def _parameters(space: Namespace, name: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    value = space.__dict__.get(name)
    if isinstance(value, Binder):
        row = ROWS.get(value.__name__) or ROWS.get(name)
        if row is not None:
            return tuple(row.parameters), dict(LEGAL.get(row.name, {}))
    source = stdlib.sources().get(name)
    if source is not None:
        signature = re.search(rf"(?ms)^def {name}\((.*?)\)(?: ->.*?)?:", source.text)
        listed = re.findall(r"(?:^|,)\s*\**(\w+)", signature[1] if signature else "")
        return tuple(listed), {}
    try:
        parameters = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return (), {}
    return tuple(p.name for p in parameters if p.kind < p.VAR_POSITIONAL), {}


def kernel(target: Target, seed: int, profile: Profile = Profile.NKI_0_7) -> str:
    """Return a file whose kernel calls the function once."""
    chance = random.Random(f"{target.path} {seed}")
    declared: list[str] = []
    given = _given(target, chance, declared)
    hostile = chance.choice((0, 1, 1, 1, 2, 9)) if given else 0
    for place in chance.sample(range(len(given)), min(hostile, len(given))):
        keyword = given[place].partition("=")[0] + "=" if "=" in given[place][:30] else ""
        given[place] = f"{keyword}{_hostile(chance)}"
    if chance.random() < 0.1:
        given.append(f"{chance.choice(('dtype', 'axis', 'x', 'name', 'mask'))}={_hostile(chance)}")
    call = f"{target.path}({', '.join(given)})"
    uses = ["v = " + call, *_uses(chance)]
    return "\n".join(_lines(profile, declared, uses, target))


def _given(target: Target, chance: random.Random, declared: list[str]) -> list[str]:
    """Return plausible arguments; legal ones for instructions."""
    if target.legal and chance.random() < 0.8:
        return [f"{n}={_legal(n, value, declared)}" for n, value in target.legal.items()]
    if target.parameters:
        count = len(target.parameters)
        used = target.parameters[: max(chance.randrange(count + 1), chance.randrange(count + 1))]
        return [chance.choice(_plausible(name)) for name in used]
    simple = chance.random() < 0.5
    some = ("2", "'x'", "[3, 1]", "f", "(4, 2)", "lambda *a: 1", "int", "0.5", "{'a': 1}")
    count = chance.randrange(4)
    return [chance.choice(some) if simple else _hostile(chance) for _ in range(count)]


def _plausible(name: str) -> list[str]:
    known = next((v for k, v in PLAUSIBLE.items() if k and k in name), PLAUSIBLE[""])
    return known.split()


def _legal(name: str, value: Any, declared: list[str]) -> str:
    if isinstance(value, Tile):
        shape = tuple(num for _, num in value.dims)
        shape = (value.partitions, *shape) if value.buffer.on_chip else shape
        made = f"t{len(declared)}"
        kind = f"dtype=nl.{value.dtype.name}, buffer=nl.{value.buffer.name.lower()}"
        declared.append(f"{made} = nl.ndarray({shape}, {kind})")
        return made
    if isinstance(value, Register):
        return "r"
    if "op" in name and isinstance(value, str):
        return f"nl.{value}"
    return repr(value)


def _hostile(chance: random.Random) -> str:
    return chance.choice(HOSTILE.split()).replace("_", " ").replace("bool ", "bool_")


def _uses(chance: random.Random) -> Iterator[str]:
    """Use the result, so that what it holds has to be what it says."""
    lines = (
        "", "", "print(v)", "w = str(v) + repr(v)", "c = nl.shared_constant(v)", "x = v[0]",
        "nisa.dma_copy(dst=o, src=v)", "x = v == v, v != 1, hash(v)", "x = [v, v] + [v]",
        "for x in v: pass", "x = nl.ndarray(v, dtype=nl.float32, buffer=nl.sbuf)", "x = v()",
        "nisa.tensor_copy(dst=f, src=v)", "x = len(v), v + 1", "x = v.shape, v.dtype",
    )  # fmt: skip
    yield chance.choice(lines)


def _lines(profile: Profile, declared: list[str], uses: list[str], target: Target) -> Iterator[str]:
    root = "neuronxcc." if profile is Profile.BETA1 else ""
    yield f"import {root}nki as nki" if root else "import nki"
    for module, short in SHORT.items():
        if "." in module:
            yield f"import {root}{module} as {short}"
    yield "import numpy as np"
    if target.module and target.module not in (*SHORT.values(), "np", "f", "h", "r"):
        yield f"import {target.module}"
    yield HEAD
    yield "@nki.jit"
    yield f"def kernel(a):{SETUP}"
    for name, text in TENSORS.items():
        yield f"    {name} = nl.ndarray({text})"
    if profile is not Profile.BETA1:
        yield from (f"    nisa.memset({name}, 1)" for name in "fpiub")
        yield "    nisa.dma_copy(dst=h, src=f)"
        yield "    r = nisa.register_alloc(3)"
    for line in declared:
        yield f"    {line}"
        if profile is not Profile.BETA1 and "hbm" not in line:
            yield f"    nisa.memset({line.partition(' ')[0]}, 0)"
    yield from (f"    {line}" for line in uses if line)
    if profile is Profile.BETA1:
        yield "    nl.store(o, nl.load(a))"
    else:
        yield "    nisa.dma_copy(dst=o, src=a)"
    yield "    return o"


Call = Callable[[Target, int], str]
