"""JSON Schemas (draft 2020-12) of a task's file and of an evaluation, for those who write and read
them. They are made from what reads and writes, so that neither can say something else.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from nkic.base import files
from nkic.base.diagnostics import bad_argument, bad_value
from nkic.compiler.pipeline import PRINTED
from nkic.judge.evaluation import SCHEMA, STATEMENT, CaseResult, Evaluation
from nkic.judge.judge import Candidate, Judge
from nkic.judge.task import FAMILIES, KEYS, MEASURES, REFERENCES, Task, task_of
from nkic.machine.dtypes import ALIASES, DTYPES, find
from nkic.machine.targets import TARGETS
from nkic.simulate.compare import MODES

Json = Mapping[str, Any]
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT, _NUMBER, _COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
_FLAG, OBJECT = {"type": "boolean"}, {"type": "object"}
_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: TEXT,
    float: _NUMBER,
    int: _COUNT,
    bool: _FLAG,
    NoneType: {"type": "null"},
}


def task_schema() -> dict[str, Any]:
    """Return the schema of a task's file, read as TOML."""
    families = list_of({"enum": list(FAMILIES)})
    words = {"mode": _one_of(MODES), "dtype": _one_of([*DTYPES, *ALIASES])}
    measures = dict.fromkeys(sorted(MEASURES - {*words}), _NUMBER) | words
    case: dict[str, Json] = {
        "name": TEXT,
        "inputs": _map(TEXT),
        "consts": OBJECT,
        "values": _map(TEXT),
        "grid": {"anyOf": [_COUNT, list_of(_COUNT)]},
        "lnc": _COUNT,
        "seeds": list_of(_COUNT, 1),
        "hidden": _FLAG,
        "sizes": _map(list_of({**_COUNT, "minimum": 1}, 2)),
    }
    reference = _closed("[reference]", dict.fromkeys(KEYS["[reference]"], TEXT))
    limits: dict[str, Json] = {
        "seconds": {**_NUMBER, "exclusiveMinimum": 0},
        "memory": {"type": ["string", "integer"]},
    }
    task: dict[str, Json] = {
        "name": TEXT,
        "kernels": list_of(TEXT),
        "target": _one_of(TARGETS),
        "nki": TEXT,
        "optimise": {"enum": [0, 1, 2]},
        "reference": {**reference, "oneOf": [{"required": [kind]} for kind in REFERENCES]},
        "outputs": {
            **OBJECT,
            "properties": measures,
            "additionalProperties": {
                **OBJECT,
                "properties": measures,
                "additionalProperties": False,
            },
        },
        "case": list_of(_closed("a case", case), 1),
        "families": families,
        "required_families": families,
        "may_write": list_of(TEXT),
        "narrowest": _one_of(DTYPES),
        "limits": _closed("[limits]", limits),
        "equal_nan": _FLAG,
    }
    return {
        "$schema": _DRAFT,
        "title": "A task of `nkic evaluate`",
        **_closed("a task", task),
        "required": ["reference", "case"],
    }


def evaluation_schema() -> dict[str, Any]:
    """Return the schema of an evaluation. Later versions may add fields to any object."""
    schema = _of(Evaluation)
    properties = schema["properties"]
    for name in ("cases", "families"):
        result = properties[name]["items"]
        result["properties"][STATEMENT] = TEXT
        result["required"].append(STATEMENT)
    about_the_machine = {name: properties.pop(name) for name in ("seconds", "mib")}
    schema["required"] = [*properties]
    properties |= {
        "ended": {"enum": ["", "time", "memory", "process"]},
        "schema": {"const": SCHEMA},
        "status": {"enum": ["correct", "wrong", "cheat", "fails", "refused", "compiled"]},
        "host": {**OBJECT, "properties": about_the_machine},
    }
    schema["required"] += ["schema", "status"]
    return {"$schema": _DRAFT, "title": "An evaluation of `nkic evaluate`", **schema}


def _closed(what: str, properties: Mapping[str, Json]) -> dict[str, Any]:
    """Return the schema of a table with exactly the keys that the reader knows."""
    known = {key: properties[key] for key in KEYS[what]}
    return {**OBJECT, "properties": known, "additionalProperties": False}


