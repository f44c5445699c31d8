"""The proof alone: nothing is changed.

pyinfra inventories/cluster.py deploys/verify.py
"""

from bringup.target import Target
from deploys.frame import stage
from operations.verification import proof


def verify(target: Target) -> None:
    proof(name="proof", target=target)


stage(verify)
