"""``python -m hologram COMMAND``, and what the ``hologram`` script runs."""

from __future__ import annotations

import sys

from hologram.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
