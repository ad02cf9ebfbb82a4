"""Put a changed module into a running interpreter: its functions get the changed code.

That saves most of the cost of a mutant: a start of Python and the collection of tests. It cannot
test code that ran before the change, while modules were imported: `Live.early` reports such code.
"""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from types import CodeType, FrameType, FunctionType
from typing import NamedTuple

from tests.mutate.rooms import ROOMS, ROOT

HOME = f"{ROOT}/nkic/"
Place = tuple[str, str, int]  # file, qualified name, first line


def name_of(code: CodeType) -> str:
    """Return the name of a piece of code in all processes, even if lines are added above it."""
    return f"{code.co_filename.removeprefix(f'{ROOT}/')}:{code.co_qualname}"


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Calls:
    """Record which code of the project is entered, with a trace function that traces no lines."""

    def __init__(self) -> None:
        self.entered: dict[int, CodeType] = {}  # by identity: hashing code is slow

    def __call__(self, frame: FrameType, _event: str, _argument: object) -> None:
        self.entered[id(frame.f_code)] = frame.f_code

    def names(self) -> set[str]:
        """Return the names of all entered code in nkic/."""
        codes = self.entered.values()
        return {name_of(code) for code in codes if code.co_filename.startswith(HOME)}


class Caches:
    """Caches of the rooms' functions, which a test must find empty."""

    def __init__(self) -> None:
        files = {str(path) for room in ROOMS.values() for path in room.modules()}
        self.found = [
            one
            for one in gc.get_objects()
            if isinstance(one, _lru_cache_wrapper)
            and getattr(one.__wrapped__, "__code__", _NOTHING).co_filename in files
        ]

    def empty(self) -> None:
        for one in self.found:
            one.cache_clear()


_NOTHING = compile("", "", "exec")


class Pair(NamedTuple):
    """One piece of code before and after the change, and whether it itself is different."""

    before: CodeType
    after: CodeType
    differs: bool


def _parts(code: CodeType) -> list[CodeType]:
    return [part for part in code.co_consts if isinstance(part, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    # A constant's type counts: 1, 1.0 and True are equal.
    consts = [(type(c), c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, code.co_names, code.co_freevars, code.co_cellvars, consts


def _walk(real: CodeType, plain: CodeType, changed: CodeType) -> Iterator[Pair]:
    yield Pair(real, changed, _own(plain) != _own(changed))
    parts = [_parts(code) for code in (real, plain, changed)]
    if len(parts[1]) == len(parts[2]):  # else the change took a function or a comprehension away
        for inner in zip(*parts, strict=True):
            yield from _walk(*inner)


def pairs(path: str, text: str) -> list[Pair]:
    """Pair the code of a module with that of its changed text, outer code first."""
    file = ROOT / path
    source = file.read_text("utf-8")
    plain = ast.unparse(ast.parse(source))  # as the changed text was made
    return list(_walk(*(compile(t, str(file), "exec") for t in (source, plain, text))))


def changed(path: str, text: str) -> set[str]:
    """Return the innermost code that a change affects."""
    return {name_of(pair.before) for pair in pairs(path, text) if pair.differs}


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in _parts(code):
        yield from _inside(part)


class Live:
    """The functions of the project in this interpreter, and the code that ran while it was
    imported.
    """

    def __init__(self, early: set[str]) -> None:
        self.early = early
        self.functions: dict[Place, list[FunctionType]] = defaultdict(list)
        for found in gc.get_objects():
            if type(found) is FunctionType and found.__code__.co_filename.startswith(HOME):
                self.functions[_place(found.__code__)].append(found)

    def put(self, path: str, text: str) -> int:
        """Change the code of all functions that contain a difference; return their number."""
        made = pairs(path, text)
        touched = {id(pair.before) for pair in made if pair.differs}
        count = 0
        for before, after, _ in made:
            if any(id(code) in touched for code in _inside(before)):
                for function in self.functions.get(_place(before), ()):
                    function.__code__ = after
                    count += 1
        return count
