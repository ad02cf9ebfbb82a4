"""A task: what a kernel must compute, on which inputs, how closely, within which limits.

It is written as TOML. `docs/evaluate.md` describes the format.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

import msgpack
import numpy as np
from numpy.typing import NDArray

from nkic.base import files, profiles
from nkic.base.diagnostics import UsageFailed, bad_argument, bad_value, did_you_mean
from nkic.base.text import clean, size_of
from nkic.machine.dtypes import DTYPES, DType, find, suggest
from nkic.machine.targets import DEFAULT, TARGETS
from nkic.simulate.compare import MODES, ToleranceSettings, out_of_range
from nkic.simulate.inputs import FORMS, MAX_SEED, Generator, parse_generator
from nkic.specialise.inline import parse_type

# ---- Families of unusual inputs, which random normal numbers never resemble ---------------------
# A kernel that drops a guard (the maximum of a softmax, an eps, a mask, a clamp) is right on
# normal numbers and wrong on some of these. Each family replaces the floating-point inputs of a
# case; integers stay, since they are often indices.

Numbers = NDArray[np.float64]
_Make = Callable[[np.random.RandomState, int, DType], Any]


def _with_one(state: np.random.RandomState, values: Numbers, value: float) -> Numbers:
    values[state.randint(0, len(values))] = value
    return values


FAMILIES: Mapping[str, _Make] = {
    "large": lambda s, n, dtype: s.standard_normal(n) * min(1e4, dtype.highest / 64),
    "tiny": lambda s, n, _: s.standard_normal(n) * 2.0**-12,
    "zeros": lambda s, n, _: np.where(s.randint(0, 2, n) == 0, 0.0, -0.0),
    "equal": lambda _s, n, _: np.full(n, 1.5),
    "sorted": lambda s, n, _: np.sort(s.standard_normal(n)),
    "one_hot": lambda s, n, _: _with_one(s, np.zeros(n), 1.0),
    "ratios": lambda s, n, _: (
        np.where(s.randint(0, 2, n) == 0, 1.0, -1.0) * 2.0 ** s.uniform(-12, 8, n)
    ),
    "infinite": lambda s, n, _: _with_one(s, s.standard_normal(n), np.inf),
    "nan": lambda s, n, _: _with_one(s, s.standard_normal(n), np.nan),
    "denormal": lambda s, n, dtype: s.randint(1, 8, n) * dtype.smallest,
}


def values_of(family: str, name: str, dtype: DType, count: int, seed: int) -> Numbers:
    """Return a family's numbers for an input; the same on every machine."""
    state = np.random.RandomState(np.array([seed, crc32(f"{family} {name}".encode())], np.uint32))
    return np.asarray(FAMILIES[family](state, count, dtype), np.float64)


# --------------------------------------------------------------------------------------------------

MAX_BYTES = 1 << 20  # size of a task's file
MAX_REFERENCE = 1 << 30  # size of the file of its reference
SECONDS, MEMORY = 120.0, 4 << 30  # limits of a candidate, unless the task sets others
LONGEST = 1_000_000  # seconds
VERSIONS = (*profiles.LABELS.values(), *profiles.ALIASES)
REFERENCES = ("function", "npz", "kernel")
MEASURES = {key for keys in MODES.values() for key in keys} | {"mode", "dtype"}
KEYS: Mapping[str, tuple[str, ...]] = {
    "a task": (
        *("name", "kernels", "target", "nki", "optimise", "reference", "outputs", "case"),
        *("families", "required_families", "may_write", "narrowest", "limits", "equal_nan"),
    ),
    "[reference]": (*REFERENCES, "inputs"),
    "[limits]": ("seconds", "memory"),
    "a case": ("name", "inputs", "consts", "values", "grid", "lnc", "seeds", "hidden", "sizes"),
}


