"""Processes that are forked from one that has imported nkic are like those that start anew."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.harness import warm

SAID = """
import os, sys
sys.stdout.write(f"{sys.argv[1:]} {os.getcwd()} {os.environ.get('A')} {sys.stdin.read()}")
sys.stderr.write("\\udc80")
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("more", [{}, {"PYTHONHASHSEED": "7"}], ids=["forked", "started"])
def test_a_process_has_its_words_folder_variables_and_streams(
    tmp_path: Path, more: dict[str, str]
) -> None:
    env = {**os.environ, "A": "b", **more}
    done = warm.run_text(SAID, "3", "x y", cwd=tmp_path, env=env, stdin="é".encode())
    assert done.returncode == 3
    assert done.stdout == f"['3', 'x y'] {tmp_path} b é"
    assert done.stderr == "\\udc80"


def test_variables_of_the_start_are_heeded(tmp_path: Path) -> None:
    code = "import sys; print(sys.flags.hash_randomization, 'nkic.api' in sys.modules)"
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    assert warm.run_text(code, cwd=tmp_path, env=env).stdout == "0 False\n"
    assert warm.run_text(code, cwd=tmp_path).stdout == f"{sys.flags.hash_randomization} True\n"


def test_a_process_that_nobody_waited_for_is_ended(tmp_path: Path) -> None:
    with tempfile.TemporaryFile() as file:
        files = (file, file, file)
        first = warm.start("import time; time.sleep(60)", cwd=tmp_path, files=files)
        assert warm.run_text("print(1)", cwd=tmp_path).stdout == "1\n"
        with pytest.raises(ProcessLookupError):
            os.kill(first.pid, 0)
        child = warm.start("import time; time.sleep(60)", cwd=tmp_path, files=files)
        os.kill(child.pid, signal.SIGTERM)
        assert child.wait() == -signal.SIGTERM
