"""Hashes of everything that users can observe, to prove that a refactoring changed none of it.

    python -m tests.corpus write FILE [PATTERN ...]  compute them, or some by name
    python -m tests.corpus compare BEFORE AFTER          list what differs, with exit code 1

An entry is a kernel of the samples, of tests/files, tests/authors or tests/migrate, an example of
the pages of `--explain`, or a text that a command prints. It is compiled and run by the installed
commands and, if Python can import it, evaluated by Python, too.

Nothing is imported from inside nkic or from tests/harness: only `nkic` and its console scripts,
which stay where they are when modules move. So this file works in any checkout, whose folder must
be the working directory; a checkout that lacks it runs `PYTHONPATH=. python …/tests/corpus.py`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import fnmatch
import gc
import hashlib
import importlib
import importlib.util
import io
import json
import multiprocessing
import os
import pkgutil
import re
import resource
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

import nkic

Entry = dict[str, str | int]  # by kind of observation
FORMS = ("ir", "lowered", "graph", "allocated", "sched", "asm")
REPORTS = ("resources", "remarks")
TABLES = ("targets", "ops", "language", "dtypes", "passes", "profiles", "codes", "schema")
HELP = {
    "nkic": ("", "evaluate", "tune", "serve", "lsp"),
    "nki-run": ("", "run", "compare", "equal", "profile", "debug", "inspect", "calibrate"),
}
OPTIONS = ("nki", "target", "grid", "lnc")
# Texts name the files of nkic's own functions in NKI. Where those are, and what else is in them,
# is no behaviour: the hash, text and places of such a file are left out.
SHIPPED = re.compile(r"(<nkic\.\w+>)/[\w/]+\.py(:[\d:-]+\d)?(\" \"\w{64}\" .*)?")
NUMBERS = ("exit", "cycles")
MAX_CYCLES = 10_000_000  # of runs: random bounds of loops may need millions of times as many
MAX_SECONDS = 60  # of processor time in a fork: Python has no other limit for an endless kernel
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Case:
    """A kernel, and what to compile it for: its options, or else what the file's block says."""

    path: str
    kernel: str | None = None
    args: Mapping[str, str] = field(default_factory=dict)
    consts: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    serial: bool = False
    text: str | None = None  # of a file that does not exist

    @property
    def name(self) -> str:
        return f"{self.path}:{self.kernel}" if self.kernel else self.path

    def words(self) -> list[str]:
        """Return the command's words that compile the case."""
        words = ["--serial"] if self.serial else []
        words += ["-k", self.kernel] if self.kernel else []
        words += [w for n, kind in self.args.items() for w in ("--arg", f"{n}={kind}")]
        words += [w for n, value in self.consts.items() for w in ("--const", f"{n}={value}")]
        return words + [w for n, value in self.options.items() for w in (f"--{n}", str(value))]


def cases() -> Iterator[Case]:
    """Return the kernels of the checkout in the working directory."""
    for path in sorted(Path("samples").glob("*/kernel.py")):
        block = block_of(path.read_text("utf-8"))
        yield Case(str(path))
        others = getattr(module_of(path.with_name("reference.py")), "KERNELS", {})
        for kernel, own in others.items():
            yield Case(str(path), kernel, {**block["args"], **own})
    for path in sorted(Path("tests/files").rglob("*.py")):
        if "helpers" not in path.parts:
            yield case_of(path)
    for path in sorted(Path("tests/authors").glob("*.py")):
        text = path.read_text("utf-8")
        said = {m[1]: pairs(m[2]) for m in re.finditer(r"# args (\w+): (.*)", text)}
        for kernel in re.findall(r"^@nki\.jit\ndef (\w+)\(", text, re.MULTILINE):
            yield Case(str(path), kernel, said.get(kernel, {"a": "float32[128,64]"}))
    for folder in ("cases", "beta1"):
        yield from (Case(str(p)) for p in sorted(Path("tests/migrate", folder).glob("*.py")))
    pages = str(printed("nkic", "--explain", "all")["stdout"])
    for page in re.split(r"^# (?=NKI\d{4} )", pages, flags=re.MULTILINE):
        for number, text in enumerate(re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)):
            yield Case(f"explain/{page[:7]}/{number}.py", text=text)


def block_of(text: str) -> dict[str, Any]:
    """Return the settings in a file's `# /// nkic` block."""
    found = re.search(r"(?ms)^# /// nkic$\n(.*?)^# ///$", text)
    return tomllib.loads(re.sub(r"(?m)^# ?", "", found[1])) if found else {}


