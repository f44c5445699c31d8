"""Taking back what this project did to a host."""

from __future__ import annotations

from pyinfra import host, logger
from pyinfra.api import QuoteString, StringCommand

from bringup import daemon_json
from bringup.command_line import GRUB_FILE
from bringup.errors import HostError
from bringup.policy.engine import keeps_containers
from bringup.steps import driver as driver_steps
from bringup.steps.docker import DaemonChange
from bringup.steps.sources import DISABLED
from bringup.steps.undo import Undo, is_docker, undo
from bringup.survey import known
from facts import live
from operations import apt, dnf
from operations.docker import take_up
from operations.files import write_file
from operations.guard import Commands, host_operation

TIMEOUT_S = 1800
# a package that cannot be purged says so; the files go last, so that a run that breaks here is finished by the next
STOP_SERVICES = "systemctl disable --now nvidia-persistenced.service nvidia-fabricmanager.service 2>/dev/null; true"
# a module that stays loaded would look like somebody else's driver to the next run
KERNEL_MODULES = ("nvidia-kernel", "nvidia-open-kernel", "nvidia-dkms", "linux-modules-nvidia", "kmod-nvidia")
UNLOAD = "for module in nvidia_uvm nvidia_drm nvidia_modeset nvidia; do [ ! -d /sys/module/$module ] || rmmod $module || break; done; true"


def wanted() -> Undo | None:
    found = undo(live.survey())
    if found is None:
        host.noop("nothing of gpu-bringup's is on this host")
    return found


@host_operation
def docker_settings() -> Commands:
    """Our keys leave daemon.json, and Docker is restarted without them; a key that was changed since is the user's."""
    found = wanted()
    if found is None or found.daemon_json is None:
        return
    running = known(live.survey()["docker"]["running"]) or []
    if running and not keeps_containers(live.survey()):
        names = ", ".join(each["name"] for each in running)
        raise HostError(f"Docker must be restarted for this, which would end {names}: stop them first")
    backup = f"{daemon_json.PATH}.gpu-bringup-backup"
    if found.daemon_json and isinstance(known(live.survey()["docker"]["info"]), dict):  # what dockerd refuses is not left behind
        rest = DaemonChange("", found.daemon_json, restart=True, wanted={}, read=True, lends=False, ends=())
        yield from take_up(rest, live.survey())
        yield StringCommand("rm -f", backup)
        return
    if found.daemon_json:
        yield write_file(daemon_json.PATH, found.daemon_json)
    else:
        yield StringCommand("rm -f", daemon_json.PATH, backup)
    yield StringCommand(
        "if systemctl is-active --quiet docker.service; then systemctl restart docker.service; fi", _timeout=TIMEOUT_S
    )


@host_operation
def packages() -> Commands:
    """Packages that were not there before us are removed, and ours are held no more."""
    found = wanted()
    if found is None:
        return
    for each in found.keeps:
        live.current_host().log(each, logger.warning)
    if found.packages:
        yield StringCommand(STOP_SERVICES)
    if any(each.startswith(KERNEL_MODULES) for each in found.packages):
        yield StringCommand("sh", "-c", QuoteString(UNLOAD))
    docker = [each for each in found.packages if is_docker(each)]
    if live.survey()["packages"]["manager"] == "rpm":
        if docker:  # whose packages stop no service
            yield StringCommand("systemctl disable --now docker.service docker.socket containerd.service 2>/dev/null; true")
        yield from dnf.remove(found.packages, found.unhold, found.stream)
        return
    if found.unhold:
        yield from apt.mark("unhold", found.unhold)
    # Docker's is removed without purging: its purge takes /var/lib/docker along, images and volumes of the user's
    yield from apt.remove([each for each in found.packages if each not in docker], kept=docker)


@host_operation
def files() -> Commands:
    """Our files go, what we disabled comes back, the initramfs is made anew; the provenance goes last."""
    found = wanted()
    if found is None:
        return
    for path in found.restore:
        kept = QuoteString(path + DISABLED)
        yield StringCommand("if [ -e", kept, "]; then mv -f", kept, QuoteString(path), "; fi")
    *others, record = found.files
    yield StringCommand(f"if [ -e {GRUB_FILE} ]; then rm -f {GRUB_FILE} && update-grub; fi", _timeout=TIMEOUT_S)
    units = [each.rsplit("/", 1)[1] for each in others if each.startswith("/etc/systemd/system/gpu-bringup-")]
    yield StringCommand("systemctl disable --now", *(QuoteString(each) for each in units), "2>/dev/null; true")
    yield StringCommand("rm -f", *(QuoteString(each) for each in others))
    if driver_steps.MODPROBE_FILE in others:
        yield StringCommand(
            "if command -v update-initramfs >/dev/null 2>&1; then update-initramfs -u -k all; "
            "elif command -v dracut >/dev/null 2>&1; then dracut --force --regenerate-all; fi",
            _timeout=TIMEOUT_S,
        )
    yield StringCommand(
        "systemctl daemon-reload; rm -f",
        QuoteString(record),
        "; rmdir /etc/gpu-bringup /var/lib/gpu-bringup /usr/local/lib/gpu-bringup 2>/dev/null; true",
    )
