"""What is known about a point."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nkic.judge import Evaluation
from nkic.tuning.space import Point, label

_NUMBERS = re.compile(r"\d[\d,.]*(?: [KMG]?i?B\b)?")


@dataclass(frozen=True)
class Outcome:
    """A point and its evaluation: the compiler's estimate alone, or a run and a comparison."""

    point: Point
    evaluation: Evaluation

    @property
    def label(self) -> str:
        """The point in one line."""
        return label(self.point)

    @property
    def status(self) -> str:
        """The evaluation in one word: compiled is an estimate."""
        return self.evaluation.status

    @property
    def correct(self) -> bool:
        """Whether it was run and is right."""
        return self.evaluation.correct

    @property
    def open(self) -> bool:
        """Whether it compiles, and nothing speaks against it."""
        return self.status in ("correct", "compiled") and self.evaluation.time_ns is not None

    @property
    def program(self) -> tuple[str, ...]:
        """What identifies the compiled programs."""
        return tuple(self.evaluation.artifacts.values())

    @property
    def us(self) -> float:
        """The time in microseconds."""
        return (self.evaluation.time_ns or 0.0) / 1000

    @property
    def cost(self) -> tuple[float, int]:
        """What orders points: the time in four digits, since more decide nothing, and SBUF."""
        return float(f"{self.us:.4g}"), self.evaluation.sbuf_bytes

    @property
    def reason(self) -> tuple[str, str]:
        """Why it is refused or wrong: the code of a diagnostic, if there is one, and a text."""
        errors = (d for d in self.evaluation.diagnostics if d.get("level") == "error")
        first = next(errors, {"code": "", "message": self.evaluation.reason})
        return ("", "") if self.open else (str(first["code"]), str(first["message"]))

    @property
    def kind(self) -> tuple[str, str, str]:
        """What failures for one reason have in common: the text without its numbers."""
        code, text = self.reason
        return self.status, code, _NUMBERS.sub("N", text)