def _of(kind: Any) -> dict[str, Any]:
    """Return the schema of what a type's values are in JSON; of a dataclass, all its fields."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        properties = {field.name: _of(hints[field.name]) for field in fields(kind)}
        return {**OBJECT, "properties": properties, "required": [*properties]}
    origin, of = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return {"anyOf": [*map(_of, of)]}
    if origin is Sequence:
        return list_of(_of(of[0]))
    if origin is Mapping:
        return OBJECT if of[1] is Any else _map(_of(of[1]))
    return _PLAIN[kind]


def list_of(of: Json, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": of, **({"minItems": least} if least else {})}


def _map(of: Json) -> dict[str, Any]:
    return {**OBJECT, "additionalProperties": of}


def _one_of(names: Iterable[str]) -> dict[str, Any]:
    return {"enum": list(names)}


# ------------------------------------------------------------------------------------------------
# Tasks, candidates and results in the form of FlashInfer-Bench: definitions, workloads, solutions
# and traces (FlashInfer-Bench documentation, "FlashInfer Trace").
#
# A definition with its workloads becomes a task, each workload a case. Its reference may use NumPy
# or torch: what `run` gets is what it is written for. The outputs of a kernel are those of the
# definition in its order.

MAX_BYTES = 64 << 20  # size of a file
REFERENCE = "reference.py"
_RUN = """

def nkic_reference(**arrays):
    types, outputs, scalars = {types!r}, {outputs!r}, {scalars!r}
    if {torch}:
        import torch
        names = {{"float8_e4m3": "float8_e4m3fn"}}
        given = {{
            name: torch.from_numpy(array).to(getattr(torch, names.get(types[name], types[name])))
            for name, array in arrays.items()
            if name in types
        }}
    else:
        given = {{name: array for name, array in arrays.items() if name in types}}
    found = run(**given, **{{name: arrays[name] for name in scalars}})
    if not isinstance(found, dict):
        found = dict(zip(outputs, found if isinstance(found, (tuple, list)) else [found]))
    plain = lambda value: (
        value.detach().cpu().double().numpy() if hasattr(value, "cpu") else value
    )
    return {{f"output_{{n}}": plain(found[name]) for n, name in enumerate(outputs)}}
