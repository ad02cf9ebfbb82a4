"""The judge: each candidate is compiled, run, compared and looked at for cheats."""

from __future__ import annotations

import ast
import json
import os
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from math import inf
from typing import Any, NamedTuple

import numpy as np

from nkic import __version__
from nkic.api import Artifact
from nkic.api.options import FilePath, public
from nkic.artifact import pace
from nkic.artifact.container import PREFIX
from nkic.artifact.records import Executable, InstructionRecord, PatternRecord, StreamRecord
from nkic.base import files
from nkic.base.cache import stamp
from nkic.base.diagnostics import NkicError, UsageFailed, bad_value
from nkic.judge.evaluation import HIDDEN, CaseResult, Evaluation, Flag, Json
from nkic.judge.pool import LocalPool, Pool, in_order
from nkic.judge.process import (
    Ended,
    Process,
    arrays_of,
    compile_request,
    numbers_of,
    stored_of,
)
from nkic.judge.reference import Reference
from nkic.judge.task import Case, Task, read_task
from nkic.machine.dtypes import DTYPES, DType
from nkic.machine.operands import Facts, Register
from nkic.machine.targets import TARGETS, Engine
from nkic.report.resources import resources
from nkic.simulate import compare
from nkic.simulate.compare import Comparison
from nkic.simulate.field.domain import Cause, Fills, Look, limits_of, looked
from nkic.simulate.field.intervals import Proof
from nkic.simulate.inputs import ArrayParameter, Generator, numbers, to_storage, unpacked_shape

# ---- What a compiled program is made of: facts that no text can hide ----------------------------

_ALWAYS = "registers"  # a node that every output depends on: registers decide what runs, and where


class Program(NamedTuple):
    """The instructions by name, the narrowest float type on a path to each output ("" if there is
    none), and whether any instruction computes.
    """

    instructions: Mapping[str, int]
    narrowest: Mapping[str, str]
    computes: bool


def facts_of(executable: Executable) -> Program:
    """Return the facts of a program, from its records."""
    names: Counter[str] = Counter()
    flow, computes = _Flow(executable), False
    for stream in executable.streams:
        for item in stream.items:
            if isinstance(item, InstructionRecord) and item.row is not None:
                names[item.row.name] += 1
                patterns = sum(isinstance(operand, PatternRecord) for operand in item.operands)
                computes = computes or (stream.engine is not Engine.DMA and patterns > 1)
                flow.add(item, stream)
    narrowest = {output.name: flow.narrowest(output.tensor) for output in executable.outputs}
    return Program(dict(sorted(names.items())), narrowest, computes)


class _Flow:
    """Which tensors and engine state flow into which, and the float types with which they do.

    A tensor is one node, whatever part of it is accessed: a path may be named that no element
    takes, and none is missed.
    """

    def __init__(self, executable: Executable) -> None:
        self.executable, self.target = executable, TARGETS[executable.target]
        self.sources: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
        self.types: defaultdict[Hashable, set[DType]] = defaultdict(set)
        self.seen: set[Hashable] = set()

    def add(self, item: InstructionRecord, stream: StreamRecord) -> None:
        row = item.row
        assert row is not None
        tensors = tuple(
            (o.tensor, o.dtype, o.cost_key(self.executable.tensors[o.tensor].buffer))
            if isinstance(o, PatternRecord)
            else o
            for o in item.operands
        )
        key = (row, stream.core, stream.engine, item.attributes, tensors)
        if key in self.seen:
            return
        self.seen.add(key)
        facts: Facts = self.executable.facts(item, self.target, stream.engine)
        effects = row.effects(facts)
        reads: set[Hashable] = {(stream.core, name) for name in effects.reads}
        writes: set[Hashable] = {(stream.core, name) for name in effects.writes}
        hidden = item.operands[len(row.operands) :]  # they hold run-time offsets
        reads |= {operand.tensor for operand in hidden if isinstance(operand, PatternRecord)}
        types = set()
        for rule, operand in zip(row.operands, item.operands, strict=False):
            access = row.access_of(rule, facts)
            if isinstance(operand, PatternRecord):
                types.add(operand.dtype.element or operand.dtype)
                reads |= {operand.tensor} if access.reads else set()
                writes |= {operand.tensor} if access.writes else set()
            elif isinstance(operand, Register) and access.writes:
                writes.add(_ALWAYS)
        if row.is_rendezvous:  # what one core reads, another may write
            self.sources[row.name] |= reads
            reads = {row.name}
        for node in writes or {_ALWAYS}:
            self.sources[node] |= reads
            self.types[node] |= {dtype for dtype in types if dtype.is_float}

    def narrowest(self, tensor: int) -> str:
        """Return the name of the narrowest float type on a path to a tensor."""
        found = _reached({tensor, _ALWAYS}, self.sources)
        types = {dtype for node in found for dtype in self.types.get(node, ())}
        least = min(types, key=lambda dtype: (dtype.size, dtype.name), default=None)
        return least.name if least else ""


