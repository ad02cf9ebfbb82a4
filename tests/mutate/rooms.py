"""The places of random changes, and the quick tests that concern each place."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
U = "tests/unit/"
# The quickest tests of each list come first: most changes are noticed within seconds.
ANY_STAGE = (
    f"{U}test_exact.py",
    f"{U}compiler/test_depend.py",
    f"{U}compiler/test_schedule.py",
    f"{U}compiler/test_allocate.py",
    f"{U}prove/test_prove_order.py",
    f"{U}compiler/test_lower.py",
    f"{U}language/test_device_loops.py",
    f"{U}compiler/test_ordering.py",
    f"{U}simulate/test_cores.py",
    f"{U}compiler/test_stage_remarks.py",
    f"{U}prove/test_prove_addresses.py",
    "tests/property/test_overlap.py",
    "tests/property/test_allocator.py",
    "tests/property/test_random_programs.py",
)


def _first(*names: str) -> tuple[str, ...]:
    """Return the tests of the stages, those of one room before the others."""
    return tuple(dict.fromkeys((*names, *ANY_STAGE)))


PROOFS = (
    f"{U}test_exact.py",
    f"{U}prove/test_prove_order.py",
    f"{U}prove/test_prove_file.py",
    f"{U}prove/test_prove_addresses.py",
    f"{U}prove/test_prove_lowered.py",
    f"{U}compiler/test_spill.py",
    "tests/property/test_prove_boxes.py",
    f"{U}test_faults.py",
    f"{U}artifact/test_verify_orders.py",
    f"{U}prove/test_prove_iterations.py",
)
FILES = (
    f"{U}test_exact.py",
    f"{U}artifact/test_neff_verify.py",
    f"{U}artifact/test_neff_read.py",
    f"{U}simulate/test_cores.py",
    f"{U}simulate/test_psum.py",
    f"{U}language/test_indirect.py",
    f"{U}artifact/test_verify_orders.py",
    "tests/property/test_neff.py",
)
RULES = (
    f"{U}test_exact.py",
    f"{U}machine/instructions/test_rule_page.py",
    f"{U}machine/instructions/test_instructions.py",
    f"{U}machine/instructions/test_rules.py",
    f"{U}machine/instructions/test_combined.py",
    f"{U}machine/test_patterns.py",
    f"{U}specialise/test_arguments.py",
    f"{U}language/test_collectives.py",
    f"{U}language/test_indirect.py",
)
COSTS = (
    f"{U}machine/test_costs.py",
    f"{U}test_exact.py",
    f"{U}machine/test_profiles.py",
    f"{U}simulate/test_machine.py",
    f"{U}simulate/test_clock.py",
    f"{U}machine/test_targets.py",
    f"{U}artifact/test_pace.py",
)


# The tests for random mutants: of these, those that enter the changed function are run.
NEAR = (
    *(f"{U}{name}" for name in ("compiler", "prove", "artifact", "machine")),
    *(f"{U}{name}" for name in ("test_exact.py", "test_faults.py")),
    *(f"{U}{name}.py" for name in ("compiler/test_stage_remarks", "language/test_device_loops")),
    *(f"{U}{name}.py" for name in ("language/test_collectives", "language/test_indirect")),
    *(f"{U}simulate/test_{name}.py" for name in ("cores", "machine", "clock", "psum")),
    f"{U}specialise/test_arguments.py",
    *(f"tests/property/test_{name}.py" for name in ("overlap", "allocator", "box_pages")),
    "tests/property/test_stage_pages.py",
    "tests/test_files.py",
    *(
        f"tests/property/test_{name}.py"
        for name in ("prove_boxes", "random_programs", "neff", "instructions")
    ),
)


class Room(NamedTuple):
    """Modules, as patterns under nkic/, and their tests.

    `own`: random mutants are tried with these tests, not with those near all stages.
    """

    patterns: tuple[str, ...]
    tests: tuple[str, ...]
    own: bool = False

    def modules(self) -> list[Path]:
        found = {path for pattern in self.patterns for path in (ROOT / "nkic").glob(pattern)}
        return sorted(path for path in found if path.name != "__init__.py")


def _in(folder: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).glob("test_*.py"))]


ROOMS = {
    "allocate": Room(
        ("compiler/allocate.py", "compiler/tight.py"),
        _first(f"{U}compiler/test_allocate.py"),
    ),
    "depend": Room(
        ("compiler/depend.py", "program/effects.py", "program/overlap.py"),
        _first(
            f"{U}compiler/test_depend.py", f"{U}test_exact.py", "tests/property/test_overlap.py"
        ),
    ),
    "lower": Room(
        ("compiler/lower.py",), _first(f"{U}test_exact.py", f"{U}compiler/test_lower.py")
    ),
    "schedule": Room(
        ("compiler/schedule.py", "compiler/semaphores.py"),
        _first(f"{U}compiler/test_schedule.py", f"{U}test_exact.py"),
    ),
    "prove": Room(("prove/*.py",), PROOFS),
    "verifier": Room(("artifact/verify.py", "artifact/verify_orders.py"), FILES),
    "rules": Room(
        ("machine/rules.py", "machine/tiles.py", "machine/constraints.py",
         "machine/patterns.py", "machine/instructions/*.py"),
        RULES,
    ),
    "costs": Room(
        ("machine/costs.py", "machine/timing.py", "machine/clock.py"),
        COSTS,
    ),
    "beta1": Room(
        ("language/beta1/*.py",),
        (*(f"{U}language/test_beta1{part}.py" for part in ("", "_access", "_api", "_repeated")),
         *_in("tests/beta1"), "tests/test_files.py"),
        own=True,
    ),
    "check": Room(
        ("compiler/check.py", "compiler/check_memory.py"),
        (*(f"{U}compiler/test_{n}.py" for n in ("check", "check_memory", "check_warnings",
                                                "lower", "unwritten")),
         f"{U}machine/instructions/test_rules.py", f"{U}simulate/test_definedness.py",
         "tests/property/test_views.py", "tests/test_files.py", f"{U}test_exact.py"),
        own=True,
    ),
    "semantics": Room(
        ("simulate/semantics/*.py",),
        (*_in(f"{U}simulate/semantics"), *_in(f"{U}simulate/numerics"),
         *(f"{U}simulate/test_{n}.py" for n in ("psum", "lost", "remarks", "cores",
                                                "definedness")),
         f"{U}simulate/bounds/test_hidden.py",
         *(f"{U}language/test_{n}.py" for n in ("collectives", "indirect", "dynamic",
                                                "device_loops")),
         "tests/property/test_instructions.py"),
        own=True,
    ),
    "spill": Room(
        ("compiler/spill.py",),
        (f"{U}compiler/test_spill.py", f"{U}prove/test_prove_addresses.py",
         "tests/property/test_stage_pages.py"),
        own=True,
    ),
    "clock": Room(
        ("simulate/machine.py", "simulate/streams.py"),
        (*(f"{U}simulate/test_{n}.py" for n in ("clock", "machine", "cores", "psum", "bands",
                                                "races", "remarks", "lost", "debug",
                                                "definedness", "rerun")),
         f"{U}simulate/semantics/test_semantics_control.py", f"{U}language/test_device_loops.py",
         f"{U}language/test_collectives.py", f"{U}test_exact.py"),
        own=True,
    ),
    "search": Room(
        ("compiler/search.py",),
        (f"{U}compiler/test_search.py", f"{U}compiler/test_pipeline.py"),
        own=True,
    ),
    "field": Room(
        ("simulate/field/*.py",),
        tuple(_in("tests/equal")),
        own=True,
    ),
}  # fmt: skip
