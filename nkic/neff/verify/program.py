"""Verification that an executable cannot make the runner misbehave.

A verified program may compute wrong numbers, deadlock (the runner detects that), or fault on an
index it computes. It cannot access bytes outside its tensors, run an instruction in a way that its
row forbids, or refer outside the tables of its file. The checks, in order:

- the target is known, and the counts are within its limits;
- tensors are within their memories; inputs, outputs and constants are in HBM and complete;
- each stream belongs to one queue of one core, and its engine may run its instructions;
- every access pattern stays in its tensor, and the tensor belongs to the stream's core;
- every instruction obeys its row's rules (`machine.rules`), checked once per distinct shape;
- a semaphore has one signalling and one waiting stream; loops nest, and counted loops end;
- the cores reach the same rendezvous in the same order.
"""

from __future__ import annotations

from typing import NoReturn

from nkic.machine import targets
from nkic.machine.targets import Target
from nkic.neff.columns import columns_of
from nkic.neff.failures import refuse
from nkic.neff.limits import LIMITS, Limits
from nkic.neff.places import source_of
from nkic.neff.records import Executable
from nkic.neff.verify.rendezvous import has_rendezvous, verify_rendezvous
from nkic.neff.verify.streams import verify_streams
from nkic.neff.verify.tensors import kinds_of, verify_tensors
from nkic.neff.verify.unsound import Unsound


def verify(executable: Executable, limits: Limits = LIMITS) -> None:
    """Raise `ArtifactFailed` for the first error in the program."""
    try:
        check(executable, limits)
    except Unsound as error:
        refuse_unsound(error, executable)


def verify_ordered(executable: Executable) -> None:
    """Raise `ArtifactFailed` for two conflicting accesses of one core that are not ordered.

    This is not part of `verify`: a valid file may compute wrong numbers.
    """
    from nkic.neff.verify.orders import verify_orders  # deferred: few runs request the proofs

    try:
        verify_orders(executable)
    except Unsound as error:
        refuse_unsound(error, executable)


def check(executable: Executable, limits: Limits) -> None:
    """The same as `verify`, but raises `Unsound`, which has the position of the record."""
    target = _target(executable, limits)
    kinds = kinds_of(executable)
    verify_tensors(executable, kinds, target, limits)
    columns = columns_of(executable)
    verify_streams(executable, columns, kinds, target, limits)
    if has_rendezvous(columns):
        verify_rendezvous(executable, target)


def refuse_unsound(error: Unsound, executable: Executable, offset: int | None = None) -> NoReturn:
    """Raise `ArtifactFailed` for `error`, with the source place if the file has it."""
    span = source_of(executable, error.place)
    notes = (f"compiled from {span.path}:{span.line}:{span.column}",) if span is not None else ()
    refuse(error.slug, f"{error}", error.section, offset, help=error.help, notes=notes)


def _target(executable: Executable, limits: Limits) -> Target:
    target = targets.TARGETS.get(executable.target)
    if target is None:
        names = ", ".join(targets.TARGETS)
        raise Unsound(f"unknown target `{executable.target}`", help=f"known are: {names}")
    counts = (
        ("cores", executable.cores, target.max_cores),
        ("semaphores per core", executable.semaphores, target.semaphores),
        ("registers", executable.registers, limits.registers),
    )
    for resource, count, limit in counts:
        if not 0 <= count <= limit:
            raise Unsound(f"{count} {resource}; {target.name} has {limit}")
    return target
