"""Kernel headers, nouveau, the driver's packages, its modules and its services."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra import state
from pyinfra.api import QuoteString, StringCommand

from bringup.errors import HostError
from bringup.index import pick
from bringup.steps import driver as steps
from bringup.survey import known, loaded_version
from bringup.target import Driver, Target
from facts import live
from facts.packages import DkmsBuild, Index
from operations import dnf, packages, sources
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed

SERVICE_TIMEOUT_S = 180  # nvidia-persistenced on an 8-GPU host without persistence takes a minute

# Made anew for all kernels, then looked into: an initramfs with nouveau and without our list loads it before the root file system is there.
REBUILD_INITRAMFS = f"""
if command -v update-initramfs >/dev/null 2>&1; then update-initramfs -u -k all || exit 1
elif command -v dracut >/dev/null 2>&1; then dracut --force --regenerate-all || exit 1
else exit 0; fi
for image in "/boot/initrd.img-$(uname -r)" "/boot/initramfs-$(uname -r).img"; do
    [ -e "$image" ] || continue
    touch "$image"
    list=$( (lsinitramfs "$image" || lsinitrd "$image") 2>/dev/null) || continue
    case $list in *nouveau.ko*)
        case $list in *{steps.MODPROBE_FILE.lstrip("/")}*) ;; *)
            echo "gpu-bringup: $image still holds nouveau, and not {steps.MODPROBE_FILE}: nouveau would come back at the next boot" >&2
            exit 1 ;; esac ;;
    esac
done
"""
# Our own daemons hold the modules; a client that came meanwhile keeps them, and rmmod says so. $? is always 0: the reboot step looks.
UNLOAD = """
[ -d /sys/module/nvidia ] || exit 0
systemctl stop nvidia-persistenced.service nvidia-fabricmanager.service 2>/dev/null
for module in nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem gdrdrv nvidia; do
    if [ -d /sys/module/$module ]; then rmmod $module || break; fi
done
true
"""


@host_operation
def kernel_headers(target: Target) -> Commands:
    """Headers of the running kernel, which the module is built against, and what brings those of the next kernel."""
    if needed("kernel-headers", target) and target.driver:
        yield from packages.install(target, target.driver.headers, None, None)


@host_operation
def nouveau_out(target: Target) -> Commands:
    """Block the modules that would take the GPU, also in the initramfs: there nouveau comes back from at the next boot."""
    if needed("nouveau-out", target) is None:
        return
    lines = [f"blacklist {each}\n" for each in target.blocked_modules]
    lines.append("options nouveau modeset=0\n")
    yield write_file(steps.MODPROBE_FILE, "# written by gpu-bringup: NVIDIA's driver needs the GPU\n" + "".join(lines))
    yield StringCommand("sh", "-c", QuoteString(REBUILD_INITRAMFS), _timeout=900)


@host_operation
def driver_repository(target: Target) -> Commands:
    """NVIDIA's repository, and the pin that keeps the whole set of libraries at the wanted branch."""
    wanted = target.driver.repository if target.driver else None
    change = needed("driver-repository", target)
    if change is None or wanted is None or target.driver is None:
        return
    yield from sources.add_source(wanted, target.driver.packages)
    if target.family == "apt":
        yield write_file(steps.PREFERENCES_FILE, steps.preferences(target.driver))
    else:
        yield from dnf.enable_stream(target)


@host_operation
def driver_packages(target: Target) -> Commands:
    """The driver's packages, all of one version from one source; then its module must be there: apt succeeds without one."""
    if needed("driver-packages", target) is None or target.driver is None:
        return
    driver: Driver = target.driver

    def choose(index: Index) -> Mapping[str, str]:
        return pick(index["versions"], driver.versioned, driver.wanted, driver.repository.url if driver.repository else "")

    yield from packages.install(target, driver.packages, driver.repository, choose)
    if state.is_executing and known(live.survey(fresh=True)["driver"]["module_version"]) is None:
        kernel = live.survey()["kernel"]
        build = live.current_host().get_fact(DkmsBuild, _ignore_errors=True)
        why = f"DKMS says: {build}" if build else "see `dkms status` on the host"
        raise HostError(f"the driver's packages are installed and kernel {kernel} has no nvidia module; {why}")


@host_operation
def driver_loaded(target: Target) -> Commands:
    """Load the modules, or load them anew, where nothing stands in the way. What cannot be loaded now is for the reboot."""
    if needed("driver-loaded", target) is None:
        return
    if loaded_version(live.survey()) != known(live.survey()["driver"]["module_version"]):
        yield StringCommand("sh", "-c", QuoteString(UNLOAD), _timeout=SERVICE_TIMEOUT_S)
    # modprobe makes no /dev/nvidia-uvm, and a container gets only nodes that are there
    nodes = "{ ! command -v nvidia-modprobe >/dev/null || nvidia-modprobe -c=0 -u; }"
    load = f"modprobe nvidia && modprobe nvidia-uvm && {nodes} || echo 'not loadable now' >&2"
    yield StringCommand(load, _timeout=SERVICE_TIMEOUT_S)


@host_operation
def driver_services(target: Target) -> Commands:
    """Persistence daemon and, where there are NVSwitches, fabric manager: running now and after a boot."""
    if needed("driver-services", target) is None or target.driver is None:
        return
    for each in target.driver.services:
        name = QuoteString(each)
        # one line of the journal instead of systemd's "see journalctl"
        yield StringCommand(
            "systemctl enable --now",
            name,
            "|| { journalctl --no-pager -q -n 5 -o cat -u",
            name,
            ">&2; false; }",
            _timeout=SERVICE_TIMEOUT_S,
        )


@host_operation
def wanted_driver_runs(target: Target) -> Commands:
    """After the reboot: loaded = installed = wanted, or the host has failed by name."""
    yield from ()
    if state.is_executing and target.driver and (problem := steps.wrong_version(live.survey(), target.driver)):
        if steps.reboot(live.survey(), target):  # not allowed to: the proof says so
            return
        raise HostError(f"{problem}: `dmesg | grep -i nvrm` on the host says why it did not load")
