"""Where the lab keeps its things: STATE goes away with `down`, CACHE stays."""

import os
from pathlib import Path

STATE = Path(os.environ.get("GPU_BRINGUP_LAB") or "/var/lib/gpu-bringup-lab").absolute()
"""Hosts, keys, logs, `lab.json` (read by inventories/lab.py) and `made.json` (what `down` has to remove)."""

CACHE = Path(os.environ.get("GPU_BRINGUP_LAB_CACHE") or "/var/cache/gpu-bringup-lab").absolute()
"""Root file systems, packages and images; may be deleted while no lab is up, and is made again."""
