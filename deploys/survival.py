"""With gpu_verify standard or full: does a running container keep its GPU over daemon-reload and a restart of Docker?"""

from bringup.target import Target
from deploys.frame import stage
from operations import survival as operations


def survival(target: Target) -> None:
    operations.survival(name="survival", target=target)


stage(survival)
