"""One lab host from fresh to ready, and again with nothing to do: gpu_host.py, a plain shell script, and an Ansible playbook."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import rivals
from benchmarks.many import NO_PROOF, ansible_inventory, pyinfra, spent
from benchmarks.measured import Measured
from e2e import own_lab

AGAIN, QUICK_AGAIN = 5, 3
# on a host with a T4, on which there is no nouveau: nobody has to reboot. Ansible needs Python there; all three begin with it, and with
# fresh package lists
PYTHON = "apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install python3-minimal python3-apt"


def hosts(quick: bool) -> Iterator[Measured]:
    """The issue's targets: fresh at most 1.15 of the shell script, no-op at most 0.2 of Ansible's, in at most 6 exchanges.

    Equal work: nobody proves anything here; the proof is timed apart.
    """
    own_lab.choose(["", "test"])  # a lab that is up is not ours to end
    from e2e.lab import machine
    from e2e.lab.lab import Lab

    why = machine.impossible()
    if why is not None:
        print(f"hosts: left out, since this machine cannot hold the lab: {why}", file=sys.stderr)
        return
    fresh: dict[str, float] = {}
    again: dict[str, float] = {}
    try:
        for name in ("shell", "ansible", "gpu_host.py"):  # ours last: its host is measured further
            Lab.down()
            host = Lab.up(1, "debian12", "t4").host("lab-1")
            host.run(PYTHON, sudo=True, timeout_s=180)
            with tempfile.TemporaryDirectory() as folder:
                commands = _commands(Path(folder), host.ssh_command(), host.address)
                command, given = commands[name]
                fresh[name] = spent(command, given).wall_s
                if name != "shell":  # which would do it all again
                    times = QUICK_AGAIN if quick else AGAIN
                    again[name] = statistics.median(spent(command, given).wall_s for _ in range(times))
                if name == "gpu_host.py":
                    with_proof = [each for each in command if each not in NO_PROOF]
                    spent(with_proof)  # notes that settings are others
                    proof = spent(with_proof).wall_s
                    sent = _recorded(Path(folder) / "record")
        yield Measured("hosts: fresh, plain shell script (the floor)", fresh["shell"], "s")
        yield Measured("hosts: fresh, Ansible playbook", fresh["ansible"], "s")
        yield Measured("hosts: fresh, gpu_host.py without proof", fresh["gpu_host.py"], "s", 1.15 * fresh["shell"])
        yield Measured("hosts: nothing to change, Ansible playbook", again["ansible"], "s")
        yield Measured("hosts: nothing to change, gpu_host.py without proof", again["gpu_host.py"], "s", 0.2 * again["ansible"])
        yield Measured("hosts: nothing to change, gpu_host.py and the quick proof", proof, "s")
        yield Measured("hosts: exchanges of the latter", sum(count for count, _, _ in sent.values()), "", 6)
        for kind, (count, out, back) in sent.items():
            yield Measured(f"hosts: of these, {kind}", count, "")
            yield Measured(f"hosts: bytes to the host, {kind}", out, "B")
            yield Measured(f"hosts: bytes from the host, {kind}", back, "B")
    finally:
        Lab.down()


def _commands(folder: Path, ssh: list[str], address: str) -> Mapping[str, tuple[list[str], str]]:
    """name -> (command, its standard input)."""
    from e2e.lab.paths import STATE

    lab = json.loads((STATE / "lab.json").read_text())
    driver, toolkit = (lab["repositories"][name] for name in ("nvidia-driver", "nvidia-toolkit"))
    values = {
        "driver_url": driver["url"].format(distro="debian12"), "driver_key": driver["key_url"].format(distro="debian12"),
        "toolkit_url": toolkit["url"], "toolkit_key": toolkit["key_url"], "registry": lab["registry"], "image": lab["image"],
    }  # fmt: skip
    (folder / "hosts.ini").write_text(ansible_inventory(address, {"lab-1": 22}))
    playbook = [str(rivals.ansible_playbook()), "-i", str(folder / "hosts.ini"), "-e", json.dumps(values)]
    return {
        "shell": ([*ssh, address, "sudo", "sh", "-s", "--", *values.values()], (rivals.FOLDER / "gpu_host.sh").read_text()),
        "ansible": ([*playbook, str(rivals.FOLDER / "gpu_host.yml")], ""),
        "gpu_host.py": (
            pyinfra("inventories/lab.py", "deploys/gpu_host.py", f"--data=gpu_reports={folder / 'reports'}", *NO_PROOF), "",
        ),
    }  # fmt: skip


def _recorded(file: Path) -> Mapping[str, tuple[int, int, int]]:
    """kind of exchange -> (how many, bytes sent, bytes received) of one run with the quick proof."""
    arguments = ["inventories/lab.py", "deploys/gpu_host.py", f"--data=gpu_reports={file.with_suffix('.reports')}"]
    spent([sys.executable, "-m", "benchmarks.recorded", str(file), "-y", *arguments])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {
        kind: (len(of), sum(each["sent"] for each in of), sum(each["received"] for each in of))
        for kind in dict.fromkeys(each["kind"] for each in lines)
        if (of := [each for each in lines if each["kind"] == kind])
    }
