"""Relations of the GPUs at work: fabric, MIG, links, memory, CDI specs, limits, images."""

from __future__ import annotations

import re

from bringup import catalog, versions
from bringup.doctor.facts import Facts
from bringup.doctor.relations.driver import _gpus, same
from bringup.doctor.relations.lines import matched
from bringup.doctor.relations.registry import relation


def _fabric_unit(facts: Facts) -> str:
    return facts.command(r"systemctl\b.*fabricmanager") or ""


@relation
def fabric_manager_does_not_run(facts: Facts) -> list[str]:
    found = re.search(r"^.*(?:\binactive\b|\bfailed\b|could not be found|\bunknown\b|not-found).*$", _fabric_unit(facts), re.M)
    return [f"nvidia-fabricmanager: {found[0].strip()}"] if found else []


@relation
def fabric_manager_runs(facts: Facts) -> list[str]:
    return ["nvidia-fabricmanager is active"] if re.search(r"^\s*active\b|Active: active", _fabric_unit(facts), re.M) else []


@relation
def has_nvswitch(facts: Facts) -> list[str]:
    if facts.switch_lines:
        return [facts.switch_lines[0].strip()]
    names = [each.name for each in _gpus(facts) if each.fabric_manager == "with-nvlink5"]
    return [f"{names[0]} with NVLink 5"] if names and not facts.virtual else []


@relation
def switches_without_fabric_manager(facts: Facts) -> list[str]:
    switches, down = has_nvswitch(facts), fabric_manager_does_not_run(facts)
    return [*switches, *down] if switches and down else []


@relation
def no_nvswitch(facts: Facts) -> list[str]:
    if not facts.has_lspci or facts.switch_lines:
        return []
    if any(each.fabric_manager == "with-nvlink5" for each in _gpus(facts)):
        return []
    counted = facts.command(r"lspci\b.*(?:0680|nvswitch)")
    if counted is not None and counted.strip() in ("0", ""):
        return ["lspci shows no NVSwitch"]
    return ["lspci shows no NVSwitch"] if facts.gpu_lines or facts.command(r"\blspci\b") else []


@relation
def sxm_gpu_in_a_guest_without_nvswitch(facts: Facts) -> list[str]:
    sxm = [each.name for each in _gpus(facts) if each.fabric_manager in ("with-nvswitch", "with-nvlink5")]
    if facts.virtual and not facts.switch_lines and (sxm or re.search(r"\bSXM\d?\b|HGX", "\n".join(facts.gpu_lines))):
        return [f"a virtual machine with {sxm[0] if sxm else 'an SXM GPU'}, and no NVSwitch"]
    return []


@relation
def rack_fabric(facts: Facts) -> list[str]:
    names = [each.name for each in _gpus(facts) if each.fabric_manager == "imex"]
    found = next((line.strip() for line in facts.gpu_lines if re.search(r"GB[23]00", line)), None)
    return [f"{names[0]}: its fabric is managed on the rack's switch trays"] if names else [found] if found else []


@relation
def mig_mode_pending(facts: Facts) -> list[str]:
    name = next((each.name for each in facts.sources if "mig.mode.current" in each.name and "pending" in each.name), None)
    text = facts.command(r"mig\.mode\.current.*pending") if name else ""
    for line in (text or "").split("\n"):
        states = re.findall(r"\b(Enabled|Disabled)\b", line)
        if len(states) == 2 and states[0] != states[1]:
            return [f"MIG mode is {states[0]}, pending {states[1]}: {line.strip()}"]
    found = re.search(r"MIG Mode\s*\n\s*Current\s*:\s*(\w+)\s*\n\s*Pending\s*:\s*(\w+)", facts.everything)
    if found and found[1] != found[2] and "N" not in (found[1][0], found[2][0]):
        return [f"MIG mode is {found[1]}, pending {found[2]}"]
    return []


@relation
def mig_without_instances(facts: Facts) -> list[str]:
    on = re.search(
        r"^.*(?:mig\.mode\.current\D{0,4}Enabled|MIG Mode\s*\n\s*Current\s*:\s*Enabled|<current_mig>Enabled).*$",
        facts.everything,
        re.M,
    )
    text = facts.command(r"mig\.mode\.current(?!.*pending)") or ""
    on = on or re.search(r"^.*\bEnabled\b.*$", text, re.M)
    listing = facts.command(r"nvidia-smi (?:-L|--list-gpus|mig -lgi)")
    if on and listing is not None and not re.search(r"^\s*MIG \S|MIG-[0-9a-f-]{8}", listing, re.M):
        return ["MIG is enabled, and nvidia-smi -L lists no MIG device"]
    return []