def _reached(start: Iterable[Hashable], edges: Mapping[Hashable, set[Hashable]]) -> set[Hashable]:
    found, left = set(start), list(start)
    while left:
        new = edges.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


# ------------------------------------------------------------------------------------------------
# Evaluations that were made before, in a file, by the content of all that they depend on.

_WAIT = 60.0  # seconds for another process that writes


class Results:
    """A database of evaluations, which several processes may use at once.

    Raises `UsageFailed` for a file that is none, or that cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self._lock = os.fspath(path), threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._execute("CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, record)")

    def _execute(self, statement: str, *values: str) -> Any:
        """Return the first row. Raises `UsageFailed`: another process may do anything to a file."""
        try:
            with self._lock:
                if self._database is None:
                    self._database = sqlite3.connect(self.path, _WAIT, check_same_thread=False)
                with self._database as database:
                    return database.execute(statement, values).fetchone()
        except (sqlite3.Error, UnicodeError) as error:  # the latter for a message of the former
            text = f"`{self.path}` cannot hold evaluations: {error}"
            raise bad_value(text, "name a file that does not exist yet") from None

    def get(self, key: str) -> Evaluation | None:
        """Return the evaluation of a key; None if there is none, or it is not as it was put."""
        row = self._execute("SELECT CAST(record AS BLOB) FROM results WHERE key = ?", key)
        if not row:
            return None
        try:
            digest, _, record = row[0].decode().partition(" ")
            if digest != _kept_hash(record):
                return None
            return Evaluation.from_record(json.loads(record))
        except (AttributeError, RecursionError, TypeError, ValueError):  # another program's
            return None

    def put(self, key: str, evaluation: Evaluation) -> None:
        record = evaluation.json(host=True)
        row = (key, f"{_kept_hash(record)} {record}")
        self._execute("INSERT OR REPLACE INTO results VALUES (?, ?)", *row)


def _kept_hash(record: str) -> str:
    return sha256(record.encode("utf-8", "surrogatepass")).hexdigest()


# --------------------------------------------------------------------------------------------------

MAX_BYTES = 64 << 20  # size of a candidate's file
UNKNOWN_DOMAIN = "domain"  # a flag


@dataclass(frozen=True)
class Candidate:
    """A candidate: the text of a kernel's file or of a printed program (its name says which: .ir,
    .sched or .asm), or the bytes of a compiled kernel.

    `kernel` names the one that is meant, if not the task does; `problem` says why it has no data.
    """

    name: str
    data: bytes
    kernel: str = ""
    problem: str = ""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Candidate:
        """Read a file. Raises `UsageFailed`."""
        name = os.fspath(path)
        return cls(name, files.read_bytes(name, MAX_BYTES))

    @classmethod
    def of_text(cls, text: str, name: str = "candidate.py") -> Candidate:
        return cls(name, text.encode())

    def parameters(self, *kernels: str) -> list[str]:
        """Return the parameters of the first of these kernels in a text; none if it has none."""
        try:
            tree = ast.parse(self.data)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return []  # the compiler says why
        functions = {f.name: f.args for f in tree.body if isinstance(f, ast.FunctionDef)}
        found = next((functions[name] for name in kernels if name in functions), None)
        return [a.arg for a in (*found.posonlyargs, *found.args)] if found else []

    def wanted(self, kernels: Sequence[str]) -> str | None:
        """Return the name of the kernel to judge: the first of a task's `kernels` in its text."""
        names = (self.kernel,) if self.kernel else kernels
        defined = (name for name in names if f"def {name}(".encode() in self.data)
        return next(defined, names[0] if names else None)

    @property
    def is_compiled(self) -> bool:
        return self.data.startswith(PREFIX)


