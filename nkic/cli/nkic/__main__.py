"""`python -m nkic.cli.nkic`"""

import sys

from nkic.cli import start_nkic

sys.exit(start_nkic())
