"""What many hosts cost: a no-op run on 1 to 100 SSH end points of one lab host, beside ssh, pyinfra's own facts, and Ansible."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import rivals
from benchmarks.measured import Measured
from e2e import own_lab

CHECKOUT = Path(__file__).parents[1]
COUNTS, QUICK_COUNTS = (1, 10, 50, 100), (1, 10, 100)
NO_PROOF = ("--data", "gpu_verify=off")
LIMIT_S = 600


@dataclass(frozen=True)
class Spent:
    """Of one command here: wall and CPU seconds, its own and its children's; MiB of its biggest process."""

    wall_s: float
    cpu_s: float
    memory_mib: float


def many(quick: bool) -> Iterator[Measured]:
    """The issue's targets at 100 hosts: at most twice pyinfra's own five facts, 0.15 of Ansible's five commands, and linear.

    The end points are one machine, which has the same two cores: what is compared pays for that alike.
    """
    own_lab.choose(["", "test"])  # a lab that is up is not ours to end
    from e2e.lab import end_points, machine
    from e2e.lab.lab import Lab

    why = machine.impossible()
    if why is not None:
        print(f"many: left out, since this machine cannot hold the lab: {why}", file=sys.stderr)
        return
    counts = QUICK_COUNTS if quick else COUNTS
    Lab.down()
    host = Lab.up(1, "debian12", "h200").host("lab-1")
    try:
        host.run("apt-get -q update && apt-get -q -y install python3-minimal", sudo=True, timeout_s=180)  # for Ansible
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            spent(pyinfra("inventories/lab.py", "deploys/gpu_host.py", f"--data=gpu_reports={folder / 'first'}", *NO_PROOF))
            end_points.serve(host, max(counts))
            noop: dict[int, float] = {}
            for count in counts:
                numbers = range(1, count + 1)
                inventory = end_points.write_inventory(folder / "nodes.py", CHECKOUT / "inventories/lab.py", host, numbers)
                ini = folder / "nodes.ini"
                ini.write_text(
                    ansible_inventory(host.address, {end_points.name(each): end_points.port(each) for each in numbers})
                )
                say = f"many: {count} hosts"
                known = f"-oUserKnownHostsFile={inventory.with_suffix('.known_hosts')}"  # of an option, ssh takes the first
                one = ["ssh", known, *host.ssh_command()[1:], "-p{}", host.address, "true"]
                ssh = spent(["xargs", "-P50", "-I{}", *one], "\n".join(str(end_points.port(each)) for each in numbers))
                yield Measured(f"{say}: ssh … true, 50 at a time", ssh.wall_s, "s")
                facts = spent(pyinfra(str(inventory), "benchmarks/rivals/five_facts.py"))
                yield Measured(f"{say}: pyinfra, five one-line facts", facts.wall_s, "s")
                ansible = spent(
                    [str(rivals.ansible_playbook()), "-f50", "-i", str(ini), str(rivals.FOLDER / "five_commands.yml")]
                )
                yield Measured(f"{say}: Ansible, five command tasks", ansible.wall_s, "s")
                ours = spent(
                    pyinfra(str(inventory), "deploys/gpu_host.py", f"--data=gpu_reports={folder / str(count)}", *NO_PROOF)
                )
                noop[count] = ours.wall_s
                yield Measured(f"{say}: gpu_host.py, nothing to change, beside five facts", ours.wall_s, "s", 2 * facts.wall_s)
                yield Measured(f"{say}: the same beside Ansible", ours.wall_s, "s", 0.15 * ansible.wall_s)
                yield Measured(f"{say}: CPU here, a host", ours.cpu_s / count, "s")
                yield Measured(f"{say}: CPU here of five facts, a host", facts.cpu_s / count, "s")
                yield Measured(f"{say}: memory here", ours.memory_mib, "MiB")
            grown = (noop[counts[-1]] - noop[1]) / (counts[-1] - 1)
            small = (noop[10] - noop[1]) / 9
            yield Measured("many: seconds for each further host, up to 100 beside up to 10", grown, "s", small * 1.1)
    finally:
        Lab.down()


def pyinfra(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pyinfra", "-y", *arguments]


def ansible_inventory(address: str, ports: Mapping[str, int]) -> str:
    """Host keys are not looked at: the end points are the lab's, and these seconds are Ansible's gain."""
    from e2e.lab.identity import SSH_KEY
    from e2e.lab.rootfs import USER

    nodes = "".join(f"{name} ansible_port={port}\n" for name, port in ports.items())
    return (
        f"{nodes}[all:vars]\nansible_host={address}\nansible_user={USER}\nansible_ssh_private_key_file={SSH_KEY}\n"
        "ansible_ssh_pipelining=true\nansible_python_interpreter=/usr/bin/python3\n"
        "ansible_ssh_common_args='-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'\n"
    )


def spent(command: Sequence[str], given: str = "") -> Spent:
    """Raises RuntimeError where it fails."""
    print(f"    {' '.join(command)[:110]}", file=sys.stderr, flush=True)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as lines:
        lines.write(given)
        lines.seek(0)
        began = time.perf_counter()
        process = subprocess.Popen(
            ["timeout", str(LIMIT_S), *command], cwd=CHECKOUT, stdin=lines, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, "PYINFRA_PROGRESS": "off", "ANSIBLE_NOCOLOR": "1"},
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed (exit {process.returncode}): {output.read()[-600:]}")
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
