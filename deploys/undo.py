"""Take back what gpu-bringup did to a host: its packages, files, holds and settings; what it had disabled comes back.

    pyinfra inventories/cluster.py deploys/undo.py

Kernel modules that something uses stay loaded until the next reboot.
"""

from deploys.frame import without_plan
from operations import undo


def take_back() -> None:
    undo.docker_settings(name="undo-docker-settings")
    undo.packages(name="undo-packages")
    undo.files(name="undo-files")


without_plan(take_back)
