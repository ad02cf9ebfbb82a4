"""`python -m nkic.cli.nkic`"""

import sys

from nkic.cli.nkic import main

sys.exit(main())
