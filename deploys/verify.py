"""The proof alone: nothing is installed or set.

    pyinfra inventories/cluster.py deploys/verify.py

With gpu_verify standard or full (auto: where the last proof was of another boot, driver, Docker, toolkit or image), systemd or Docker is
disturbed under a container of ours, and the result is kept on the host. Full: an idle host is also rebooted, where gpu_reboot allows it.
"""

from bringup.target import Target
from deploys.frame import stage
from operations.survival import proof_reboot, proof_record, survival
from operations.verification import proof


def verify(target: Target) -> None:
    proof_reboot(name="proof-reboot", target=target)
    survival(name="survival", target=target)
    proof(name="proof", target=target)
    proof_record(name="proof-record", target=target)


stage(verify)