class ArrayType(NamedTuple):
    dtype: DType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Case:
    """Shapes, types and constants of one specialisation, and the seeds of its inputs.

    `values` are generators by input; an input without one is normally distributed. A hidden case
    is one that the candidate's author does not know: the evaluation names it, so do not show it.
    `sizes` are the choices for names in the shapes of a hidden case, `types` its inputs with these
    names; until a secret has chosen, `inputs` have the first choice (`Task.cases_for`).
    """

    name: str
    inputs: Mapping[str, ArrayType]
    consts: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Generator] = field(default_factory=dict)
    grid: tuple[int, ...] | None = None
    lnc: int = 1
    seeds: tuple[int, ...] = (0,)
    hidden: bool = False
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)

    def of_sizes(self, chosen: Mapping[str, int]) -> Case:
        return replace(self, inputs=_inputs(self.name, self.types, chosen), sizes={}, types={})

    def measured_as(self, output: DType) -> DType:
        """Return the type whose tolerance and steps an output has.

        A candidate chooses the output's type, and not its measure: what is less precise than all
        inputs is compared as the least precise of them. Float8 is how weights are kept, and counts
        only if there is no other.
        """
        floats = [d for d in (kind.dtype for kind in self.inputs.values()) if _is_plain_float(d)]
        wide = [dtype for dtype in floats if dtype.size > 1]
        least = min(wide or floats, key=lambda dtype: dtype.mantissa_bits, default=output)
        is_less = _is_plain_float(output) and output.mantissa_bits < least.mantissa_bits
        return least if is_less else output


def _is_plain_float(dtype: DType) -> bool:
    return dtype.is_float and dtype.lanes == 1


@dataclass(frozen=True)
class Task:
    """What a kernel must compute.

    `kernels` are the names to look for, in order of preference; none means the only kernel of the
    file. `reference` is a kind of `REFERENCES` and where it is; `inputs` names the function of the
    reference's file that makes the inputs, if one does. `families` are the kinds of unusual inputs
    on which a candidate is compared for information; it must be right on `required`. `types` are
    those that outputs must have, by name ("" stands for all others). `may_write` names the inputs
    that a kernel may update. `narrowest` is the narrowest float type that may be on a path to an
    output; None allows all.

    A task stands alone: `toml` and `files`, the contents of its own file and of those that it
    names, make it anywhere (`task_of`), and `sha256` is the hash of both.
    """

    name: str
    cases: tuple[Case, ...]
    reference: tuple[str, str]
    inputs: str = ""
    kernels: tuple[str, ...] = ()
    target: str = DEFAULT.name
    nki: str | None = None
    optimise: int | None = None
    outputs: ToleranceSettings = field(default_factory=ToleranceSettings)
    types: Mapping[str, DType] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    may_write: frozenset[str] = frozenset()
    narrowest: DType | None = None
    seconds: float = SECONDS
    memory: int = MEMORY
    folder: Path = field(default_factory=Path.cwd)
    toml: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    sha256: str = ""

    @property
    def reference_file(self) -> str:
        """The name of the reference's file, relative to the task's folder."""
        return self.reference[1].partition(":")[0]

    def must_be_as_read(self) -> None:
        """Raise `UsageFailed` for a task that was changed after it was read.

        Its contents and their hash are then those of another task.
        """
        if task_of(self.toml, self.files, self.folder) != self:
            text = (
                f"the task `{self.name}` was changed after it was read, so its hash is not its own"
            )
            raise bad_value(text, "write the change into its file")

    def cases_for(self, secret: bytes) -> tuple[Case, ...]:
        """Return the cases that the holder of a secret judges on, with the sizes that it chooses.

        Without a secret, cases whose sizes it would choose are left out. Hidden cases are last, so
        that what is said of the others tells nothing of them.
        """
        found = (
            case.of_sizes({n: s[self._drawn(secret, case, n) % len(s)] for n, s in sizes.items()})
            if (sizes := case.sizes)
            else case
            for case in self.cases
            if secret or not case.sizes
        )
        return tuple(sorted(found, key=lambda case: case.hidden))

    def hidden_seed(self, secret: bytes, case: Case) -> int:
        """Return a seed that nobody without the secret can know, and so cannot special-case."""
        return self._drawn(secret, case) & MAX_SEED

    def _drawn(self, secret: bytes, case: Case, *what: str) -> int:
        words = " ".join((self.sha256, case.name, *what)).encode()
        return int.from_bytes(hmac.digest(secret, words, "sha256")[:4], "big")


