"""`python -m nkic.cli.nki_run`"""

import sys

from nkic.cli.nki_run import main

sys.exit(main())