def _table(facts: Facts, *columns: str) -> list[dict[str, str]]:
    """Rows of nvidia-smi's CSV with these columns, by its heading or by the command that asked."""
    for each in facts.sources:
        lines = [line for line in each.text.split("\n") if "," in line]
        asked = re.search(r"--query-gpu=(\S+)", each.name)
        heading = [part.strip().split(" ")[0] for part in lines[0].split(",")] if lines else []
        names = heading if set(columns) <= set(heading) else asked[1].split(",") if asked else []
        if set(columns) <= set(names):
            rows = [[part.strip() for part in line.split(",")] for line in lines]
            return [dict(zip(names, row, strict=False)) for row in rows if len(row) == len(names) and row != heading]
    return []


@relation
def pcie_link_narrow(facts: Facts) -> list[str]:
    """Fewer lanes than it can have, or a slow link under load; a slow link of an idle GPU saves power."""
    for row in _table(facts, "pcie.link.width.current", "pcie.link.width.max"):
        now, most = row["pcie.link.width.current"], row["pcie.link.width.max"]
        if now.isdigit() and most.isdigit() and int(now) < int(most):
            return [f"link of {now} lanes, it can have {most}: {', '.join(row.values())}"]
    for row in _table(facts, "pcie.link.gen.current", "pcie.link.gen.max", "pstate"):
        now, most = row["pcie.link.gen.current"], row["pcie.link.gen.max"]
        if now.isdigit() and most.isdigit() and int(now) < int(most) and row["pstate"] in ("P0", "P1", "P2"):
            return [f"link of generation {now} under load, it can have {most}: {', '.join(row.values())}"]
    found = re.search(r"LnkSta:.*Width x(\d+)\s*\(downgraded\)", facts.everything)
    return [found[0]] if found else []


@relation
def remap_pending(facts: Facts) -> list[str]:
    return _remap(facts, r"<remapped_row_pending>\s*Yes|Remapped Rows[\s\S]{0,160}?Pending\s*:\s*Yes", "a row remap is pending")


@relation
def remap_failed(facts: Facts) -> list[str]:
    return _remap(facts, r"<remapped_row_failure>\s*Yes|Remapping Failure Occurred\s*:\s*Yes", "a row remap has failed")


def _remap(facts: Facts, pattern: str, what: str) -> list[str]:
    return [what] if re.search(pattern, facts.everything, re.I) else []


def _cdi(facts: Facts) -> str | None:
    return facts.file(r".*/cdi/.*\.(?:ya?ml|json)")


@relation
def cdi_spec_of_another_driver(facts: Facts) -> list[str]:
    text, loaded = _cdi(facts), facts.driver or facts.find(r"loaded module:\s*(\d{3}\.\d+(?:\.\d+)?)")
    found = re.search(r"lib(?:cuda|nvidia-ml)\.so\.(\d{3}\.\d+(?:\.\d+)?)", text or "")
    if found and loaded and not same(found[1], loaded):
        return [f"the CDI spec names {found[0]}, loaded is {loaded}"]
    return []


@relation
def cdi_spec_without_uvm(facts: Facts) -> list[str]:
    text = _cdi(facts) or (facts.everything if "deviceNodes" in facts.everything else "")
    return (
        ["the CDI spec has no /dev/nvidia-uvm"]
        if re.search(r"/dev/nvidia(?:ctl|\d)", text) and "/dev/nvidia-uvm" not in text
        else []
    )


@relation
def cdi_major_differs(facts: Facts) -> list[str]:
    found = re.search(r"/dev/nvidia-uvm\"?,?\s*\n?(?:.*\n){0,3}?\s*\"?major\"?:\s*(\d+)", _cdi(facts) or "")
    now = facts.find(r"^\s*(\d+)\s+nvidia-uvm\s*$", facts.file("/proc/devices") or "")
    return (
        [f"the CDI spec has major {found[1]} for nvidia-uvm, /proc/devices has {now}"]
        if found and now and found[1] != now
        else []
    )


@relation
def cdi_spec_not_readable(facts: Facts) -> list[str]:
    text = facts.command(r"^(?:stat|ls -l|ls -la)\b.*cdi") or ""
    return matched(r"^\s*(?:0?[67][0-7]0\s|-rw-[r-]-----).*\.(?:yaml|json).*$|^\s*7[0-5]0\s.*cdi\s*$", text)


