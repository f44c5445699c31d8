"""Links in /dev/char for NVIDIA's device nodes, and what keeps them there.

Docker tells systemd which devices a container may use by their numbers, as /dev/char/195:0. NVIDIA's kernel modules announce no devices,
so udev makes no such links, and at the next daemon-reload systemd forgets the devices whose links it does not find: containers that run
lose their GPUs. A unit makes nodes and links at boot before Docker starts. udev starts it again whenever the driver takes a GPU (a module
that is loaded anew) and when nvidia_uvm comes; a watch, when MIG's nodes come. /dev itself is not watched: there every `>/dev/null` of any
process is an event.
"""

from __future__ import annotations

from bringup.steps import Change, edited, own_units
from bringup.survey import Survey
from bringup.target import Target

SCRIPT = "/usr/local/lib/gpu-bringup/device-links"
SERVICE, WATCH = "gpu-bringup-device-links.service", "gpu-bringup-device-links.path"
FILES = {
    SCRIPT: """\
# written by gpu-bringup: NVIDIA's device nodes, and a link in /dev/char for each, by which systemd finds a device of that number
for gpu in /proc/driver/nvidia/gpus/*/information; do
    minor=$(sed -n 's/^Device Minor:[[:space:]]*//p' "$gpu" 2>/dev/null)
    [ -z "$minor" ] || ! command -v nvidia-modprobe >/dev/null || nvidia-modprobe -u -c="$minor"
done
mkdir -p /dev/char
link_all() { # fails where there was nothing to link
    none=1
    for node in /dev/nvidia* /dev/nvidia-caps/* /dev/nvidia-caps-imex-channels/*; do
        [ -c "$node" ] || continue
        number=$(stat -L -c '%t %T' "$node") || continue
        link=/dev/char/$(printf '%d:%d' "0x${number% *}" "0x${number#* }")
        [ "$link" -ef "$node" ] || { ln -sfn "../${node#/dev/}" "$link" && none=0; }
    done
    return $none
}
# nodes come one after the other: with --settle, until a second brings no other
while link_all && [ "${1-}" = --settle ]; do sleep 1; done
exit 0
""",
    f"/etc/systemd/system/{SERVICE}": f"""\
# written by gpu-bringup
[Unit]
Description=Link NVIDIA's device nodes in /dev/char
After=systemd-modules-load.service nvidia-persistenced.service
Before=containerd.service docker.service
# it is started once for each GPU that comes
StartLimitIntervalSec=0
[Service]
Type=oneshot
ExecStart=/bin/sh {SCRIPT} --settle
TimeoutStartSec=30
[Install]
WantedBy=multi-user.target
""",
    f"/etc/systemd/system/{WATCH}": """\
# written by gpu-bringup
[Unit]
Description=Watch for device nodes of MIG and IMEX
[Path]
PathChanged=/dev/nvidia-caps
PathChanged=/dev/nvidia-caps-imex-channels
[Install]
WantedBy=multi-user.target
""",
    # restart, not start: a run that began before the last GPU came would be taken for the one that is asked for
    "/etc/udev/rules.d/71-gpu-bringup.rules": f"""\
# written by gpu-bringup
ACTION=="bind", SUBSYSTEM=="pci", DRIVER=="nvidia", RUN+="/bin/systemctl --no-block restart {SERVICE}"
ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia_uvm", RUN+="/bin/systemctl --no-block restart {SERVICE}"
""",
}


def device_links(survey: Survey, target: Target) -> Change | None:
    """Every device node has its link, and will have it after the next boot."""
    if target.driver is None:
        return None
    lacking = own_units.lacking(survey, FILES)
    unlinked = [each["path"] for each in survey["driver"]["nodes"] if not each["linked"]]
    why = ""
    if unlinked:
        why = f"{', '.join(unlinked)} not in /dev/char: a daemon-reload would take the GPU from running containers"
    elif lacking:
        why = f"nothing links NVIDIA's devices in /dev/char at boot ({', '.join(lacking)})"
    elif off := own_units.off(survey, [SERVICE], [WATCH]):
        why = f"{', '.join(off)} not on"
    if not why:
        return None
    after = edited(survey)
    own_units.put(after, FILES, [SERVICE], [WATCH])
    for node in after["driver"]["nodes"]:
        node["linked"] = True
    return Change(why, f"make the links, and {WATCH} and {SERVICE} that keep them", after)
