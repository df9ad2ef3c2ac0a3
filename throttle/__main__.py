"""`python -m throttle` is the command `throttle`."""

import sys

from throttle.cli import main

sys.exit(main())
