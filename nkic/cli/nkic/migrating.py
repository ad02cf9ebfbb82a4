"""`--migrate`: the new source as a diff or a file, the places left unchanged, and the proof."""

from __future__ import annotations

from nkic.base.diagnostics import Diagnostic, Level, bad_value, make
from nkic.base.profiles import Profile
from nkic.base.text import plural
from nkic.cli.nkic.rewriting import Rewriting
from nkic.driver.loader import Loader
from nkic.driver.request import find_profile
from nkic.migrate.proof import Finding, Text, prove
from nkic.migrate.stage import Migrated, migrate
from nkic.migrate.version import FileVersion, version_of
from nkic.parse import parse
from nkic.specialise.inline import read_block

NO, YES = 1, 0
VERDICTS = {
    "bits": "same bits",
    "rounding": "same within rounding: {}",
    "different": "different: {}",
    "failed": "the new source fails",
}


class Migration(Rewriting):
    """The migration of one file from its NKI version to another."""

    def carry_out(self, target: Profile, loader: Loader) -> int:
        """Migrate, write and report; return the exit code."""
        parse(self.source)  # syntax errors are reported as in a compilation
        source_profile = self.stated()
        if source_profile is not None and source_profile > target:
            written_for = f"the source is written for NKI {source_profile.label}, which is later"
            text = f"--migrate {target.label}: {written_for}"
            raise bad_value(text, "name a later version")
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
        """Compare the old and the new source, and report the findings."""
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


def _unproven(failure: Diagnostic) -> Diagnostic:
    """Return a diagnostic that explains why nothing was compared."""
    text = f"not verified, because the old source does not compile or run: {failure.message}"
    span = failure.primary.span if failure.primary is not None else None
    return make("not-verified", text, span, help=failure.help)
