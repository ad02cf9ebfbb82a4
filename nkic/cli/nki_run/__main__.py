"""`python -m nkic.cli.nki_run`"""

import sys

from nkic.cli import start_nki_run

sys.exit(start_nki_run())