"""


class Suite(NamedTuple):
    """A definition, its workloads, their task, and the types of its outputs as the task names
    them: those that a definition's file has go by their order.
    """

    definition: Json
    workloads: Sequence[Json]
    task: Task
    types: Mapping[str, str]


def read_suite(path: str, workloads: str) -> Suite:
    """Return the suite of a definition's file and of its workloads' file, of JSON lines.

    Raises `UsageFailed`.
    """
    definition = _json(path, files.read_bytes(path, MAX_BYTES))
    lines = files.read_bytes(workloads, MAX_BYTES).splitlines()
    found = [_json(workloads, line) for line in lines if line.strip()]
    name = definition.get("name")
    mine = [each.get("workload", each) for each in found if each.get("definition", name) == name]
    if not mine:
        raise bad_value(f"{workloads}: no workload is one of `{name}`", "")
    try:
        specs = enumerate(definition["outputs"].values())
        types = {f"output_{number}": _dtype(spec) for number, spec in specs}
        return Suite(definition, mine, _task(definition, mine, types), types)
    except (KeyError, TypeError, AttributeError) as error:
        text = f"{path} with {workloads}: {type(error).__name__}: {error}"
        help = "a definition needs name, axes, inputs, outputs and reference; a workload uuid, axes"
        raise bad_value(text, f"{help} and inputs") from None


def _dtype(spec: Json) -> str:
    if not isinstance(dtype := spec["dtype"], str):
        raise TypeError(f"the dtype {dtype!r} is no text")
    return dtype


def _task(definition: Json, workloads: Sequence[Json], outputs: Mapping[str, str]) -> Task:
    inputs, reference = definition["inputs"], definition["reference"]
    tensors = {name: spec for name, spec in inputs.items() if spec.get("shape") is not None}
    types = {name: _dtype(spec) for name, spec in tensors.items()}
    wrapper = _RUN.format(
        types=types,
        outputs=list(definition["outputs"]),
        scalars=[name for name in inputs if name not in tensors],
        torch=_names_torch(reference),
    )
    lines = [f"name = {json.dumps(definition['name'])}", "[reference]"]
    lines.append(f'function = "{REFERENCE}:nkic_reference"')
    for name, text in outputs.items():
        if (dtype := find(text)) is not None:  # others, no kernel returns
            lines += [f"[outputs.{name}]", f'dtype = "{dtype.name}"']
    for workload in workloads:
        lines += ["[[case]]", *_case(definition, tensors, workload)]
    text = "\n".join(lines) + "\n"
    contents = {REFERENCE: (reference + wrapper).encode()}
    return task_of(text.encode(), contents, name=f"the task of `{definition['name']}`")


def _names_torch(reference: str) -> bool:
    """Whether the code of a text imports torch, also by a call that names it."""
    try:
        nodes = [*ast.walk(ast.parse(reference))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it is told when it is imported
        return False
    named = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    named |= {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    named |= {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom) and not n.level}
    return any(name.partition(".")[0] == "torch" for name in named)


def _case(definition: Json, tensors: Mapping[str, Json], workload: Json) -> Iterable[str]:
    """Yield the lines of a case."""
    sizes = {
        name: axis["value"] if axis.get("type") == "const" else workload["axes"].get(name)
        for name, axis in definition["axes"].items()
    }
    if not isinstance(uuid := workload["uuid"], str):
        raise TypeError(f"the uuid {uuid!r} of a workload is no text")
    yield f"name = {json.dumps(uuid)}"
    given = workload.get("inputs", {})
    types = {}
    for name, spec in tensors.items():
        kind = given.get(name, {}).get("type", "random")
        if kind != "random":
            text = f"workload {uuid}: `{name}` is {kind} input"
            raise bad_value(text, "only random inputs and scalars are supported")
        missing = [axis for axis in spec["shape"] if sizes.get(axis) is None]
        if missing:
            raise bad_value(f"workload {uuid}: no size for axis `{missing[0]}`", "")
        types[name] = f"{spec['dtype']}[{','.join(str(sizes[axis]) for axis in spec['shape'])}]"
    yield f"inputs = {_table(types)}"
    scalars = {
        name: given.get(name, {}).get("value")
        for name in definition["inputs"]
        if name not in tensors
    }
    for name, value in scalars.items():
        if type(value) not in _SCALARS or (type(value) is int and not -(2**63) <= value < 2**64):
            text = f"workload {uuid}: the value of the scalar `{name}` is {value!r}"
            raise bad_value(text, "it must be a number of at most 64 bits, true or false")
    if scalars:
        yield f"consts = {_table(scalars)}"


def _table(values: Mapping[str, Any]) -> str:
    rows = (  # TOML has another infinity and NaN than JSON
        f"{json.dumps(k)} = {v if isinstance(v, float) else json.dumps(v)}"
        for k, v in values.items()
    )
    return f"{{ {', '.join(rows)} }}"


def read_solution(path: str) -> Candidate:
    """Return the candidate of a solution's file. Raises `UsageFailed` unless it is one kernel."""
    solution = _json(path, files.read_bytes(path, MAX_BYTES))
    try:
        entry, _, kernel = solution["spec"]["entry_point"].rpartition("::")
        sources = {source["path"]: source["content"] for source in solution["sources"]}
        name = solution["name"]
        if not all(isinstance(text, str) for text in (name, *sources, *sources.values())):
            raise TypeError("name, path and content are texts")
        data = {path: content.encode() for path, content in sources.items()}
    except (KeyError, TypeError, AttributeError, UnicodeEncodeError) as error:
        text = f"{path} is no solution: {type(error).__name__}: {error}"
        raise bad_value(text, "it needs name, spec.entry_point and sources") from None
    if set(sources) != {entry}:
        text = f"{path}: `{name}` has {len(sources)} files; its entry point is in `{entry}`"
        raise bad_value(text, "put the kernel into one file")
    return Candidate(name, data[entry], kernel)


# A task and its candidates, written in this form. A definition has one function as its reference,
# and random inputs; what a task says beyond that (tolerances, seeds) has no place in it.

_SCALARS = {bool: "bool", int: "int32", float: "float32"}
_TYPES = {  # those that torch has, too: it has no float8_e4m3 with infinities
    *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("int32", "int16", "int8"),
}
# Tensors are made of float64, since they take neither ml_dtypes' types nor negative strides.
_AS_RUN = """

def run({parameters}):
    import inspect
    import sys

    import numpy

    inputs, scalars = {{{inputs}}}, {{{scalars}}}
    takes = inspect.signature(nkic_function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in takes.values()):
        takes = scalars
    like = inputs[{widest!r}]
    is_tensor = hasattr(like, "new_tensor")
    for name, value in inputs.items() if is_tensor else ():
        value = value.float() if value.is_floating_point() else value
        inputs[name] = value.cpu().numpy()
    given = {{name: value for name, value in scalars.items() if name in takes}}
    found = nkic_function(**inputs, **given)
    found = tuple(found.values()) if isinstance(found, dict) else found
    found = found if isinstance(found, (tuple, list)) else (found,)
    if is_tensor:
        kinds = sys.modules[type(like.dtype).__module__]
        types = [like.dtype if t == {like!r} else getattr(kinds, t) for t in {types}]
        plain = [numpy.array(each, numpy.float64) for each in found]
        found = [like.new_tensor(each, dtype=kind) for each, kind in zip(plain, types)]
    return found[0] if len(found) == 1 else tuple(found)
"""


