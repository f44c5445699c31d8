"""This machine itself, without SSH:  pyinfra inventories/local.py deploys/plan.py

Without root and without a sudo that works unasked, it is looked at as the user who runs this: the plan then says what could not be read.
"""

import os
import subprocess


def _sudo_works_unasked() -> bool:
    try:
        return subprocess.run(["sudo", "-n", "true"], capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


hosts = [("@local", {"_sudo": os.geteuid() != 0 and _sudo_works_unasked()})]
