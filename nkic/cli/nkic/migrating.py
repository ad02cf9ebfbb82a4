"""`--migrate`: the new source as a diff or a file, the places left unchanged, and the proof."""

from __future__ import annotations

from codecs import BOM_UTF8
from difflib import unified_diff

from nkic.base import files
from nkic.base.diagnostics import Diagnostic, Level, UsageFailed, bad_value, make
from nkic.base.files import STANDARD
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.base.text import plural
from nkic.cli.common import Session
from nkic.cli.nkic.options import CommandLine
from nkic.driver.loader import MAX_BYTES, Loader
from nkic.driver.request import find_profile
from nkic.migrate.proof import Finding, Text, prove
from nkic.migrate.stage import Migrated, migrate
from nkic.migrate.version import FileVersion, version_of
from nkic.parse import parse
from nkic.specialise.inline import read_block
from nkic.specialise.request import Request

NO, YES = 1, 0
VERDICTS = {
    "bits": "same bits",
    "rounding": "same within rounding: {}",
    "different": "different: {}",
    "failed": "the new source fails",
}


class Migration:
    """The migration of one file from its NKI version to another."""

    def __init__(
        self, line: CommandLine, session: Session, source: SourceFile, request: Request
    ) -> None:
        self.line = line
        self.session = session
        self.source = source
        self.request = request

    def carry_out(self, goal: Profile, loader: Loader) -> int:
        """Migrate, write and report; return the exit code."""
        parse(self.source)  # syntax errors are reported as in a compilation
        stated = self.stated()
        if stated is not None and stated > goal:
            text = (
                f"--migrate {goal.label}: the source is written for NKI {stated.label}, which is "
                "later"
            )
            raise bad_value(text, "name a later version")
        speech = version_of(self.source, self.request, loader, stated, goal)
        made = migrate(self.source, speech.facts, speech.start, goal)
        self.write(made.text)
        self.session.report(loader.relocated(made.left))
        self.summarise(made, goal)
        right = not any(diagnostic.level is Level.ERROR for diagnostic in made.left)
        if self.line.verify:
            right = self.verify(made.text, speech, goal, loader) and right
        return YES if right else NO

    def stated(self) -> Profile | None:
        """Return the NKI version that the command line or the file's block sets for the source."""
        if self.line.nki is not None:
            return find_profile(self.line.nki, "--nki")
        return read_block(self.source).profile

    # ---- writing ---------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Write the new source to the requested file, or the diff to standard output."""
        line = self.line
        path = line.source if line.in_place else line.output
        if path is None:
            files.write(STANDARD, self.difference(text))
        elif not line.in_place and self.is_input(path):
            advice = "--in-place replaces the file"
            raise bad_value(f"-o: `{path}` is the input", advice)
        elif not line.in_place or text != self.source.text:
            files.write(path, self.encoded(text))
            self.session.artifact("source", path)

    def is_input(self, path: str) -> bool:
        """Whether the file to write is the one that was read."""
        both = (path, str(self.line.source))
        return STANDARD not in both and len({files.real(one) for one in both}) == 1

    def encoded(self, text: str) -> bytes:
        """Return the text in the file's encoding: UTF-8, with a byte-order mark if it had one."""
        if self.line.source == STANDARD:
            return text.encode()
        data = files.read_bytes(str(self.line.source), MAX_BYTES)
        mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
        if data.removeprefix(mark) != self.source.text.encode():
            why = f"`{self.line.source}` is not in UTF-8, or has changed in the meantime"
            raise UsageFailed([make("cannot-write", why, help="save it as UTF-8")])
        return mark + text.encode()

    def difference(self, text: str) -> str:
        """Return a diff that `patch` accepts; empty if nothing changed."""
        name = str(self.line.source)
        pair = (self.source.text.splitlines(keepends=True), text.splitlines(keepends=True))
        return "".join(unified_diff(*pair, name, name))

    def summarise(self, made: Migrated, goal: Profile) -> None:
        """Report how often each rule was applied, and how many places are left."""
        done = ", ".join(f"{count} × {title}" for title, count in sorted(made.done.items()))
        left = plural(len(made.left), "place")
        text = f"NKI {goal.label}: {done or 'nothing to rewrite'}; {left} left unchanged"
        self.session.tell(
            "migrated", text, to=goal.label, done=dict(made.done), left=len(made.left)
        )

    # ---- the proof -------------------------------------------------------------------------

    def verify(self, text: str, speech: FileVersion, goal: Profile, loader: Loader) -> bool:
        """Compare the old and the new source, and report the findings."""
        again = Loader.beside(str(self.line.source), self.line.include)
        new = again.main(str(self.line.source), text.encode())
        old = Text(self.source, loader, speech.profile)
        proof = prove(old, Text(new, again, goal), self.request)
        if proof.unproven:
            self.session.report(loader.relocated([_unproven(proof.unproven[0])]))
        self.session.sources = again.source
        for finding in proof.findings:
            self.report(finding)
            self.session.report(again.relocated(finding.errors))
        return proof.holds

    def report(self, finding: Finding) -> None:
        """Report one comparison."""
        before, after = finding.cycles
        verdict = VERDICTS[finding.verdict].format(finding.differs)
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


def _unproven(why: Diagnostic) -> Diagnostic:
    """Return a diagnostic that explains why nothing was compared."""
    text = f"not verified, because the old source does not compile or run: {why.message}"
    span = why.primary.span if why.primary is not None else None
    return make("not-verified", text, span, help=why.help)
