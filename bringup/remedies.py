"""What to do where a check has failed, or could not be made; its own words say what was found, and often more exactly what helps."""

from __future__ import annotations

from collections.abc import Iterable

from bringup.report import Check

AGAIN = "run deploys/gpu_host.py: it mends this"
CARD = "reset the GPU or reboot, then prove again; when it comes back have the card replaced"
DOCTOR = "run deploys/doctor.py on the host, which looks for the cause"
SLOW = "prove again on the idle host; when it stays so look at power, cooling and the slot, and at the other hosts of this model"

REMEDIES = {
    "packages": AGAIN,
    "driver": f"{AGAIN}; a reboot that is pending is made where gpu_reboot allows it",
    "driver-services": f"{AGAIN}; else `journalctl -u` of the service says why it does not stay up",
    "cdi-spec": AGAIN,
    "docker": AGAIN,
    "image": AGAIN,
    "gpus-in-container": DOCTOR,
    "cuda-kernel": DOCTOR,
    "docker-ways": AGAIN,
    "startup": "prove again once the host's clock is in step (chrony, systemd-timesyncd)",
    "limits-in-container": DOCTOR,
    "memlock-in-container": f"{AGAIN}; containers that run keep their limits until they are started anew",
    "shm-in-container": f"{AGAIN}; containers that run keep their size until they are started anew",
    "devices-in-container": DOCTOR,
    "xid": f"do what the line says; else {CARD}",
    "gpus-answer": "power-cycle the host; when it comes again have the card or riser replaced",
    "recovery": "do what the driver asks for: reset the GPU or reboot",
    "row-remapping": CARD,
    "ecc": CARD,
    "pcie-width": "reseat the card or riser, and look at the slot's settings in the firmware",
    "pcie-under-load": "reseat the card or riser, and look at the slot's settings in the firmware",
    "fabric": "start nvidia-fabricmanager of the driver's version; in a guest ask the provider to activate the NVLink partition",
    "mig": "end what uses the GPU and reset it, or make the MIG instances anew",
    "nvlink": CARD,
    "results": f"take the host out of service: a GPU that computes wrong is worse than none; {CARD}",
    "nccl": "run it with NCCL_DEBUG=INFO; ACS, an IOMMU that translates, and the fabric manager are the usual causes",
    "survival": "inject by CDI, or link NVIDIA's devices in /dev/char: deploys/gpu_host.py does; then prove again",
    "speed": SLOW,
}


def remedy(name: str) -> str:
    """By the check's name, or by its family: speed-matmul-bf16 is of `speed`."""
    return REMEDIES.get(name) or REMEDIES.get(name.partition("-")[0], "")


def with_remedies(checks: Iterable[Check]) -> None:
    """Write the remedy into each check that needs one and has none."""
    for each in checks:
        if each.status in ("fail", "skipped") and not each.remedy:
            each.remedy = remedy(each.name)
