"""CDI specs: what is wrong with those that are there, and a unit that keeps one right.

A spec holds file names with the driver's version and numbers of devices, one of which (nvidia-uvm's) is given anew at each boot. So ours
lies in /var/run/cdi, which a boot empties, and where the toolkit's own nvidia-cdi-refresh writes it too. That unit does not run where the
module is not in modules.dep, nor when MIG instances or device nodes come; ours does.
"""

from __future__ import annotations

import re

from bringup.steps import Change, Skip, edited, own_units
from bringup.steps.device_links import SERVICE as DEVICE_LINKS
from bringup.steps.packages import PREDICTED
from bringup.survey import CdiSpec, Survey, known, loaded_version
from bringup.target import Target

SPEC = "/var/run/cdi/nvidia.yaml"
KIND = "nvidia.com/gpu"
UVM, CONTROL = "/dev/nvidia-uvm", "/dev/nvidiactl"
SCRIPT = "/usr/local/lib/gpu-bringup/cdi-spec"
SERVICE = "gpu-bringup-cdi-spec.service"
FILES = {
    SCRIPT: f"""\
# written by gpu-bringup: the CDI spec of the driver that is loaded; one that is right is not touched
umask 022
new=$(mktemp -d /run/gpu-bringup-cdi.XXXXXX) || exit 1
trap 'rm -rf "$new"' EXIT
nvidia-ctk cdi generate --output="$new/nvidia.yaml" || exit 1
mkdir -p -m 755 {SPEC.rpartition("/")[0]}
if cmp -s "$new/nvidia.yaml" {SPEC} && [ "$(stat -c %a {SPEC})" = 644 ]; then exit 0; fi
cp "$new/nvidia.yaml" {SPEC}.new && chmod 644 {SPEC}.new && mv -f {SPEC}.new {SPEC}
""",
    f"/etc/systemd/system/{SERVICE}": f"""\
# written by gpu-bringup
[Unit]
Description=Write the CDI spec of NVIDIA's devices
After={DEVICE_LINKS} nvidia-persistenced.service nvidia-cdi-refresh.service
Before=docker.service
PartOf={DEVICE_LINKS}
ConditionPathExists=/proc/driver/nvidia/version
StartLimitIntervalSec=0
[Service]
Type=oneshot
ExecStart=/bin/sh {SCRIPT}
TimeoutStartSec=60
[Install]
WantedBy=multi-user.target {DEVICE_LINKS}
""",
}


def cdi_spec(survey: Survey, target: Target) -> Change | Skip | None:
    """There is a right spec, there is no wrong one, and the next boot makes one."""
    if target.docker.injection != "cdi" or target.driver is None:
        return None
    why = stale_cdi(survey)
    lacking = own_units.lacking(survey, FILES)
    off = own_units.off(survey, [SERVICE])
    if why is None and not lacking and not off:
        return None
    loaded = loaded_version(survey)
    if loaded is None:  # the reboot was not allowed
        return Skip(f"{why or 'nothing makes a CDI spec at boot'}, and without a loaded driver none can be written")
    module = known(survey["driver"]["module_version"])
    if why is not None and module is not None and module != loaded:
        return Skip(
            f"{why}; driver {loaded} is loaded and {module} installed, with which none can be written: the next boot does"
        )
    after = edited(survey)
    own_units.put(after, FILES, [SERVICE])
    wrong = faults(survey)
    if why is not None:
        nodes = dict.fromkeys([*survey["driver"]["device_nodes"], UVM, CONTROL])
        spec = CdiSpec(
            path=SPEC, kind=KIND, version=None, mode="644", library_versions=[loaded], devices=["all"], device_nodes=list(nodes),
            numbers={}, missing=[],
        )  # fmt: skip
        after["cdi"] = [*(each for each in survey["cdi"] if each["path"] not in (SPEC, *wrong)), spec]
    aside = set_aside(survey)
    what = f"write {SPEC} with nvidia-ctk, and {SERVICE}, which does so at boot"
    said = why or f"no unit makes the CDI spec anew at boot ({', '.join(lacking or off)})"
    return Change(said, f"{what}; keep {', '.join(aside)} as *.disabled" if aside else what, after)


def set_aside(survey: Survey) -> list[str]:
    """Wrong specs that others made, which an engine would read beside ours. No undo puts them back."""
    return [path for path in faults(survey) if path != SPEC]


def stale_cdi(survey: Survey) -> str | None:
    """What is wrong with the CDI specs of nvidia.com/gpu, or None."""
    if not any(each["kind"] == KIND for each in survey["cdi"]):
        return f"no CDI spec for {KIND}"
    return next(iter(faults(survey).values()), None)


def faults(survey: Survey) -> dict[str, str]:
    """path -> what is wrong with the spec."""
    found: dict[str, str] = {}
    folders: dict[str, str] = {}
    for spec in (each for each in survey["cdi"] if each["kind"] == KIND):
        why = _fault(spec, survey)
        folder = spec["path"].rpartition("/")[0]
        if why is None and folder in folders and spec["devices"]:
            why = f"{spec['path']} and {folders[folder]} name the same devices: engines then know none of them"
        if why is None:
            folders[folder] = spec["path"]
        else:
            found[spec["path"]] = why
    return found


def _fault(spec: CdiSpec, survey: Survey) -> str | None:
    path, loaded = spec["path"], loaded_version(survey)
    other = [each for each in spec["library_versions"] if loaded not in (None, PREDICTED, each)]
    if other and other[0] != PREDICTED:
        return f"{path} is of driver {other[0]}, {loaded} is loaded"
    if not spec["library_versions"]:
        return f"{path} names no libcuda of any driver"
    if spec["missing"]:
        return f"{path} names {spec['missing'][0]}, which is not there"
    there = {each["path"]: each["number"] for each in survey["driver"]["nodes"]}
    if UVM not in spec["device_nodes"]:
        return f"{path} has no {UVM}: CUDA would fail in containers"
    unlisted = [each for each in survey["driver"]["device_nodes"] if each not in spec["device_nodes"] and each[11:].isdigit()]
    if unlisted:
        return f"{path} lacks {', '.join(unlisted)}"
    if CONTROL in survey["driver"]["device_nodes"] and CONTROL not in spec["device_nodes"]:
        return f"{path} has no {CONTROL}: nothing would reach the driver in containers"
    for node, number in spec["numbers"].items():
        if there.get(node, number) != number:
            return f"{path} has {node} with the number {number} of another boot, it is {there[node]} now"
    if re.fullmatch("[0-7]+", spec["mode"]) and not int(spec["mode"], 8) & 0o004:
        return f"{path} has mode {spec['mode']}: only root can read it"
    return None