def read_task(path: str | os.PathLike[str]) -> Task:
    """Read a task's file and what it names. Raises `UsageFailed`, which names the key."""
    name = os.fspath(path)
    folder = Path(name).absolute().parent
    return task_of(files.read_bytes(name, MAX_BYTES), None, folder, name)


def task_of(
    toml: bytes,
    contents: Mapping[str, bytes] | None,
    folder: Path | None = None,
    name: str = "the task",
) -> Task:
    """Return the task of a file's contents and those of the files that it names.

    Without `contents`, they are read from `folder`. Raises `UsageFailed`, which names the key.
    """
    folder = folder or Path.cwd()
    try:
        task = _Reader(files.toml(toml.decode())).task(folder)
    except ValueError as error:
        python = name.endswith(".py")
        help = "`evaluate` takes the task first, `tune` the kernel" if python else ""
        raise bad_argument(f"{name} is not TOML: {error}", help) from None
    except UsageFailed as failed:
        (found,) = failed.diagnostics
        raise bad_value(f"{name}: {found.message}", found.help or "") from None
    wanted = task.reference_file
    if contents is None:
        if not files.is_file(folder / wanted):
            text = f"{name}: [reference]: there is no file `{clean(wanted[:200])}`"
            raise bad_value(text, f"write the file's name as seen from {folder}")
        contents = {wanted: files.read_bytes(str(folder / wanted), MAX_REFERENCE)}
    elif wanted not in contents:
        raise bad_value(f"{name}: [reference]: `{wanted}` is not among its files", "")
    digest = sha256(toml)
    digest.update(sha256(contents[wanted]).digest())
    return replace(task, toml=toml, files=contents, sha256=digest.hexdigest())


