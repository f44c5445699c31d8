"""Links in /dev/char for NVIDIA's device nodes, and what keeps them there.

Docker tells systemd which devices a container may use by their numbers, as /dev/char/195:0. NVIDIA's kernel modules announce no devices,
so udev makes no such links, and at the next daemon-reload systemd forgets the devices whose links it does not find: containers that run
lose their GPUs. A unit makes the links at boot before Docker starts, and another starts it whenever nodes come: a driver that is loaded
anew, MIG instances.
"""

from __future__ import annotations

from bringup.steps import Change, edited, uncommented
from bringup.survey import Survey, Unit, known, unit
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
    lacking = [path for path, text in FILES.items() if survey["our_files"].get(path) != uncommented(text)]
    unlinked = [each["path"] for each in survey["driver"]["nodes"] if not each["linked"]]
    why = ""
    if unlinked:
        why = f"{', '.join(unlinked)} not in /dev/char: a daemon-reload would take the GPU from running containers"
    elif lacking:
        why = f"nothing links NVIDIA's devices in /dev/char at boot ({', '.join(lacking)})"
    elif off := units_off(survey):
        why = f"{', '.join(off)} not on"
    if not why:
        return None
    after = edited(survey)
    after["our_files"].update({path: uncommented(text) for path, text in FILES.items()})
    for node in after["driver"]["nodes"]:
        node["linked"] = True
    units = known(after["units"])
    if units is not None:
        for name, active in ((SERVICE, "inactive"), (WATCH, "active")):
            units[name] = Unit(load="loaded", active=active, enabled="enabled", fragment="", exec_start="", memlock="")
    return Change(why, f"make the links, and {WATCH} and {SERVICE} that keep them", after)


def units_off(survey: Survey) -> list[str]:
    """Which of the two is not enabled, or does not watch. Nothing where systemd did not say."""
    if known(survey["units"]) is None:
        return []
    found = {name: unit(survey, name) for name in (SERVICE, WATCH)}
    return [
        name
        for name, each in found.items()
        if each is None or each["enabled"] != "enabled" or (name == WATCH and each["active"] != "active")
    ]
