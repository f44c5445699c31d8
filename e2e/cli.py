"""python -m e2e: the lab and the scenarios that run on it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from . import runner
from .hardware.kit import make_kit
from .lab import machine, rpm
from .lab.command import say
from .lab.distros import DISTROS
from .lab.errors import LabError
from .lab.gpu import PROFILES
from .lab.lab import Lab


def main() -> None:
    """Exit codes: 0 done, 1 it failed, 2 wrong use, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)  # as Ctrl-C: what was made is removed
    arguments = _parser().parse_args()
    try:
        sys.exit(arguments.verb(arguments))
    except LabError as problem:
        print(f"e2e: {problem}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("e2e: interrupted; `python -m e2e down` removes what may be left", file=sys.stderr)
        sys.exit(130)


def up(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    lab = Lab.up(arguments.hosts, arguments.distro, arguments.gpu)
    say(f"{len(lab.hosts)} host{'s' * (len(lab.hosts) > 1)} up after {time.monotonic() - began:.1f} s")
    print(lab.status(), end="")
    return 0


def status(arguments: argparse.Namespace) -> int:
    machine.check_root()
    print(Lab.load().status(), end="")
    return 0


def login(arguments: argparse.Namespace) -> int:
    machine.check_root()
    host = Lab.load().host(arguments.host)
    command = [*host.ssh_command(), host.address, *arguments.command]
    os.execvp(command[0], command)  # noqa: S606 - argv, no shell


def down(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    say(f"down after {time.monotonic() - began:.1f} s" if Lab.down() else "no lab is up")
    return 0


def requirements(arguments: argparse.Namespace) -> int:
    print("".join(f"{package}\n" for package in machine.missing_packages(rpm.REQUIRED_PACKAGES)), end="")
    return 0


def test(arguments: argparse.Namespace) -> int:
    return runner.test(arguments.names, every=arguments.all, keep=arguments.keep)


def converge(arguments: argparse.Namespace) -> int:
    return runner.converge(arguments.name)


def scenarios(arguments: argparse.Namespace) -> int:
    print(runner.describe(), end="")
    return 0


def possible(arguments: argparse.Namespace) -> int:
    why = machine.impossible()
    if why is not None:
        print(why)
    return 0 if why is None else 1


def kit(arguments: argparse.Namespace) -> int:
    make_kit(arguments.folder, arguments.toolkit)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m e2e", description="Throw-away hosts with simulated GPUs, and scenarios that run on them."
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    verb = verbs.add_parser("up", help="make a lab")
    verb.add_argument("--hosts", type=int, default=2, metavar="N", help="how many hosts (2)")
    verb.add_argument("--distro", metavar="DISTRO", help=f"for all hosts: {', '.join(DISTROS)} (debian12 and debian13, in turn)")
    verb.add_argument("--gpu", metavar="PROFILE", help=f"for all hosts: {', '.join(PROFILES)} (h200 and h200x8, in turn)")
    verb.set_defaults(verb=up)

    verb = verbs.add_parser("status", help="the lab's hosts, and whether they answer")
    verb.set_defaults(verb=status)

    verb = verbs.add_parser("login", help="log in to a host over SSH")
    verb.add_argument("host", metavar="HOST")
    verb.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="run this there instead of a shell")
    verb.set_defaults(verb=login)

    verb = verbs.add_parser("down", help="end the lab and remove everything of it but the cache")
    verb.set_defaults(verb=down)

    verb = verbs.add_parser("requirements", help="the apt packages that the lab needs and that are not installed")
    verb.set_defaults(verb=requirements)

    verb = verbs.add_parser("possible", help="whether this machine can hold the lab; if not, why")
    verb.set_defaults(verb=possible)

    verb = verbs.add_parser("scenarios", help="the scenarios: name, tier, what each shows")
    verb.set_defaults(verb=scenarios)

    verb = verbs.add_parser("test", help="run scenarios in a lab of their own; without a name those of the short tier")
    which = verb.add_mutually_exclusive_group()
    which.add_argument("names", nargs="*", default=[], metavar="NAME")
    which.add_argument("--all", action="store_true", help="every scenario that needs no GPU")
    verb.add_argument("--keep", action="store_true", help="end at the first failure, and leave the hosts as they are")
    verb.set_defaults(verb=test)

    verb = verbs.add_parser("kit", help="make what `test hardware` needs on a machine with a GPU and no network")
    verb.add_argument("folder", type=Path, metavar="FOLDER", help="where; carry it there, and name it in GPU_BRINGUP_KIT")
    verb.add_argument(
        "--toolkit", type=Path, metavar="DEBS", help="a folder of NVIDIA's container toolkit packages, of one version"
    )
    verb.set_defaults(verb=kit)

    verb = verbs.add_parser("converge", help="bring a scenario's hosts to where its converge phase ends, and leave them so")
    verb.add_argument("name", metavar="NAME")
    verb.set_defaults(verb=converge)
    return parser


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
