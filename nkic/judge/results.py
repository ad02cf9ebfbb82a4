"""Evaluations that were made before, in a file, by the content of all that they depend on."""

from __future__ import annotations

import json
import os
import sqlite3
import threading

from nkic.base.diagnostics import bad_value
from nkic.judge.evaluation import Evaluation

_WAIT = 60.0  # seconds for another process that writes


class Results:
    """A database of evaluations, which several processes may use at once.

    Raises `UsageFailed` for a file that is none, or that cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self._lock = os.fspath(path), threading.Lock()
        try:
            self._database = sqlite3.connect(self.path, _WAIT, check_same_thread=False)
            with self._lock, self._database as database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, record)"
                )
        except sqlite3.Error as error:
            text = f"`{self.path}` cannot hold evaluations: {error}"
            raise bad_value(text, "name a file that does not exist yet") from None

    def get(self, key: str) -> Evaluation | None:
        """Return the evaluation of a key; None if there is none that can be read."""
        with self._lock:
            found = self._database.execute("SELECT record FROM results WHERE key = ?", (key,))
            row = found.fetchone()
        try:
            return Evaluation.from_record(json.loads(row[0])) if row else None
        except (TypeError, ValueError, AttributeError):
            return None

    def put(self, key: str, evaluation: Evaluation) -> None:
        """Keep an evaluation."""
        with self._lock, self._database as database:
            row = (key, evaluation.json(host=True))
            database.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", row)