def suite_of(judge: Judge) -> Suite:
    """Return the suite of a task: its cases that are not hidden are the workloads.

    Outputs have the type of the most precise input, where the task leaves it to the candidate.
    Raises `UsageFailed` for what a definition cannot say.
    """
    task, cases = judge.task, [case for case in judge.cases if not case.hidden]
    kind, where = task.reference
    is_plain = cases and all(case.inputs and not case.values for case in cases)
    if kind != "function" or task.inputs or not is_plain:
        text = f"the task `{task.name}` is no definition of FlashInfer-Bench"
        raise bad_value(text, "that has a function as its reference, and random inputs")
    first, axes = cases[0], dict[tuple[int, ...], str]()

    def spec(shapes: Sequence[tuple[int, ...]], dtype: str) -> dict[str, Any]:
        if len({*map(len, shapes)}) > 1 or dtype not in _TYPES:
            text = f"the task `{task.name}`: a definition has no {dtype} of shapes {shapes}"
            raise bad_value(text, f"as many sizes in all cases, of {', '.join(sorted(_TYPES))}")
        names = [axes.setdefault(sizes, f"axis{len(axes)}") for sizes in zip(*shapes, strict=True)]
        return {"shape": names, "dtype": dtype}

    forms = {(*tuple((n, k.dtype) for n, k in c.inputs.items()), *c.consts) for c in cases}
    if len(forms) > 1 or not all(type(v) in _SCALARS for c in cases for v in c.consts.values()):
        text = f"the cases of the task `{task.name}` have different inputs, or other constants"
        raise bad_value(text, "a definition has the same inputs in all, and numbers")
    inputs = {
        n: spec([c.inputs[n].shape for c in cases], k.dtype.name) for n, k in first.inputs.items()
    }
    scalars = {n: {"shape": None, "dtype": _SCALARS[type(v)]} for n, v in first.consts.items()}
    floats = [(k.dtype.mantissa_bits, n) for n, k in first.inputs.items() if k.dtype.is_float]
    widest = max(floats, default=(0, next(iter(inputs))))[1]
    types = {"": inputs[widest]["dtype"]} | {n: dtype.name for n, dtype in task.types.items()}
    expected = [judge.reference.expected(case, case.seeds[0], None) for case in cases]
    outputs = {
        n: spec([e[n].shape for e in expected], types.get(n, types[""])) for n in expected[0]
    }
    run = _AS_RUN.format(
        parameters=", ".join([*inputs, *scalars]),
        inputs=", ".join(f"{n!r}: {n}" for n in inputs),
        scalars=", ".join(f"{n!r}: {n}" for n in scalars),
        widest=widest,
        like=inputs[widest]["dtype"],
        types=[output["dtype"] for output in outputs.values()],
    )
    name = where.partition(":")[2] or "reference"
    source = task.files[task.reference_file].decode("utf-8", "replace")
    definition = {
        "name": task.name,
        "op_type": task.name,
        "axes": {
            name: {"type": "var"} if len({*sizes}) > 1 else {"type": "const", "value": sizes[0]}
            for sizes, name in axes.items()
        },
        "inputs": inputs | scalars,
        "outputs": outputs,
        "reference": f"{source}\n\nnkic_function = {name}\n{run}",
    }
    workloads = [
        {
            "axes": {name: sizes[at] for sizes, name in axes.items() if len({*sizes}) > 1},
            "inputs": {key: {"type": "random"} for key in inputs}
            | {n: {"type": "scalar", "value": value} for n, value in case.consts.items()},
            "uuid": case.name,
        }
        for at, case in enumerate(cases)
    ]
    return Suite(definition, workloads, task, {n: spec["dtype"] for n, spec in outputs.items()})


