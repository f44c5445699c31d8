"""Links in /dev/char for NVIDIA's device nodes, and what keeps them there.

Docker tells systemd which devices a container may use by their numbers, as /dev/char/195:0. NVIDIA's kernel modules announce no devices,
so udev makes no such links, and at the next daemon-reload systemd forgets the devices whose links it does not find: containers that run
lose their GPUs. A unit makes the links at boot before Docker starts, and another starts it whenever nodes come: a driver that is loaded
anew, MIG instances.
"""

from __future__ import annotations

from bringup.steps import Change, edited, own_units
from bringup.survey import Survey
from bringup.target import Target

SCRIPT = "/usr/local/lib/gpu-bringup/device-links"
SERVICE, WATCH = "gpu-bringup-device-links.service", "gpu-bringup-device-links.path"
FILES = {
    SCRIPT: """\
# written by gpu-bringup: a link in /dev/char for every device node of NVIDIA's, by which systemd finds a device of that number
mkdir -p /dev/char
for node in /dev/nvidia* /dev/nvidia-caps/* /dev/nvidia-caps-imex-channels/*; do
    [ -c "$node" ] || continue
    number=$(stat -L -c '%t %T' "$node") || continue
    link=/dev/char/$(printf '%d:%d' "0x${number% *}" "0x${number#* }")
    [ "$link" -ef "$node" ] || ln -sfn "../${node#/dev/}" "$link"
done
""",
    f"/etc/systemd/system/{SERVICE}": f"""\
# written by gpu-bringup
[Unit]
Description=Link NVIDIA's device nodes in /dev/char
After=systemd-modules-load.service nvidia-persistenced.service
Before=containerd.service docker.service
# it is started once for each node that comes
StartLimitIntervalSec=0
[Service]
Type=oneshot
ExecStart=/bin/sh {SCRIPT}
TimeoutStartSec=30
[Install]
WantedBy=multi-user.target
""",
    f"/etc/systemd/system/{WATCH}": """\
# written by gpu-bringup
[Unit]
Description=Watch for device nodes of NVIDIA's
[Path]
PathChanged=/dev
PathChanged=/dev/nvidia-caps
PathChanged=/dev/nvidia-caps-imex-channels
[Install]
WantedBy=multi-user.target
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