@public(UsageFailed)
def evaluate(
    candidate: Candidate | FilePath,
    task: Task | FilePath,
    **options: Any,
) -> Evaluation:
    """Evaluate a candidate (or the path of its file) on a task (or the path of its file).

    `options` are those of `Judge`, which evaluates many.
    """
    judge = Judge(task if isinstance(task, Task) else read_task(task), **options)
    if not isinstance(candidate, Candidate):
        candidate = Candidate.read(candidate)
    return judge.evaluate(candidate)


class Judge:
    """Evaluates candidates of one task.

    `secret` adds to each case inputs from a seed that only its holder can know, if nobody can guess
    the secret (16 random bytes, say), and cases whose sizes it chooses: `cases` are all. `families`
    also compares on unusual inputs, `orders` is the number of other orders in which programs of two
    cores run, too, `analyse` says what bounds the time, which can take longer than the run,
    `sensitivity` times the case analysed again under other figures of the clock, `time_only`
    compiles without running: the time is the compiler's estimate. `domain` finds from which size of
    inputs on a right candidate and its reference part (docs/equality.md), by a hundred runs or
    more. What `results` has is not evaluated again.
    """

    @public(UsageFailed)
    def __init__(
        self,
        task: Task,
        *,
        secret: str | bytes = b"",
        families: bool = True,
        orders: int = 2,
        analyse: bool = True,
        sensitivity: bool = True,
        time_only: bool = False,
        domain: bool = False,
        results: Results | None = None,
    ) -> None:
        self.task, self.orders, self.analyse, self.time_only = task, orders, analyse, time_only
        self.sensitivity, self.results, self.domain = sensitivity, results, domain
        self.secret = secret.encode() if isinstance(secret, str) else secret
        self.options: dict[str, Any] = {  # what makes this judge of its task anywhere
            "secret": self.secret,
            "families": families,
            "orders": orders,
            "analyse": analyse,
            "sensitivity": sensitivity,
            "time_only": time_only,
            "domain": domain,
        }
        if results is not None:
            task.must_be_as_read()
        if not (cases := task.cases_for(self.secret)):
            text = f"the task `{task.name}` has only cases whose sizes a secret chooses"
            raise bad_value(text, "give a secret, or add a case with sizes of its own")
        self.cases = cases
        # The analysis is of one of these, so that an author may see it.
        self.analysable = {c.name for c in cases if not c.hidden} or {c.name for c in cases}
        self.reference = Reference(task)
        for wish, is_wanted in (("domain", domain), ("required_families", task.required)):
            if is_wanted and not self.reference.has_families:
                text = f"`{wish}` needs a reference that is a function or a kernel"
                raise bad_value(text, "an npz, and a function of `inputs`, say what the inputs are")
        self.families = (
            tuple(dict.fromkeys((*task.required, *(task.families if families else ()))))
            if self.reference.has_families
            else ()
        )

    def evaluate(self, candidate: Candidate) -> Evaluation:
        """Evaluate a candidate; whatever it does is part of the result."""
        if (known := self.known(candidate)) is not None:
            return known
        began = time.monotonic()
        with Process(self.task.seconds, self.task.memory) as process:
            trial = _Trial(self, candidate, process)
            found = replace(trial.evaluation(), mib=process.mib())
        if self.domain and found.correct:
            found = self._with_domain(found, trial.artifacts[self.cases[0].name])
        found = replace(found, seconds=time.monotonic() - began)
        self.keep(candidate, found)
        return found

    def _with_domain(self, found: Evaluation, artifact: Artifact) -> Evaluation:
        """Add from which size of inputs on the first case and its reference part.

        A process of its own does the runs, so that their time is not the candidate's.
        """
        with Process(self.task.seconds, self.task.memory) as process:
            try:
                limits, proof = _domain(self, artifact, process)
                return replace(found, domain=limits, proof=proof)
            except Ended as ended:
                text = f"its domain is not known: {ended}"
                flag = Flag(UNKNOWN_DOMAIN, text, case=self.cases[0].name)
                return replace(found, flags=(*found.flags, flag))

    def known(self, candidate: Candidate) -> Evaluation | None:
        """Return the evaluation of a candidate that `results` has, if any."""
        if candidate.problem:
            return self.unjudged(candidate, candidate.problem)
        return self.results.get(self.key(candidate)) if self.results is not None else None

    def keep(self, candidate: Candidate, found: Evaluation) -> None:
        """Add an evaluation to `results`, unless a limit ended it, or the search of its domain:
        elsewhere it may pass.
        """
        is_whole = not found.ended and all(flag.name != UNKNOWN_DOMAIN for flag in found.flags)
        if self.results is not None and is_whole:
            self.results.put(self.key(candidate), found)

    def key(self, candidate: Candidate) -> str:
        """Return a hash of all that the evaluation of a candidate depends on."""
        options = sha256(repr(sorted(self.options.items())).encode()).hexdigest()
        data = sha256(candidate.data).hexdigest()
        words = [stamp(), self.task.sha256, candidate.name, candidate.kernel, data, options]
        return sha256("\n".join(words).encode("utf-8", "surrogateescape")).hexdigest()

    def evaluate_all(
        self, candidates: Iterable[Candidate], jobs: int = 1, pool: Pool | None = None
    ) -> Iterator[Evaluation]:
        """Yield the evaluations of candidates in their order, `jobs` at a time.

        Candidates are taken as they are needed. A `pool` judges them elsewhere.
        """
        with LocalPool(jobs) if pool is None else nullcontext(pool) as chosen:
            yield from in_order(chosen.as_they_come((self, each) for each in candidates))

    def evaluate_best(
        self, candidates: Sequence[Candidate], best: int, jobs: int = 1, pool: Pool | None = None
    ) -> Iterator[tuple[int, Evaluation]]:
        """Yield the numbers of all candidates with what compiling them shows, in order; then those
        of the fastest again, evaluated, until `best` are correct or none is left.
        """
        estimates = Judge(self.task, **self.options | {"time_only": True}, results=self.results)
        times = list[tuple[float, int, str]]()

        def as_compiled(number: int, digest: str) -> Candidate:
            """Return a candidate again; it may be read again, and its file be another one now."""
            candidate = candidates[number]
            if candidate.problem or sha256(candidate.data).hexdigest() == digest:
                return candidate
            return replace(candidate, data=b"", problem="its file changed after it was compiled")

        with LocalPool(jobs) if pool is None else nullcontext(pool) as chosen:
            for number, found in enumerate(estimates.evaluate_all(candidates, pool=chosen)):
                if found.compiled:
                    times.append((found.time_ns or inf, number, found.candidate_sha256))
                yield number, found
            left, right = iter(sorted(times)), 0
            while batch := [*islice(left, best - right)]:
                found_now = self.evaluate_all(
                    (as_compiled(n, digest) for _, n, digest in batch), pool=chosen
                )
                for (_, number, _), found in zip(batch, found_now, strict=True):
                    right += found.correct
                    yield number, found

    def unjudged(self, candidate: Candidate, problem: str) -> Evaluation:
        """Return the evaluation of a candidate that could not be judged."""
        return Evaluation(**self.subject(candidate), problem=problem)

    def subject(self, candidate: Candidate) -> dict[str, Any]:
        """Return the fields of an evaluation that say of what it is, and by what."""
        return {
            "candidate": candidate.name,
            "candidate_sha256": sha256(candidate.data).hexdigest(),
            "task": self.task.name,
            "task_sha256": self.task.sha256,
            "nkic": __version__,
        }


