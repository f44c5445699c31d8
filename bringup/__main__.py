"""`python -m bringup` is the `bringup` command."""

from __future__ import annotations

import sys

from bringup.cli import main

sys.exit(main())