@relation
def cdi_spec_missing(facts: Facts) -> list[str]:
    text = facts.command(r"^(?:ls|find)\b.*/cdi\b")
    listed = facts.command(r"nvidia-ctk cdi list")
    if text is not None and not re.search(r"\.(?:yaml|json)", text):
        return ["no CDI spec in /etc/cdi and /var/run/cdi"]
    return ["nvidia-ctk cdi list finds no device"] if listed is not None and "nvidia.com/gpu" not in listed else []


@relation
def cdi_version_newer_than_podman(facts: Facts) -> list[str]:
    version = facts.find(r"cdiVersion\"?:\s*\"?(\d+\.\d+\.\d+)", facts.everything)
    podman = facts.find(r"podman version (\d+\.\d+)")
    if version and podman and versions.key(version) >= (0, 7) and versions.key(podman) < (5,):
        return [f"the spec is of CDI {version}, podman is {podman}"]
    return []


@relation
def cdi_refresh_failed(facts: Facts) -> list[str]:
    text = facts.command(r"nvidia-cdi-refresh") or ""
    return matched(r"^.*(?:Result=exit-code|Active: failed|\bfailed\b.*CDI|ExecMainStatus=[1-9]).*$", text)


@relation
def image_requires_newer_cuda(facts: Facts) -> list[str]:
    return _newer(facts, facts.find(r"NVIDIA_REQUIRE_CUDA=\"?cuda>=(\d+\.\d+)"))


@relation
def torch_newer_than_driver(facts: Facts) -> list[str]:
    """CUDA 12 builds run on any driver of CUDA 12, by minor-version compatibility."""
    need = facts.find(r"torch\.version\.cuda\W{1,4}(\d+\.\d+)")
    return _newer(facts, need.split(".")[0] + ".0" if need else None)


def _newer(facts: Facts, need: str | None) -> list[str]:
    have = facts.find(r"CUDA Version\s*:\s*(\d+\.\d+)") or (_cuda_of(facts.driver) if facts.driver else None)
    return (
        [f"CUDA {need} is needed, the driver gives {have}"] if need and have and versions.key(have) < versions.key(need) else []
    )


def _cuda_of(driver: str) -> str | None:
    branch = versions.branch_or_none(driver)
    found = catalog.load().branch(branch) if branch else None
    return found.cuda if found else None