class _Reader:
    """Checks a task's tables."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table
        _only("a task", table)

    def task(self, folder: Path) -> Task:
        table = self.table
        cases = table.get("case", [])
        if not isinstance(cases, list) or not cases:
            _refuse("there is no case", "add [[case]] with inputs = { x = 'f32[128,512]' }")
        limits = _table(table, "limits")
        _only("[limits]", limits)
        known = (*FAMILIES,)
        found = tuple(self._case(n, case) for n, case in enumerate(cases))
        measures, types = self._outputs()
        names = [case.name for case in found]
        if twice := next((name for name in names if names.count(name) > 1), None):
            _refuse(f"two cases are called `{clean(twice)}`", "give each a name of its own")
        inputs = sorted({name for case in found for name in case.inputs})
        may_write = _names(table, "may_write")
        for name in may_write:
            if name not in inputs:
                _refuse(f"`may_write` has `{name}`, which is no input", did_you_mean(name, inputs))
        return Task(
            name=_text(table, "name") or folder.name,
            cases=found,
            reference=self._reference(),
            inputs=_text(_table(table, "reference"), "inputs") or "",
            kernels=_names(table, "kernels"),
            target=_one_of("target", _text(table, "target") or DEFAULT.name, TARGETS),
            nki=_one_of("nki", _text(table, "nki"), VERSIONS),
            optimise=_one_of("optimise", table.get("optimise"), (0, 1, 2)),
            outputs=measures,
            types=types,
            families=tuple(_one_of("families", n, known) for n in _names(table, "families", known)),
            required=tuple(
                _one_of("required_families", n, known) for n in _names(table, "required_families")
            ),
            may_write=frozenset(may_write),
            narrowest=self._narrowest(),
            seconds=_number(limits, "seconds", SECONDS),
            memory=_bytes(limits.get("memory", MEMORY)),
            folder=folder,
        )

    def _reference(self) -> tuple[str, str]:
        reference = _table(self.table, "reference")
        _only("[reference]", reference)
        found = [(kind, reference[kind]) for kind in REFERENCES if kind in reference]
        if len(found) != 1 or not isinstance(found[0][1], str):
            _refuse(
                "[reference] must say one thing: function, npz or kernel",
                "such as function = 'reference.py:softmax'",
            )
        return found[0]

    def _outputs(self) -> tuple[ToleranceSettings, dict[str, DType]]:
        """Read `[outputs]`: settings and types for all outputs, and tables for single ones."""
        by_name, types = dict[str, dict[str, Any]](), dict[str, DType]()
        table = _table(self.table, "outputs")
        tables = {"": {k: v for k, v in table.items() if not isinstance(v, dict)}}
        tables |= {name: rule for name, rule in table.items() if isinstance(rule, dict)}
        where_of = {name: f"[outputs.{clean(name)}]" if name else "[outputs]" for name in tables}
        for name, rule in tables.items():
            where = where_of[name]
            for key, value in rule.items():
                if key not in MEASURES:
                    _refuse(f"{where} has no `{key}`", did_you_mean(key, MEASURES))
                if key == "dtype":
                    dtype = find(value) if isinstance(value, str) else None
                    if dtype is None:
                        near = "".join(f"did you mean `{n}`?" for n in suggest(str(value)))
                        help = near or f"use one of {', '.join(DTYPES)}"
                        _refuse(f"{where} dtype is {value!r}, which is no type of NKI", help)
                    types[name] = dtype
                    continue
                if key == "mode":
                    _one_of(f"{where} mode", value, MODES)
                elif wanted := out_of_range(key, value):
                    _refuse(f"{where} {key} is {value!r}; it must be {wanted}")
                by_name.setdefault(key, {})[name] = value
        settings = ToleranceSettings(by_name, _flag(self.table, "equal_nan"))
        modes = {name: settings.mode(name) for name in tables}
        for key, name in settings.ignored(modes):
            text = f"{where_of[name]} {key} does not apply to mode = '{modes[name]}'"
            _refuse(text, f"that uses {', '.join(MODES[modes[name]]) or 'no number'}")
        return settings, types

    def _narrowest(self) -> DType | None:
        name = _one_of("narrowest", _text(self.table, "narrowest"), DTYPES)
        return DTYPES[name] if name else None

    def _case(self, number: int, case: Any) -> Case:
        if not isinstance(case, dict):
            _refuse("`case` is not a list of tables", "write [[case]]")
        _only("a case", case)
        name = _text(case, "name") or f"case{number}"
        types = {key: str(value) for key, value in _table(case, "inputs").items()}
        sizes = self._sizes(name, case, types)
        inputs = _inputs(name, types, {size: choices[0] for size, choices in sizes.items()})
        seeds = case.get("seeds", [0])
        if not isinstance(seeds, list) or not all(_is_seed(seed) for seed in seeds) or not seeds:
            _refuse(f"case {name}: `seeds` must be a list of whole numbers up to {MAX_SEED}")
        grid, lnc = case.get("grid"), _one_of(f"case {name}: lnc", case.get("lnc", 1), (1, 2))
        grid = grid if isinstance(grid, list) or grid is None else [grid]
        if not all(type(n) is int and n > 0 for n in grid or ()) or grid == []:
            _refuse(f"case {name}: `grid` must be a whole number above 0, or a list of them")
        try:
            msgpack.packb(case)  # as it travels to a candidate's process
        except (TypeError, ValueError, OverflowError) as error:
            _refuse(f"case {name}: {error}", "write numbers, strings, lists and tables of these")
        return Case(
            name,
            inputs,
            _table(case, "consts"),
            {key: _generator(name, key, v, inputs) for key, v in _table(case, "values").items()},
            tuple(grid) if grid is not None else None,
            lnc,
            tuple(seeds),
            _flag(case, "hidden"),
            sizes,
            types if sizes else {},
        )

    def _sizes(
        self, name: str, case: dict[str, Any], types: Mapping[str, str]
    ) -> dict[str, tuple[int, ...]]:
        sizes = _table(case, "sizes")
        if sizes and not case.get("hidden"):
            _refuse(f"case {name}: `sizes` are for a hidden case", "write hidden = true")
        if sizes and ("npz" in (made := _table(self.table, "reference")) or "inputs" in made):
            text = f"case {name}: `sizes` need a reference that takes any shape"
            _refuse(text, "name a function or a kernel, and generators in `values`")
        for size, choices in sizes.items():
            if not isinstance(choices, list) or not all(type(n) is int and n > 0 for n in choices):
                text = f"case {name}: `{size}` must be a list of whole numbers above 0"
                _refuse(text, "write [96, 160, 224]")
            if len({*choices}) < 2:
                _refuse(f"case {name}: `{size}` has no two choices", "write [96, 160, 224]")
            if not any(size in _NAME.findall(text.partition("[")[2]) for text in types.values()):
                _refuse(f"case {name}: no shape has `{size}`", f"as in 'f32[128,{size}]'")
        first = {size: choices[0] for size, choices in sizes.items()}
        for size, choices in sizes.items():
            for choice in choices:
                _inputs(name, types, {**first, size: choice})
        return {size: tuple(choices) for size, choices in sizes.items()}


_NAME = re.compile(r"\b[^\W\d]\w*")


def _inputs(case: str, types: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, ArrayType]:
    """Read the types of a case's inputs, with sizes for the names in their shapes."""
    found = {}
    for name, text in types.items():
        head, bracket, shape = text.partition("[")
        chosen = [f"{size} = {sizes[size]}" for size in _NAME.findall(shape) if size in sizes]
        written = f" = {text!r} with {', '.join(chosen)}" if chosen else ""
        shape = _NAME.sub(lambda match: str(sizes.get(match[0], match[0])), shape)
        found[name] = _type(f"{head}{bracket}{shape}", f"case {case}: {name}{written}")
    return found