class _Failed(Exception):
    """The candidate failed: what its process says, as text and as diagnostics."""

    def __init__(self, problem: str, diagnostics: Sequence[Json]) -> None:
        super().__init__(problem)
        self.problem, self.diagnostics = problem, diagnostics


class _Trial:
    """The evaluation of one candidate."""

    def __init__(self, judge: Judge, candidate: Candidate, process: Process) -> None:
        self.judge, self.task, self.candidate, self.process = judge, judge.task, candidate, process
        self.artifacts: dict[str, Artifact] = {}
        self.cases: list[CaseResult] = []
        self.flags: dict[str, Flag] = {}
        self.analysis: Mapping[str, Any] = {}
        self.trust: dict[str, Any] = {}
        self.outputs: defaultdict[str, set[bytes]] = defaultdict(set)  # their hashes, by case
        self.longest = ""  # the case that takes longest, of those that may be analysed
        self.asked: dict[str, str] = {}  # the case and the inputs of the last request
        self.known: dict[str, Any] = {}

    def evaluation(self) -> Evaluation:
        try:
            self._compile()
            self._look()
            if not self.judge.time_only:
                self._run()
            if self.judge.sensitivity:
                reasons = self.analysis.get("report", {}).get("trust", {}).get("reasons", ())
                shares = {reason["figure"]: reason["share"] for reason in reasons}
                try:
                    answer = self._ask("time", case=self.longest, shares=shares)
                    self.trust["sensitivity"] = answer["sensitivity"]
                except Ended as ended:  # it is about the clock, not about the candidate
                    if ended.by != "time":
                        raise
        except _Failed as failed:
            self.known |= {"problem": failed.problem, "diagnostics": failed.diagnostics}
            self.known["failed_on"] = self.asked
        except Ended as ended:
            self.known |= {"problem": str(ended), "ended": ended.by, "failed_on": self.asked}
        passed = bool(self.cases) and all(result.passed for result in self.cases)
        families = self.known.get("families", ())
        robust = {*self.task.required} <= {r.inputs for r in families if r.passed}
        cheats = any(flag.cheat for flag in self.flags.values())
        ran = self.known.get("runnable", False) and not self.known.get("problem")
        return Evaluation(
            **self.judge.subject(self.candidate),
            correct=ran and passed and robust and not cheats,
            cases=tuple(self.cases),
            flags=tuple(self.flags.values()),
            artifacts={name: artifact.id for name, artifact in self.artifacts.items()},
            analysed=self.longest,
            **self._analysed(),
            **self.known,
        )

    def _analysed(self) -> dict[str, Any]:
        found = {key: self.analysis.get(key) for key in ("report", "metrics", "verdict", "what_if")}
        given = {key: value for key, value in found.items() if value}
        return given | {"trust": {**self.analysis.get("report", {}).get("trust", {}), **self.trust}}

    def _ask(self, do: str, inputs: str = "", **request: Any) -> Mapping[str, Any]:
        """Ask the candidate's process. Raises `_Failed` if the candidate is refused or fails."""
        self.asked = {"case": request["case"], "inputs": inputs}
        answer = self.process.ask(do, **request)
        if "failed" in answer:
            raise _Failed(str(answer["failed"]), answer.get("diagnostics", ()))
        return answer

    def _compile(self) -> None:
        candidate, warnings, estimates = self.candidate, [], list[float | None]()
        for case in self.judge.cases:
            if candidate.is_compiled:
                answer = self._ask("load", case=case.name, data=candidate.data)
            else:
                text = candidate.data.decode("utf-8", "replace")
                kernel = candidate.wanted(self.task.kernels)
                request = compile_request(self.task, case, candidate.name, text, kernel)
                answer = self._ask("compile", **request)
            warnings += [w for w in answer["warnings"] if w not in warnings]
            artifact = Artifact(answer["data"])
            try:
                estimates.append(_estimate(artifact))
            except NkicError as error:
                raise Ended("its process gave a file that is no compiled kernel") from error
            found, wanted = artifact.executable, (case.lnc, self.task.target)
            if (found.cores, found.target) != wanted:  # a compiled candidate
                text = "it is compiled for lnc {} on {}; the case `{}` is for lnc {} on {}"
                raise _Failed(text.format(found.cores, found.target, case.name, *wanted), ())
            self.artifacts[case.name] = artifact
        known = [estimate for estimate in estimates if estimate is not None]
        times = {c.name: time or 0 for c, time in zip(self.judge.cases, estimates, strict=True)}
        self.longest = max(filter(self.judge.analysable.__contains__, times), key=times.__getitem__)
        self.known["time_ns"] = sum(known) if len(known) == len(estimates) else None
        self.known |= {"compiled": True, "warnings": tuple(warnings)}

    def _look(self) -> None:
        """Look at the compiled programs, whatever the text says."""
        for case in self.judge.cases:
            artifact = self.artifacts[case.name]
            facts = facts_of(artifact.executable)
            written = set(artifact.signature.updates) - self.task.may_write
            if written:
                names = ", ".join(sorted(written))
                text = f"it writes its inputs: {names}"
                self._flag("writes-input", text, cheat=True, case=case.name)
            if not facts.computes:
                self._flag("no-work", "no instruction of it computes anything")
            limit = self.task.narrowest
            for name, narrowest in facts.narrowest.items():
                if limit is not None and narrowest and DTYPES[narrowest].size < limit.size:
                    text = f"`{name}` is computed in {narrowest}, narrower than {limit.name}"
                    self._flag("narrow", text, cheat=True, case=case.name)
            self.known |= {"narrowest": facts.narrowest, "instructions": facts.instructions}
            reserved = resources(artifact.executable).sbuf_bytes
            self.known["sbuf_bytes"] = max(reserved, self.known.get("sbuf_bytes", 0))

    def _flag(self, name: str, text: str, *, cheat: bool = False, case: str = "") -> None:
        self.flags.setdefault(name, Flag(name, text, cheat, case))

    def _run(self) -> None:
        times, longest = 0.0, -1.0
        for case in self.judge.cases:
            seeds = [(seed, f"seed {seed}") for seed in case.seeds]
            if self.judge.secret and self.judge.reference.has_seeds:
                seeds.append((self.task.hidden_seed(self.judge.secret, case), HIDDEN))
            for seed, label in seeds:
                first = seed == case.seeds[0] and case.name in self.judge.analysable
                answer = self._judged(case, seed, None, label, self.cases, first)
                self.outputs[case.name].add(_digest(answer["outputs"]))
                if first and answer["time_ns"] > longest:
                    self.analysis, longest = answer, answer["time_ns"]
                    self.longest = case.name
            times += answer["time_ns"]
        self.known |= {"time_ns": times, "runnable": True}
        self._special()
        self._in_other_orders()
        families: list[CaseResult] = []
        for family in self.judge.families:
            case = self.judge.cases[0]
            try:
                answer = self._judged(case, case.seeds[0], family, family, families)
                self.outputs[case.name].add(_digest(answer["outputs"]))
            except _Failed as failed:
                families.append(CaseResult(case.name, family, False, problem=failed.problem))
        self.known["families"] = tuple(families)
        for name, outputs in self.outputs.items():
            runs = [r for r in (*self.cases, *families) if r.case == name and not r.problem]
            if len(runs) > 1 and len(outputs) == 1 and any(not r.passed for r in runs):
                self._flag("constant", "its outputs do not depend on its inputs", cheat=True)

    def _judged(
        self,
        case: Case,
        seed: int,
        family: str | None,
        label: str,
        results: list[CaseResult],
        analyse: bool = False,
    ) -> Mapping[str, Any]:
        """Run a case on inputs, compare, and keep the result."""
        arrays = arrays_of(case, self.judge.reference.inputs(case, seed, family))
        wants = self.judge.analyse and analyse
        answer = self._ask("run", label, case=case.name, arrays=arrays, analyse=wants)
        expected = self.judge.reference.expected(case, seed, family)
        try:
            compared = self._compared(case, answer["outputs"], expected, family is not None)
            passed, problem = all(c.passed for c in compared), ""
        except ValueError as error:
            compared, passed, problem = [], False, str(error)
        types = {p.name: p.dtype.name for p in self.artifacts[case.name].signature.outputs}
        listed = tuple(
            {**compare.as_json(c), **_largest(c), "dtype": types[c.name]} for c in compared
        )
        results.append(CaseResult(case.name, label, passed, listed, problem, answer["time_ns"]))
        return answer

    def _compared(
        self, case: Case, outputs: Any, expected: Mapping[str, Any], unusual: bool
    ) -> list[Comparison]:
        signature = self.artifacts[case.name].signature
        parameters = {p.name: p for p in signature.outputs}
        stored = {p.name: stored_of(p, outputs) for p in signature.outputs}  # each has its size
        found = []
        for name, wanted in expected.items():
            parameter = parameters.get(name)
            if parameter is None:
                raise ValueError(f"it has no output `{name}`; it has {', '.join(parameters)}")
            if wanted.size != parameter.elements * parameter.dtype.lanes:
                shape = list(parameter.shape)
                raise ValueError(
                    f"`{name}` has the shape {shape}, expected is {list(wanted.shape)}"
                )
            stated = self.task.types.get(name, self.task.types.get(""))
            if stated not in (None, parameter.dtype):
                raise ValueError(
                    f"`{name}` has the type {parameter.dtype.name}, expected is {stated.name}"
                )
            data, dtype = stored[name], stated or case.measured_as(parameter.dtype)
            if dtype is not parameter.dtype:
                data = to_storage(numbers(data, parameter.dtype), dtype)
            rule = self.task.outputs.rule(name, dtype)
            if rule.mode == "skip":
                continue
            rule = replace(rule, equal_nan=True) if unusual else rule
            shaped = wanted.reshape(unpacked_shape(parameter.shape, parameter.dtype))
            found.append(compare.compare(name, data, dtype, shaped, rule))
        return found

    def _special(self) -> None:
        """Notice a candidate that is right on the inputs that its author may know, and no other."""
        hidden = {case.name for case in self.judge.cases if case.hidden}
        known = [r for r in self.cases if r.case not in hidden and r.inputs != HIDDEN]
        others = [r for r in self.cases if r not in known]
        if known and all(r.passed for r in known) and any(not r.passed for r in others):
            self._flag("special-cased", "it is right on the known inputs alone", cheat=True)

    def _in_other_orders(self) -> None:
        """Run the first case in other orders. Of one core's program, the check for races in each
        run has proven that all orders compute the same.
        """
        case = self.judge.cases[0]
        if not self.judge.orders or self.artifacts[case.name].executable.cores == 1:
            return
        arrays = arrays_of(case, self.judge.reference.inputs(case, case.seeds[0], None))
        try:
            self._ask("fuzz", case=case.name, arrays=arrays, orders=self.judge.orders)
        except _Failed as failed:
            text = failed.problem.partition("\n")[0]
            self._flag("order-dependent", text, cheat=True, case=case.name)