@relation
def torch_without_code_for_the_gpu(facts: Facts) -> list[str]:
    text = facts.everything
    capability = re.search(r"\"?capability\"?\s*[:=]\s*[\[(]\s*(\d+),\s*(\d+)", text) or re.search(
        r"compute_cap\w*\D{1,4}(\d+)\.(\d)", text
    )
    listed = re.search(r"\"?arch_list\"?\(?\)?\s*[:=]?\s*\[([^\]]*)\]|^\s*\[('sm_[^\]]*)\]", text, re.M)
    if not capability or not listed:
        return []
    arches = listed[1] or listed[2]
    major, minor = int(capability[1]), int(capability[2])
    native = [int(each) for each in re.findall(r"sm_(\d+)", arches)]
    if any(each // 10 == major and each % 10 <= minor for each in native) or re.search(r"compute_\d+", arches):
        return []
    return [f"the GPU is sm_{major}{minor}, torch has code for {arches.strip()}"]


@relation
def torch_compiles_at_first_use(facts: Facts) -> list[str]:
    text = facts.everything
    capability = re.search(r"\"?capability\"?\s*[:=]\s*[\[(]\s*(\d+),\s*(\d+)", text)
    listed = re.search(r"\"?arch_list\"?\s*[:=]\s*\[([^\]]*)\]", text)
    if capability and listed and re.search(r"compute_\d+", listed[1]):
        major = int(capability[1])
        if not any(int(each) // 10 == major for each in re.findall(r"sm_(\d+)", listed[1])):
            return [f"no code for sm_{capability[1]}{capability[2]}, only PTX: {listed[1].strip()}"]
    return []


@relation
def compat_library_differs(facts: Facts) -> list[str]:
    found = facts.find(r"libcuda\.so\.(\d{3}\.\d+(?:\.\d+)?)", facts.command(r"^(?:ls|readlink|find)\b.*compat") or "")
    driver = facts.driver
    return [f"compat library {found}, driver {driver}"] if found and driver and versions.key(found) < versions.key(driver) else []


@relation
def nccl_interface_unknown(facts: Facts) -> list[str]:
    wanted = facts.find(r"NCCL_SOCKET_IFNAME\s*=\s*([\w,^=.-]+)")
    text = facts.command(r"^ip\b|^ifconfig|^ls /sys/class/net")
    if not wanted or text is None or wanted.startswith("^"):
        return []
    names = [each for each in wanted.lstrip("=").split(",") if each]
    if any(re.search(rf"(?:^|\s){re.escape(name)}", text, re.M) for name in names):
        return []
    return [f"NCCL_SOCKET_IFNAME={wanted}, and the host has no such interface"]


@relation
def acs_redirects(facts: Facts) -> list[str]:
    if facts.virtual:
        return []
    return matched(r"^.*ACSCtl:.*(?:SrcValid\+|ReqRedir\+).*$", facts.everything)


@relation
def shm_small(facts: Facts) -> list[str]:
    for match in re.finditer(
        r"^\s*(?:shm|tmpfs)\s+(\d+)([KMG]?)\S*\s.*?(/dev/shm)?\s*$", facts.command(r"\bdf\b.*shm|df -[hmk]+\s*$") or "", re.M
    ):
        unit = match[2] or (
            "M" if re.search(r"df -\w*m", facts.sources[0].name + "".join(each.name for each in facts.sources)) else "K"
        )
        size = int(match[1]) * {"K": 1, "M": 1024, "G": 1 << 20}[unit]
        if size <= 64 * 1024 and (match[3] or match[0].lstrip().startswith("shm")):
            return [match[0].strip()]
    return []


@relation
def memlock_small(facts: Facts) -> list[str]:
    inside = facts.command(r"(?:docker|podman|nerdctl) (?:run|exec)\b.*ulimit")
    found = re.search(r"^\s*(?:.*max locked memory.*\s)?(64|8192|65536|16384)\s*$", inside or "", re.M)
    if found:
        return [f"memlock in a container: {found[1]} KiB"]
    found = re.search(r"^.*Max locked memory\s+(?:65536|8388608|67108864)\s.*$", facts.everything, re.M)
    dockerd = any(re.search(r"/limits|dockerd|containerd", each.name) for each in facts.sources)
    return [found[0].strip()] if found and dockerd else []


@relation
def persistence_off(facts: Facts) -> list[str]:
    rows = facts.command(r"persistence_mode") or ""
    found = re.search(r"^.*\bDisabled\b.*$", rows, re.M)
    found = found or re.search(
        r"^.*(?:Persistence Mode\s*:\s*Disabled|\"persistence_mode\":\s*\"Disabled\").*$", facts.everything, re.M
    )
    return [found[0].strip()] if found else []


@relation
def cuda_init_slow(facts: Facts) -> list[str]:
    """Seconds until CUDA is there, and quick once something keeps the driver up."""
    times: dict[str, float] = {}
    for each in facts.sources:
        for name, value in re.findall(
            r"\"?(t_cuinit_s|t_cuinit_warm_s|cu_init_s|t_first_kernel_s)\"?\s*[:=]\s*([\d.]+)", each.text
        ):
            times[name] = float(value.rstrip("."))
    cold = times.get("t_cuinit_s", times.get("cu_init_s", 0.0))
    return [f"cuInit takes {cold} s"] if cold >= 5 else []


@relation
def asked_json_says_802(facts: Facts) -> list[str]:
    """One way to count GPUs works, and the runtime's does not."""
    found = re.search(r'"nvml_count":\s*[1-9].*"cudaGetDeviceCount":\s*"[^"]*802[^"]*"', facts.everything)
    return [found[0]] if found else []


@relation
def compat_on_a_consumer_gpu(facts: Facts) -> list[str]:
    """A compat folder in the image, a GPU that has no forward compatibility, and an image newer than the driver."""
    text = facts.everything
    name = re.search(r"(?:NVIDIA )?(?:GeForce|Quadro|TITAN|RTX)\b[^\n;,|]{0,24}", text)
    need = facts.find(r"(?:image CUDA|CUDA_VERSION=|NVIDIA_REQUIRE_CUDA=\"?cuda>=)\s*(\d+\.\d+)")
    newer = _newer(facts, need)
    return [f"{name[0].strip()}, and a compat folder", *newer] if name and "compat" in text and newer else []


@relation
def guest_waits_for_its_fabric(facts: Facts) -> list[str]:
    waits = re.search(r"Fabric\s*\n\s*State\s*:\s*In Progress|<fabric>\s*<state>In Progress", facts.everything)
    return sxm_gpu_in_a_guest_without_nvswitch(facts) if waits else []


@relation
def rack_with_fabric_manager(facts: Facts) -> list[str]:
    """Fabric Manager is there, or was tried, where the rack does its work."""
    rack, manager = rack_fabric(facts), fabric_manager_does_not_run(facts)
    return [*rack, *manager] if rack and manager else []