def _type(text: str, where: str) -> ArrayType:
    found = parse_type(text, where)
    if found.dtype is None or not found.shape:
        _refuse(f"{where} is {text!r}", "write the element type and the sizes: f32[128,512]")
    return ArrayType(found.dtype, tuple(found.shape))


def _generator(case: str, name: str, value: Any, inputs: Mapping[str, ArrayType]) -> Generator:
    if name not in inputs:
        _refuse(f"case {case}: values of `{name}`, which is no input", did_you_mean(name, inputs))
    generator = parse_generator(str(value))
    if generator is None:
        _refuse(f"case {case}: {name} = {value!r} is no generator", f"use {FORMS}")
    return generator


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SEED


def _only(what: str, table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in KEYS[what]:
            _refuse(f"{what} has no `{key}`", did_you_mean(key, KEYS[what]))


def _table(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        _refuse(f"`{key}` is not a table", f"write [{key}]")
    return value


def _text(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        _refuse(f"`{key}` is {value!r}; it must be a string")
    return value


def _names(table: Mapping[str, Any], key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    value = table.get(key, list(default))
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        _refuse(f"`{key}` is {value!r}; it must be a list of names")
    return tuple(value)


def _flag(table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        _refuse(f"`{key}` is {value!r}; it must be true or false")
    return value


def _one_of(key: str, value: Any, choices: Any) -> Any:
    if value is not None and not any(type(value) is type(c) and value == c for c in choices):
        help = did_you_mean(str(value), names := [*map(str, choices)])
        help = help or f"use one of {', '.join(names)}"
        _refuse(f"`{key}` is {value!r}", help)
    return value


def _number(table: Mapping[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if type(value) not in (int, float) or not 0 < value <= LONGEST:
        _refuse(f"`{key}` is {value!r}; it must be a number above 0, up to {LONGEST:,}")
    return float(value)


def _bytes(value: Any) -> int:
    try:
        found = size_of(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, int) or isinstance(found, bool) or found <= 0:
        _refuse(f"`memory` is {value!r}", "write it as '4GiB'")
    return found


def _refuse(text: str, help: str = "") -> NoReturn:
    raise bad_value(text, help)