def _domain(
    judge: Judge, artifact: Artifact, process: Process
) -> tuple[tuple[Mapping[str, Any], ...], Mapping[str, Any] | None]:
    """Run a right candidate and its reference on inputs of many sizes, and tell up to which the
    candidate is proven to stay finite. Raises `Ended`.
    """
    case, reference = judge.cases[0], judge.reference
    outputs = {p.name: p for p in artifact.signature.outputs}

    def ask(do: str, **request: Any) -> Mapping[str, Any]:
        answer = process.ask(do, case=case.name, **request)
        if "failed" in answer:
            raise Ended(str(answer["failed"]).partition("\n")[0])
        return answer

    def look(fills: Fills) -> Look:
        arrays = reference.filled(case, fills)
        answer = ask("run", arrays=arrays_of(case, arrays), analyse=False)
        found = numbers_of(artifact.signature, answer["outputs"])
        return looked(
            (found[name], wanted, outputs[name].dtype)
            for name, wanted in reference.at(case, arrays).items()
        )

    def cause(side: int | None, good: Fills, bad: Fills) -> tuple[int | None, Cause]:
        before, after = (reference.filled(case, fills) for fills in (good, bad))
        if side == 1:
            return 1, Cause("", "its result is not finite")
        told = ask("cause", good=arrays_of(case, before), bad=arrays_of(case, after))["cause"]
        own = Cause(*map(str, told))
        return (0, own) if side == 0 or own.place else (None, own)

    ask("load", data=artifact.data)
    floats = [
        ArrayParameter(name, dtype, shape, 0)
        for name, (dtype, shape) in case.inputs.items()
        if dtype.is_float
    ]
    limits = limits_of(floats, look, cause)
    sides, proof = ("the candidate", "the reference"), None
    if floats:
        usual = {p.name: Generator("uniform", (0.0, 1.0, 1.0)) for p in floats}
        arrays = arrays_of(case, reference.filled(case, usual))
        with suppress(Ended, TypeError, ValueError):  # limits are known without it
            size, low, *found = ask("proof", arrays=arrays)["proof"]
            shown = Proof(float(size), float(low), *map(str, found))
            proof = {**shown.as_json(), "text": shown.text(sides[0])}
    return tuple({**limit.as_json(), "text": limit.text(sides)} for limit in limits), proof


def _largest(comparison: Comparison) -> dict[str, float]:
    """Return the largest errors of the elements that are finite in both arrays."""
    got, expected = comparison.got, comparison.expected
    finite = np.isfinite(got) & np.isfinite(expected)
    wanted = np.abs(expected[finite])
    off = np.abs(got[finite] - expected[finite])
    relative = off[wanted > 0] / wanted[wanted > 0]
    return {
        "max_absolute_error": float(off.max(initial=0.0)),
        "max_relative_error": float(relative.max(initial=0.0)),
    }


def _digest(outputs: Mapping[str, bytes]) -> bytes:
    digest = sha256()
    for name in sorted(outputs):
        digest.update(sha256(outputs[name]).digest())
    return digest.digest()


def _estimate(artifact: Artifact) -> float | None:
    """Return the compiler's estimate of the time in ns; None if the program is too long.

    Raises `NkicError` for a broken file.
    """
    executable = artifact.executable
    target = TARGETS[executable.target].used_by(executable.cores)
    picoseconds = pace.duration(executable, target)
    return None if picoseconds is None else picoseconds / 1000
