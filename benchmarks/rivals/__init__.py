"""What people use instead, doing the same work: Ansible (its stock modules), ssh, a plain shell script, pyinfra's own facts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ANSIBLE = "ansible-core==2.19.14"


def ansible_playbook() -> Path:
    """The program, in a virtual environment of its own in the lab's cache; made if need be (a minute)."""
    from e2e.lab.paths import CACHE

    folder = CACHE / ANSIBLE.replace("==", "-")
    program = folder / "bin" / "ansible-playbook"
    if not program.exists():
        print(f"installing {ANSIBLE} for comparison", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=120)
        install = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", ANSIBLE]
        subprocess.run(install, check=True, timeout=600)
    return program
