"""Random programs give the same artifact natively, in the closed world, and from the command line.

    python -m tests.property.test_host_programs 0 1000

compares the programs of these seeds, and prints those that differ.
"""

import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nkic.base.diagnostics import NkicError
from nkic.compiler import pipeline
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.request import parse_options, request_for
from tests.harness import two_ways
from tests.harness.host_programs import Program, program

TENSOR = "a=float32[128,32]"


def judged(seed: int, folder: Path) -> tuple[str, Program]:
    """Return the outcome of a seed: "same", "refused", or a description of the difference."""
    made = program(seed)
    path = folder / f"host_program_{seed}.py"
    path.write_text(made.text, "utf-8")
    with warnings.catch_warnings(), two_ways.live_module(path, path.stem) as module:
        warnings.simplefilter("ignore")
        for change in made.changes:
            exec(change, vars(module))
        consts = eval(f"dict({made.arguments})", vars(module))
        given = parse_options(args=[TENSOR])
        native, closed = two_ways.both(getattr(module, made.kernel), given, consts)
        command = by_command(path, made)
    if closed.data is None or native.data is None:
        both = native.data is closed.data
        text = f"{closed.said or closed.raised!r} / {native.said or native.raised!r}"
        return ("refused" if both else "DIFFERS") + f": {text}"[:600], made
    if closed.data != native.data or closed.printed != native.printed:
        said = "" if closed.printed == native.printed else f"{closed.printed}\n{native.printed}"
        return f"DIFFERS: closed from native {said}", made
    if not made.changes and command != (native.data, native.printed):
        return f"DIFFERS: command from native {command[1]}\n{native.printed}", made
    return "same", made


def by_command(path: Path, made: Program) -> tuple[bytes | None, str]:
    """Return what the command writes and prints."""
    kernel, consts = made.command
    loader = Loader.beside(str(path))
    try:
        source = loader.main(str(path))
        words = parse_options(kernel=kernel, args=[TENSOR], consts=list(consts))
        request = request_for(source, words, {})
        compiled = pipeline.compile_source(source, request, loader, CompileOptions())
    except NkicError as refused:
        return None, str(refused.diagnostics)[:600]
    assert compiled.program is not None
    return compiled.data, "".join(compiled.program.messages)


@pytest.mark.parametrize("seed", range(24))
def test_a_program_is_the_same_in_every_way(seed: int, tmp_path: Path) -> None:
    said, made = judged(seed, tmp_path)
    assert said == "same", f"{made.text}\n{made.arguments} {made.changes}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_many_programs_are_the_same_in_every_way(first: int, tmp_path: Path) -> None:
    found = {seed: judged(seed, tmp_path)[0] for seed in range(first, first + 100)}
    assert not {seed: said for seed, said in found.items() if said != "same"}


def test_programs_change_by_what_host_code_does(tmp_path: Path) -> None:
    """Changes are seen: most programs differ from the same program without them."""
    seen = changed = 0
    for seed in range(40):
        made = program(seed)
        if not made.changes:
            continue
        path = tmp_path / f"changed_{seed}.py"
        path.write_text(made.text, "utf-8")
        found: list[Any] = []
        for changes in ([], made.changes):
            with two_ways.live_module(path, path.stem) as module:
                for change in changes:
                    exec(change, vars(module))
                consts = eval(f"dict({made.arguments})", vars(module))
                kernel, given = getattr(module, made.kernel), parse_options(args=[TENSOR])
                one = two_ways.outcome(kernel, given, consts, "closed")
                found.append((one.data, one.printed))
        seen, changed = seen + 1, changed + (found[0] != found[1])
    assert changed > seen // 2


def main() -> None:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            said, made = judged(seed, Path(folder))
            count[said.partition(":")[0]] += 1
            if said != "same":
                print(f"{seed} {said} {made.changes} {made.arguments}", flush=True)
    print(dict(count))


if __name__ == "__main__":
    main()
