"""Kernel headers, nouveau, the driver's packages, its modules and its services."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra import state
from pyinfra.api import QuoteString, StringCommand

from bringup.errors import HostError
from bringup.index import pick, pick_alongside
from bringup.steps import driver as steps
from bringup.steps import kernel_modules as modules
from bringup.steps.driver_set import to_remove, version_to_ask_for
from bringup.steps.packages import alongside
from bringup.survey import known, loaded_version
from bringup.target import Driver, Target
from facts import live
from facts.packages import DKMS_FAILURE, Index, PackagesOffered
from operations import apt, dnf, packages, sources
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed

BUILD_TIMEOUT_S = 1800  # two minutes on two cores; a small machine takes longer
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
# BUILD VERSION KERNEL WAY_OUT: the sources of one version for one kernel; a distribution calls the module otherwise than NVIDIA does. What
# counts is whether the module is there. A build goes on when its run is killed: the lock, which dkms inherits, is waited for.
BUILD = (
    DKMS_FAILURE
    + r"""
version=$1 kernel=$2 way_out=$3
built() {
    for module in /lib/modules/"$kernel"/updates/dkms/nvidia*.ko* /lib/modules/"$kernel"/extra/nvidia*.ko*; do
        [ ! -e "$module" ] || [ "$(modinfo -F version "$module")" != "$version" ] || return 0
    done
    return 1
}
exec 9>/run/gpu-bringup-dkms.lock && flock -w 1500 9
stamp=$(mktemp) && said=$(mktemp) || exit 1
trap 'rm -f "$stamp" "$said"' EXIT
for conf in /usr/src/nvidia*-"$version"/dkms.conf; do
    built && exit 0
    [ -e "$conf" ] || continue
    name=${conf%-"$version"/dkms.conf}
    dkms install --force -m "${name##*/}" -v "$version" -k "$kernel" </dev/null >"$said" 2>&1
    cat "$said"
done
built && exit 0
why=$(dkms_failure "$stamp")
if [ -n "$why" ]; then why="$why${way_out:+; $way_out}"; else why=$(sed -n 's/^Error! //p' "$said" | head -n 1); fi
echo "gpu-bringup: kernel $kernel has no nvidia module: ${why:-DKMS built none, see 'dkms status' on the host}" >&2
exit 1
"""
)
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
    if needed("kernel-headers", target) is None or target.driver is None:
        return
    headers = target.driver.headers
    if state.is_executing and target.family == "apt":
        yield from apt.fresh_index(target)
        headers = steps.headers_to_be_had(live.survey(), headers, offered(headers))
    if headers:
        yield from packages.install(target, headers, None, None)


def offered(names: tuple[str, ...]) -> Mapping[str, str]:
    """The versions that apt would install now. Raises HostError where apt does not say."""
    host = live.current_host()
    found = host.get_fact(PackagesOffered, packages=list(names), options=list(apt.view_options(host)), _ignore_errors=True)
    if found is None:
        raise HostError("apt did not say which packages it could install: see `apt-cache policy` on the host")
    return found


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
    """NVIDIA's repository, and the pin that keeps the whole set of libraries at the wanted branch, or at the distribution's own."""
    if needed("driver-repository", target) is None or target.driver is None:
        return
    wanted = target.driver.repository
    if wanted is not None:
        yield from sources.add_source(target, wanted, target.driver.packages)
    else:
        yield StringCommand("rm -f", steps.SOURCES_FILE)
    if target.family == "apt":
        yield write_file(steps.PREFERENCES_FILE, steps.preferences(target.driver))
    else:
        yield from dnf.enable_stream(target)


@host_operation
def driver_packages(target: Target) -> Commands:
    """The driver's packages, all of one version from one source; a module that does not compile is named, and its package removed.

    A unit file that the user has edited, though it is a package's, is kept as a backup beside it.
    """
    if needed("driver-packages", target) is None or target.driver is None:
        return
    driver: Driver = target.driver
    others = alongside(live.survey(), driver.packages)

    def choose(index: Index) -> Mapping[str, str]:
        url = driver.repository.url if driver.repository else ""
        chosen = pick(index["versions"], driver.versioned, version_to_ask_for(live.survey(), driver, index["versions"]), url)
        return chosen | pick_alongside(index["versions"], others, chosen)

    if state.is_executing and driver.repository is None and target.family == "apt":
        yield from apt.fresh_index(target)
        steps.check_offered(driver, offered(driver.packages))
    other = to_remove(live.survey(), driver)
    for path in live.survey()["packages"]["edited_units"]:  # the package's new version takes its place
        yield StringCommand("cp -p", QuoteString(path), QuoteString(f"{path}.gpu-bringup-backup"))
    yield from packages.install(target, driver.packages, driver.repository, choose, others=others, way_out=driver.way_out)
    if other:  # last, so that a module that works goes only when the new one is there
        yield from apt.remove(other, kept=())


@host_operation
def kernel_modules(target: Target) -> Commands:
    """The module for the kernel that runs and for the next one: apt succeeds without one, and DKMS builds for one kernel of them."""
    if needed("kernel-modules", target) is None or target.driver is None:
        return
    yield from apt.locks_free(target.lock_timeout_s)
    version = modules.source_version(live.survey(), target.driver)
    for kernel in modules.to_build(live.survey(), target.driver):
        given = (QuoteString(each) for each in (version or "", kernel, target.driver.way_out))
        yield StringCommand("sh", "-c", QuoteString(BUILD), "sh", *given, _timeout=BUILD_TIMEOUT_S)


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
    yield StringCommand(load, _timeout=steps.service_limit_s(live.survey()))


@host_operation
def driver_services(target: Target) -> Commands:
    """Persistence daemon and, where there are NVSwitches, fabric manager: running now and after a boot."""
    if needed("driver-services", target) is None or target.driver is None:
        return
    command, limit_s = steps.persistence_arguments(live.survey()), steps.service_limit_s(live.survey())
    if state.is_executing and command and target.driver.is_ours:
        yield write_file(steps.PERSISTENCE_FILE, steps.persistence_dropin(command))
        yield StringCommand("systemctl daemon-reload && systemctl try-restart", steps.PERSISTENCE, _timeout=limit_s)
    for each in target.driver.services:
        name = QuoteString(each)
        # one line of the journal instead of systemd's "see journalctl"
        yield StringCommand(
            "systemctl enable --now",
            name,
            "|| { journalctl --no-pager -q -n 5 -o cat -u",
            name,
            ">&2; false; }",
            _timeout=limit_s,
        )


@host_operation
def wanted_driver_runs(target: Target) -> Commands:
    """After the reboot: loaded = installed = wanted, or the host has failed by name."""
    yield from ()
    if not state.is_executing or not target.driver:
        return
    if loaded_version(live.survey()) is None and (lacking := modules.lacks_module(live.survey(), target.driver)):
        raise HostError(lacking)
    if problem := steps.wrong_version(live.survey(), target.driver):
        if steps.reboot(live.survey(), target):  # not allowed to: the proof says so
            return
        raise HostError(f"{problem}: `dmesg | grep -i nvrm` on the host says why it did not load")