class Dataset:
    """The candidates of a suite that are its solutions, and their traces: a name is one text's."""

    def __init__(self, suite: Suite) -> None:
        self.suite, self.solutions = suite, dict[str, Json]()
        self.traces: list[Json] = []

    def add(self, evaluation: Evaluation, candidate: Candidate, traces: Iterable[Json]) -> None:
        """Add a candidate and its traces, unless it is no kernel's text, or here already."""
        kernel = evaluation.report.get("kernel") or candidate.wanted(self.suite.task.kernels)
        is_program = candidate.is_compiled or candidate.name.endswith(PRINTED)
        if is_program or not kernel or not candidate.data:
            return
        name, path = evaluation.candidate, "main.py"
        spec = {
            "language": "python",
            "target_hardware": [self.suite.task.target],
            "entry_point": f"{path}::{kernel}",
            "destination_passing_style": False,  # it returns its outputs
        }
        made = {
            "name": name,
            "definition": self.suite.task.name,
            "author": "nkic",
            "spec": spec,
            "sources": [{"path": path, "content": candidate.data.decode("utf-8", "replace")}],
        }
        if self.solutions.get(name, made) != made:
            made["name"] = name = f"{name} {evaluation.candidate_sha256[:12]}"
        if name not in self.solutions:
            self.solutions[name] = made
            self.traces += ({**trace, "solution": name} for trace in traces)

    def write(self, folder: str) -> None:
        """Write definitions, workloads, solutions and traces into the folders that a set of traces
        has (FlashInfer-Bench, `TraceSet.from_path`). Raises `UsageFailed`.
        """
        task, empty = self.suite.task.name, {"solution": None, "evaluation": None}
        name = re.sub(r"[^\w.-]", "_", task).lstrip(".") or "task"
        workloads = [{"definition": task, "workload": w, **empty} for w in self.suite.workloads]
        texts = {
            f"definitions/{name}.json": f"{json.dumps(self.suite.definition, indent=2)}\n",
            f"workloads/{name}.jsonl": "".join(f"{json.dumps(each)}\n" for each in workloads),
            f"traces/{name}.jsonl": "".join(f"{json.dumps(each)}\n" for each in self.traces),
        }
        for number, each in enumerate(self.solutions.values()):
            texts[f"solutions/{name}/{number}.json"] = f"{json.dumps(each, indent=2)}\n"
        for path, text in texts.items():
            files.make_folder(Path(folder, path).parent)
            files.write(str(Path(folder, path)), text)


def traces_of(suite: Suite, evaluation: Evaluation, timestamp: str) -> list[dict[str, Any]]:
    """Return the traces of an evaluation, one for each workload, of what is known of these alone.

    The latency is the simulated time; there is no latency of the reference.
    """
    found = []
    evaluation = evaluation.shown([workload["uuid"] for workload in suite.workloads])
    for workload in suite.workloads:
        results = [r for r in evaluation.cases if r.case == workload["uuid"]]
        status = _status(suite.types, evaluation, results)
        record: dict[str, Any] = {
            "status": status,
            "environment": {
                "hardware": f"{suite.task.target}, simulated",
                "libs": {"nkic": evaluation.nkic},
            },
            "timestamp": timestamp,
            "log": evaluation.problem or evaluation.reason,
            "correctness": None,
            "performance": None,
        }
        if status in ("PASSED", "INCORRECT_NUMERICAL"):
            outputs = [output for result in results for output in result.outputs]
            record["correctness"] = {
                key: max((o[key] for o in outputs if o[key] is not None), default=0.0)
                for key in ("max_relative_error", "max_absolute_error")
            }
        if status == "PASSED":
            latency = (results[0].time_ns or 0.0) / 1e6
            record["performance"] = {
                "latency_ms": latency,
                "reference_latency_ms": 0.0,
                "speedup_factor": 0.0,
            }
        names = {"definition": suite.task.name, "solution": evaluation.candidate}
        found.append({**names, "workload": workload, "evaluation": record})
    return found


def _status(types: Mapping[str, str], evaluation: Evaluation, results: list[CaseResult]) -> str:
    if evaluation.ended == "time":
        return "TIMEOUT"
    if not evaluation.compiled or not results:
        return "RUNTIME_ERROR" if evaluation.compiled else "COMPILE_ERROR"
    problems = [result.problem for result in results if result.problem]
    if any("has the shape" in problem for problem in problems):
        return "INCORRECT_SHAPE"
    if any("has the type" in problem for problem in problems):
        return "INCORRECT_DTYPE"
    if problems:
        return "RUNTIME_ERROR"
    given = [(find(types[o["name"]]), o["dtype"]) for r in results for o in r.outputs]
    if any(dtype is None or dtype.name != found for dtype, found in given):
        return "INCORRECT_DTYPE"
    cheats = any(flag.cheat for flag in evaluation.flags)
    return "PASSED" if all(r.passed for r in results) and not cheats else "INCORRECT_NUMERICAL"


def _json(path: str, data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_argument(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise bad_argument(f"{path}: a JSON object is needed")
    return found
