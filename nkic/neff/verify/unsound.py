"""The error that verification raises: a program that must not run, and the position."""

from __future__ import annotations

from nkic.neff.failures import Malformed


class Unsound(Malformed):
    """A program breaks a rule.

    `record` is the number of the tensor in the section `layout`, or of the record in `code`,
    counted from the first stream; -1 if unknown.
    """

    def __init__(
        self,
        message: str,
        slug: str = "artifact-program",
        *,
        section: str = "layout",
        record: int = -1,
        place: int = -1,
        help: str = "",
    ) -> None:
        super().__init__(message, slug)
        self.section = section
        self.record = record
        self.place = place
        self.help = help
