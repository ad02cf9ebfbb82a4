"""`--advise`: the source after the advice that a program can follow, and what each step gained."""

from __future__ import annotations

from nkic.advise.stage import Step, advise
from nkic.base.source import SourceFile
from nkic.cli.nkic.rewriting import Rewriting
from nkic.driver import pipeline
from nkic.driver.compiled import CompileOptions
from nkic.driver.loader import Loader
from nkic.neff.load import load
from nkic.neff.records import Executable

VERDICTS = {
    "bits": "same bits",
    "rounding": "same within rounding",
    "different": "not kept: the outputs differ",
    "failed": "not kept: it does not compile or run",
    "slower": "not kept: it gains nothing",
}


class Advising(Rewriting):
    """The advice on one kernel, followed."""

    def carry_out(self, options: CompileOptions) -> int:
        """Follow the advice, write and report; return the exit code."""

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
        """Report one advice, with the times of the kernel before and after it."""
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
