"""Removing what NVIDIA's .run installer has put on a host."""

from __future__ import annotations

from pyinfra.api import QuoteString, StringCommand

from bringup.steps.driver import reloadable
from bringup.steps.runfile import UNINSTALLER, overwritten_packages, unowned_libraries, unowned_modules
from bringup.survey import loaded_version
from bringup.target import Target
from facts import live
from operations import apt, packages
from operations.driver import REBUILD_INITRAMFS, SERVICE_TIMEOUT_S, UNLOAD
from operations.guard import Commands, host_operation
from operations.needed import needed

UNINSTALL_TIMEOUT_S = 900  # it removes modules from DKMS, and makes the initramfs anew

# Its exit status is not what counts: it is itself among the files that it removes.
UNINSTALL = f"""
[ -e {UNINSTALLER} ] || exit 0
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
{UNINSTALLER} --silent </dev/null >"$said" 2>&1; code=$?
cat "$said"
[ -e {UNINSTALLER} ] || exit 0
why=$(sed -n 's/^ *ERROR: *//p' "$said" | head -n 1)
echo "gpu-bringup: nvidia-uninstall ended with exit $code and has not removed the driver: ${{why:-see /var/log/nvidia-uninstall.log}}" >&2
exit 1
"""
# VERSION...: libraries and modules of these versions that no package owns, those that DKMS would build anew for the next kernel included.
# With merged /usr, old packages name their files without it. A module that is some package's after all is named: it stays in the way.
REMOVE = r"""
owner() {
    if command -v dpkg-query >/dev/null 2>&1; then dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}" 2>/dev/null
    else rpm -qf "$1" 2>/dev/null; fi
}
modules() {
    find /lib/modules/ -type f -name 'nvidia*.ko*' 2>/dev/null | while IFS= read -r file; do
        [ "$(modinfo -F version "$file" 2>/dev/null)" != "$1" ] || echo "$file"
    done
}
kernel=$(uname -r)
for version; do
    for file in /usr/lib/*-linux-gnu/lib*.so."$version" /usr/lib/*-linux-gnu/nvidia/current/lib*.so."$version" \
        /usr/lib64/lib*.so."$version" /usr/local/nvidia/lib64/lib*.so."$version"; do
        if [ -e "$file" ] && ! owner "$file" >/dev/null; then rm -f "$file"; fi
    done
    for sources in /usr/src/nvidia*-"$version"; do
        [ -e "$sources/dkms.conf" ] && ! owner "$sources/dkms.conf" >/dev/null || continue
        name=${sources##*/}
        dkms remove -m "${name%-"$version"}" -v "$version" --all || true
    done
    modules "$version" | while IFS= read -r file; do owner "$file" >/dev/null || rm -f "$file"; done
    modules "$version" | while IFS= read -r file; do
        case $file in */"$kernel"/*/nvidia.ko*|*/"$kernel"/*/nvidia-current*.ko*) ;; *) continue ;; esac
        whose=$(owner "$file")
        echo "gpu-bringup: $file ($version) is of the package ${whose%%:*}, and in the way of the driver's own: remove that package" >&2
        exit 1
    done || exit 1
done
ldconfig && depmod -a
"""


@host_operation
def runfile_out(target: Target) -> Commands:
    """NVIDIA's uninstaller, then what it left. Packages that share files with it go first, so that a run that breaks here starts anew."""
    if needed("runfile-out", target) is None:
        return
    survey = live.survey()
    modules = [each["version"] for each in unowned_modules(survey)]
    left, mixed = list(dict.fromkeys([*unowned_libraries(survey), *modules])), overwritten_packages(survey)
    yield from apt.locks_free(target.lock_timeout_s)
    goes = (
        survey["driver"]["runfile"] or loaded_version(survey) in left
    )  # a right driver that is loaded has nothing to do with a file
    if goes and reloadable(survey):  # else the reboot step sees that what is loaded is not what is installed
        yield StringCommand("sh", "-c", QuoteString(UNLOAD), _timeout=SERVICE_TIMEOUT_S)
    if mixed:
        yield from packages.remove(target, mixed)
    yield StringCommand("sh", "-c", QuoteString(UNINSTALL), _timeout=UNINSTALL_TIMEOUT_S)
    if left:
        yield StringCommand(
            "sh", "-c", QuoteString(REMOVE), "sh", *(QuoteString(each) for each in left), _timeout=UNINSTALL_TIMEOUT_S
        )
    if modules:  # which an initramfs may hold
        yield StringCommand("sh", "-c", QuoteString(REBUILD_INITRAMFS), _timeout=UNINSTALL_TIMEOUT_S)