def case_of(path: Path) -> Case:
    """Return the case of a file that begins with directives, as `# args: a=float32[2,2]`."""
    words = {}
    for line in path.read_text("utf-8").splitlines():
        if not (found := re.fullmatch(r"# ([a-z]+): (.*)", line)):
            break
        words[found[1]] = found[2].strip()
    options = {name: words[name] for name in OPTIONS if name in words}
    args, consts = pairs(words.get("args", "")), pairs(words.get("const", ""))
    return Case(str(path), words.get("kernel"), args, consts, options, "serial" in words)


def pairs(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


def forked() -> int:
    """Return the process of a fork; in the fork, which has a limit, 0."""
    if not (child := os.fork()):
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    return child


def printed(tool: str, *words: str, hide: str = "\0") -> Entry:
    """Return what a command prints, and its exit code, without the folder `hide`.

    It runs in a fork of this process, where everything is imported already.
    """
    (script,) = entry_points(group="console_scripts", name=tool)
    start, code = script.load(), 70
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if not (child := forked()):
            with contextlib.suppress(BaseException):
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.argv = [tool, *words]
                sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
                code = start()
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
        entry: Entry = {"exit": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}
        for kind, stream in (("stdout", out), ("stderr", err)):
            stream.seek(0)
            entry[kind] = stream.read().decode().replace(hide, "FOLDER")
    return entry


def module_of(path: Path) -> Any:
    """Import a file, as Python would that finds its neighbours."""
    sys.path[:0] = [str(path.parent.absolute()), str(Path.cwd())]
    spec = importlib.util.spec_from_file_location(f"corpus_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def digest(*parts: bytes | str) -> str:
    texts = (part.encode() if isinstance(part, str) else part for part in parts)
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


def digest_of_text(text: str) -> str:
    """Return the hash of a text without places in nkic's own functions, folders, addresses."""
    text = text.replace(f"{Path.cwd()}/", "")
    return digest(ADDRESS.sub("ADDRESS", SHIPPED.sub(r"\1", text)))


def digest_of_arrays(arrays: Mapping[str, Any]) -> str:
    rows = ((n, str(a.dtype), str(a.shape), a.tobytes()) for n, a in sorted(arrays.items()))
    return digest(*(part for row in rows for part in row))


def observed(entry: Entry, of: str = "") -> Entry:
    """Return what a command printed with texts as hashes, empty ones left out."""
    texts = {kind: text for kind, text in entry.items() if isinstance(text, str) and text}
    return {f"{of}exit": entry["exit"]} | {f"{of}{k}": digest_of_text(t) for k, t in texts.items()}


def observe(case: Case) -> tuple[str, Entry]:
    """Return the case's name, and the hashes of its compilation and its runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.py") if case.text else Path(case.path)
        if case.text:
            path.write_text(case.text, "utf-8")
        made = {kind: Path(folder, kind) for kind in ("neff", *FORMS, *REPORTS)}
        words = ["--emit", ",".join(f"{kind}={made[kind]}" for kind in ("neff", *FORMS))]
        words += [w for kind in REPORTS for w in ("--report", f"{kind}={made[kind]}")]
        said = printed("nkic", str(path), *case.words(), *words, "--no-cache", hide=folder)
        entry = observed(said)
        for kind, file in made.items():
            if kind != "neff" and file.exists():
                entry[kind] = digest_of_text(file.read_text("utf-8").replace(folder, "FOLDER"))
        data = made["neff"].read_bytes() if made["neff"].exists() else b""
        if data and not case.text:
            entry |= run(made["neff"], folder)
        # Some have hashes of nkic's own sources. All but those is in the text of `asm`, too.
        if data and b"<nkic." not in data:
            entry["neff"] = digest(data)
        if path.parts[:2] == ("tests", "migrate"):
            entry |= observed(printed("nkic", str(path), "--migrate", hide=folder), "migrate ")
    if not case.text:
        for kind, value in apart(evaluate_by_python, case, data).items():
            entry[f"native {kind}"] = value
    return case.name, entry


def run(neff: Path, folder: str) -> Entry:
    """Return the hashes of a run with random inputs."""
    outputs = Path(folder, "outputs.npz")
    words = ["--fill", "randn(0)", "--outputs", str(outputs), "--json"]
    words += ["--limit", f"cycles={MAX_CYCLES}"]
    said = printed("nki-run", str(neff), *words, hide=folder)
    entry = observed(said, "run ")
    if said["exit"] == 0:
        entry["cycles"] = json.loads(str(said["stdout"]))["cycles"]
        with np.load(outputs) as archive:
            entry["outputs"] = digest_of_arrays(archive)
    return entry


def apart(work: Callable[..., Entry], *given: Any) -> Entry:
    """Return the result of a function that runs in a fork, since it changes the process."""
    with tempfile.TemporaryFile() as results:
        if not (child := forked()):
            try:
                found = work(*given)
            except BaseException as error:
                found = {"raised": digest_of_text(f"{type(error).__name__}: {error}")}
            os.write(results.fileno(), json.dumps(found).encode())
            os._exit(0)
        os.waitpid(child, 0)
        results.seek(0)
        entry: Entry = json.loads(results.read() or '{"raised": "nothing"}')
        return entry


def evaluate_by_python(case: Case, closed: bytes) -> Entry:
    """Return the hashes of a kernel that Python itself evaluates; `closed` is the command's."""
    nkic.install()
    block = block_of(Path(case.path).read_text("utf-8"))
    options: dict[str, Any] = {name: block[name] for name in OPTIONS if name in block}
    options |= {"serial": case.serial, **case.options}
    for name in {"grid", "lnc"} & options.keys():
        sizes = [int(size) for size in str(options[name]).strip("[]").replace("x", ",").split(",")]
        options[name] = sizes[0] if len(sizes) == 1 else tuple(sizes)
    consts = {**block.get("const", {}), **{n: literal(v) for n, v in case.consts.items()}}
    shown = io.StringIO()
    with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(shown):
        warnings.simplefilter("always")
        module = module_of(Path(case.path))
        kernel: str | None = case.kernel or block.get("kernel")
        if kernel is None:
            (kernel,) = re.findall(
                r"^@nki\.jit.*\ndef (\w+)\(", Path(case.path).read_text("utf-8"), re.MULTILINE
            )
        artifact = nkic.compile(
            getattr(module, str(kernel)),
            inputs=case.args or block.get("args", {}),
            consts=consts,
            evaluate="native",
            **options,
        )
    heard = "\n".join(str(one.message) for one in said)
    entry: Entry = {"stdout": digest(shown.getvalue()), "warnings": digest_of_text(heard)}
    if artifact.data == closed:  # then its runs are, too
        return entry | {"as closed": 1}
    if b"<nkic." not in artifact.data:
        entry["neff"] = digest(artifact.data)
    warnings.simplefilter("ignore")
    result = nkic.run(artifact, fill="randn(0)", max_cycles=MAX_CYCLES)
    return entry | {"cycles": result.cycles, "outputs": digest_of_arrays(result.outputs)}


def literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def call_with_objects(way: str) -> Entry:
    """Return the hashes of the calls in tests/authors/arguments.py, whose arguments are objects."""
    nkic.install()
    entry: Entry = {}
    for number, given in enumerate(module_of(Path("tests/authors/arguments.py")).CASES):
        called = nkic.call(given[0], *copy.deepcopy(given[1:]), evaluate=way, cache_dir=None)
        outputs = digest_of_arrays(called.result.outputs)
        entry[f"outputs {number}"], entry[f"cycles {number}"] = outputs, called.result.cycles
    return entry


def corpus(patterns: list[str]) -> dict[str, Entry]:
    """Return the entries whose names match one of the patterns, or all."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "NO_COLOR": "1", "NKIC_CACHE": "0"}
    warm_up()
    chosen = [case for case in cases() if matches(case.name, patterns)]
    with multiprocessing.get_context("fork").Pool() as pool:
        entries = dict(pool.imap_unordered(observe, chosen))
    for way in ("native", "closed"):
        if matches(name := f"tests/authors/arguments.py {way}", patterns):
            entries[name] = apart(call_with_objects, way)
    words = [(tool, (*command.split(), "--help")) for tool in HELP for command in HELP[tool]]
    words += [("nkic", ("--print", table)) for table in TABLES] + [("nkic", ("--explain", "all"))]
    for tool, line in words:
        if matches(name := " ".join((tool, *line)), patterns):
            entries[name] = observed(printed(tool, *line))
    return dict(sorted(entries.items()))


def warm_up() -> None:
    """Import and do everything once, so that forks find it done."""
    for module in pkgutil.walk_packages(nkic.__path__, "nkic.", lambda _: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    nkic.run(nkic.compile("samples/01_tensor_add/kernel.py"), fill="randn(0)")
    gc.freeze()  # else every fork copies what its collector visits


def matches(name: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def differences(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Iterator[str]:
    """Return a line for each entry that differs: its name and the kinds of what differs."""
    for name in sorted({*before, *after}):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            yield f"{name}: only {'after' if one is None else 'before'}"
            continue
        kinds = sorted(k for k in {*one, *other} if one.get(k) != other.get(k))
        changes = [
            f"{kind} {one.get(kind)} -> {other.get(kind)}" if kind.endswith(NUMBERS) else kind
            for kind in kinds
        ]
        if kinds:
            yield f"{name}: {', '.join(changes)}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("file", type=Path)
    write.add_argument("patterns", nargs="*")
    compare = commands.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "write":
        given.file.write_text(json.dumps(corpus(given.patterns), indent=1) + "\n", "utf-8")
        return 0
    found = [*differences(*(json.loads(p.read_text()) for p in (given.before, given.after)))]
    print("\n".join(found) or "no difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
