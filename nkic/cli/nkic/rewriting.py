"""--migrate and --advise: a kernel's file rewritten, as a diff or a file, and what each change
did.
"""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING

from nkic.artifact.read import load
from nkic.artifact.records import Executable
from nkic.base import files
from nkic.base.diagnostics import Diagnostic, Level, bad_value, make
from nkic.base.files import STANDARD
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.base.text import plural
from nkic.cli.common import Session
from nkic.cli.nkic import outputs
from nkic.cli.nkic.options import CommandLine
from nkic.compiler import pipeline
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.request import find_profile
from nkic.migrate.advise import Step, advise
from nkic.source.parse import parse
from nkic.specialise.inline import read_block
from nkic.specialise.request import Request

if TYPE_CHECKING:
    from nkic.migrate.proof import Finding
    from nkic.migrate.stage import FileVersion, Migrated


class Rewriting:
    def __init__(
        self, line: CommandLine, session: Session, source: SourceFile, request: Request
    ) -> None:
        self.line = line
        self.session = session
        self.source = source
        self.request = request

    def write(self, text: str) -> None:
        """Write the new source to the requested file, or the diff to standard output."""
        line = self.line
        before, source = self.source.text, str(line.source)
        if line.in_place and text != before:
            outputs.replace_text(source, before, text)
            self.session.artifact("source", source)
        if line.in_place:
            return
        if line.output is None:
            files.write(STANDARD, self.difference(text))
            return
        if self.is_input(line.output):
            raise bad_value(f"-o: `{line.output}` is the input", "--in-place replaces the file")
        if line.output.endswith(".neff"):
            raise bad_value(f"-o: `{line.output}` would be source text", "name a file FILE.py")
        is_file = line.source != STANDARD
        files.write(line.output, outputs.encoded(source, before, text) if is_file else text)
        self.session.artifact("source", line.output)

    def is_input(self, path: str) -> bool:
        paths = (path, str(self.line.source))
        return STANDARD not in paths and len({files.real(name) for name in paths}) == 1

    def difference(self, text: str) -> str:
        """Return a diff that `patch` accepts; empty if nothing changed."""
        name = str(self.line.source)
        pair = (self.source.text.splitlines(keepends=True), text.splitlines(keepends=True))
        return "".join(unified_diff(*pair, name, name))


NO, YES = 1, 0
PROOFS = {
    "bits": "same bits",
    "rounding": "same within rounding: {}",
    "different": "different: {}",
    "failed": "the new source fails",
}


class Migration(Rewriting):
    def carry_out(self, target: Profile, loader: Loader) -> int:
        from nkic.migrate.stage import migrate, version_of  # libcst

        parse(self.source)  # syntax errors are reported as in a compilation
        source_profile = self.stated()
        if source_profile is not None and source_profile > target:
            written_for = f"the source is written for NKI {source_profile.label}, which is later"
            raise bad_value(f"--migrate {target.label}: {written_for}", "name a later version")
        version = version_of(self.source, self.request, loader, source_profile, target)
        migrated = migrate(self.source, version.facts, version.start, target)
        self.write(migrated.text)
        self.session.report(loader.relocated(migrated.left))
        self.summarise(migrated, target)
        succeeded = not any(diagnostic.level is Level.ERROR for diagnostic in migrated.left)
        if self.line.verify:
            succeeded = self.verify(migrated.text, version, target, loader) and succeeded
        return YES if succeeded else NO

    def stated(self) -> Profile | None:
        """Return the NKI version that the command line or the file's block sets for the source."""
        if self.line.nki is not None:
            return find_profile(self.line.nki, "--nki")
        return read_block(self.source).profile

    def summarise(self, migrated: Migrated, target: Profile) -> None:
        """Report how often each rule was applied, and how many places are left."""
        done = ", ".join(f"{count} × {title}" for title, count in sorted(migrated.done.items()))
        left = plural(len(migrated.left), "place")
        text = f"NKI {target.label}: {done or 'nothing to rewrite'}; {left} left unchanged"
        self.session.tell(
            "migrated", text, to=target.label, done=dict(migrated.done), left=len(migrated.left)
        )

    # ---- the proof -------------------------------------------------------------------------

    def verify(self, text: str, version: FileVersion, target: Profile, loader: Loader) -> bool:
        from nkic.migrate.proof import Text, prove

        new_loader = Loader.beside(str(self.line.source), self.line.include)
        new = new_loader.main(str(self.line.source), text.encode())
        old = Text(self.source, loader, version.profile)
        proof = prove(old, Text(new, new_loader, target), self.request)
        if proof.unproven:
            self.session.report(loader.relocated([_unproven(proof.unproven[0])]))
        self.session.sources = new_loader.source
        for finding in proof.findings:
            self.report(finding)
            self.session.report(new_loader.relocated(finding.errors))
        return proof.holds

    def report(self, finding: Finding) -> None:
        before, after = finding.cycles
        verdict = PROOFS[finding.verdict].format(finding.differs)
        cycles = f"; {before:,} cycles before, {after:,} after" if before else ""
        cycles += (
            "; tiles are spilled to HBM, for which the new source needs --spill" * finding.spills
        )
        self.session.tell(
            "verified",
            f"verified {finding.arguments}: {verdict}{cycles}",
            arguments=finding.arguments,
            verdict=finding.verdict,
            differs=finding.differs,
            cycles_before=before,
            cycles_after=after,
            spills=finding.spills,
        )


def _unproven(failure: Diagnostic) -> Diagnostic:
    """Return a diagnostic that explains why nothing was compared."""
    text = f"not verified, because the old source does not compile or run: {failure.message}"
    span = failure.primary.span if failure.primary is not None else None
    help = failure.help.replace("run: nkic ", "run: nkic --migrate --verify ")
    return make("not-verified", text, span, help=help)


VERDICTS = {
    "bits": "same bits",
    "rounding": "same within rounding",
    "different": "not kept: it computes something else",
    "failed": "not kept: it does not compile or run",
    "slower": "not kept: it gains nothing",
}


class Advising(Rewriting):
    def carry_out(self, options: CompileOptions) -> int:
        def compiled(text: str) -> tuple[SourceFile, Executable]:
            loader = Loader.beside(str(self.line.source), self.line.include)
            source = loader.main(str(self.line.source), text.encode())
            done = pipeline.compile_source(source, self.request, loader, options)
            return source, load(done.data)

        advised = advise(self.source.text, compiled)
        self.write(advised.text)
        for step in advised.steps:
            self.report(step)
        for answer in advised.left[:3]:
            text = f"left to you: {100 * answer.gain:.0f}% less time{answer.how}: {answer.words}"
            self.session.tell("advice", text, name=answer.name, gain=answer.gain)
        if not advised.steps and not advised.left:
            self.session.tell("advice", "no advice on this kernel")
        return 0

    def report(self, step: Step) -> None:
        before, after = (f"{ns / 1000:,.2f} us" for ns in (step.before_ns, step.after_ns))
        times = f"{before} before, {after} after ({-100 * step.gain:+.0f}%), "
        times = times if step.verdict != "failed" else ""
        self.session.tell(
            "advised",
            f"{step.answer.words}: {times}{VERDICTS[step.verdict]}",
            name=step.answer.name,
            promised=step.answer.gain,
            gain=step.gain,
            before_ns=step.before_ns,
            after_ns=step.after_ns,
            verdict=step.verdict,
        )
