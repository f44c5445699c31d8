import sys

from . import own_lab

own_lab.choose(sys.argv)

from .cli import main  # noqa: E402 - the lab's modules read their settings when they are imported

main()
