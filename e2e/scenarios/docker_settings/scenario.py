from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from typing_extensions import override

from e2e import expect
from e2e.lab.host import Host
from e2e.pyinfra_run import LAB_INVENTORY, Run
from e2e.scenario import Scenario

DOCKER = "deploys/container_runtime.py"
FILE = "/etc/docker/daemon.json"
SLEEPER = "docker run -d --name shop --runtime runc --entrypoint sleep $(docker image ls -q | head -n 1) 100000"

# A user's own, none of which this project asks for; each is as good for Docker 20.10 as for 28.
USERS: Mapping[str, Any] = {
    "log-driver": "json-file",
    "log-opts": {"max-size": "7m"},
    "labels": ["rack=b7"],
    "live-restore": False,
    "max-concurrent-downloads": 2,
    "runtimes": {"mine": {"path": "/usr/bin/runc", "runtimeArgs": []}},
    "insecure-registries": ["10.9.8.7:5000"],
    "shutdown-timeout": 20,
    "dns-search": ["example.test"],
    "default-address-pools": [{"base": "10.77.0.0/16", "size": 24}],
    "debug": False,
    "icc": True,
}

# systemctl that dies with dockerd and the script that calls it, where Docker is to be restarted
KILLER = (
    "#!/bin/sh\n"
    + """\
if [ "$1 $2" = "restart docker.service" ]; then
    kill -9 "$(cat /run/docker.pid)" $PPID
    exit 1
fi
exec /usr/bin/systemctl "$@"
"""
)

# as nvidia-docker2 2.13 was packaged: its daemon.json is a settings file of the package's
NVIDIA_DOCKER2 = """
cd /tmp && mkdir -p nvidia-docker2/DEBIAN nvidia-docker2/etc/docker nvidia-docker2/usr/bin
printf '%s\\n' 'Package: nvidia-docker2' 'Version: 2.13.0-1' 'Architecture: all' 'Maintainer: lab' 'Description: stand-in' \\
    >nvidia-docker2/DEBIAN/control
echo /etc/docker/daemon.json >nvidia-docker2/DEBIAN/conffiles
printf '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}}}\\n' >nvidia-docker2/etc/docker/daemon.json
printf '#!/bin/sh\\nexec docker "$@"\\n' >nvidia-docker2/usr/bin/nvidia-docker && chmod 755 nvidia-docker2/usr/bin/nvidia-docker
dpkg-deb --build nvidia-docker2 >/dev/null && rm -f /etc/docker/daemon.json && dpkg -i nvidia-docker2.deb >/dev/null
"""

# from the archive that the host has anyway, and nothing else of sid's but what it needs
NEWEST_DOCKER = """
archive=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/* | grep -v -e security -e libnvidia -e cuda | head -n 1)
echo "deb $archive sid main" >/etc/apt/sources.list.d/sid.list
printf 'Package: *\\nPin: release n=sid\\nPin-Priority: 100\\n' >/etc/apt/preferences.d/sid
apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install -t sid docker.io docker-cli containerd runc
"""


class DockerSettings(Scenario):
    """daemon.json on hosts in use: keys and containers live on, what Docker cannot start with is refused or taken back."""

    tier: ClassVar[Literal["short", "all"]] = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def verify(self) -> None:
        with self.case("twelve keys of the user's and a running container"):
            self._twelve_keys()
        with self.case("a registry is taken up without a restart"):
            self._reload()
        with self.case("a change that Docker refuses is taken back, and its container lives"):
            self._refused_change()
        with self.case("dockerd is killed between the swap and the restart: the next run finishes it"):
            self._killed()
        with self.case("hosts in the file and as a flag; a file that is no JSON"):
            self._refusals()
        with self.case("the program of the default runtime is missing"):
            self._missing_program()
        with self.case("nvidia-docker2 and its runtime go on under the new names"):
            self._nvidia_docker2()
        with self.case("twelve keys and a container with Debian sid's Docker"):
            self.host("lab-2").run(NEWEST_DOCKER, sudo=True, timeout_s=300)
            self._twelve_keys()
            version = _info(self.host("lab-2"), "{{.ServerVersion}}")
            expect.true(int(version.split(".")[0]) >= 28, "Docker 28 or newer on lab-2", version)

    def _twelve_keys(self) -> None:
        for host in self.lab.hosts:
            self._write(host, json.dumps(USERS, indent=4))
            host.run(f"docker rm -f shop; systemctl restart docker && {SLEEPER}", sudo=True, timeout_s=120)
        before = {host.name: _container(host) for host in self.lab.hosts}
        self._docker("twelve keys").expect_exit(0)
        for host in self.lab.hosts:
            after = json.loads(_read(host))
            kept = {key: after.get(key) for key in USERS if key not in ("runtimes", "insecure-registries")}
            expect.equal(f"the user's keys on {host.name}", kept, {key: USERS[key] for key in kept})
            expect.equal(f"the user's registry on {host.name}", after["insecure-registries"][0], USERS["insecure-registries"][0])
            expect.equal(f"their order on {host.name}", list(after)[: len(USERS)], list(USERS))
            expect.equal(
                f"runtimes on {host.name}",
                after["runtimes"],
                {**USERS["runtimes"], "nvidia": {"path": "nvidia-container-runtime"}},
            )
            expect.equal(f"the container on {host.name}", _container(host), before[host.name])
            shown = _info(host, "{{.DefaultRuntime}} {{.LiveRestoreEnabled}} {{.LoggingDriver}}")
            expect.equal(f"what Docker runs with on {host.name}", shown, "nvidia false json-file")
            host.run(
                "docker run --rm --runtime mine --entrypoint true $(docker image ls -q | head -n 1)", sudo=True, timeout_s=60
            )
        self._nothing_to_do("twelve keys again")

    def _reload(self) -> None:
        before = {host.name: (_container(host), _daemon(host)) for host in self.lab.hosts}
        more = {name: {"gpu_docker_options": {"insecure-registries": ["10.1.1.1:5000"]}} for name in self.hosts}
        self._docker("new registry", more).expect_exit(0)
        for host in self.lab.hosts:
            expect.contains(
                f"the registries of {host.name}", _info(host, "{{json .RegistryConfig}}"), "10.1.1.1:5000", "10.9.8.7:5000"
            )
            expect.equal(f"container and daemon of {host.name}", (_container(host), _daemon(host)), before[host.name])
        self._nothing_to_do("new registry again", more)

    def _refused_change(self) -> None:
        before = {host.name: (_container(host), _read(host)) for host in self.lab.hosts}
        more = {name: {"gpu_docker_options": {"log-driver": "no-such-driver"}} for name in self.hosts}
        run = self._docker("log driver that is none", more).expect_exit(1)
        for host in self.lab.hosts:
            run.expect_problem(
                host.name, "failed", "Docker refused the new", "no-such-driver", "the old one is back, and Docker runs with it"
            )
            expect.equal(f"container and file of {host.name}", (_container(host), _read(host)), before[host.name], run.log)
            expect.equal(f"the log driver of {host.name}", _info(host, "{{.LoggingDriver}}"), "json-file", run.log)

    def _killed(self) -> None:
        more = {name: {"gpu_docker_options": {"shutdown-timeout": 33, "log-opts": {"max-file": "3"}}} for name in self.hosts}
        for host in self.lab.hosts:
            host.run("cat >/usr/local/sbin/systemctl && chmod 755 /usr/local/sbin/systemctl", sudo=True, stdin=KILLER)
        self._docker("killed", more).expect_exit(1)
        for host in self.lab.hosts:
            host.run("rm /usr/local/sbin/systemctl", sudo=True)
        self._docker("after the kill", more).expect_exit(0)
        for host in self.lab.hosts:
            after = json.loads(_read(host))
            expect.equal(f"what is in the file of {host.name}", (after["shutdown-timeout"], after["live-restore"]), (33, False))
            expect.equal(f"the log options of {host.name}", after["log-opts"], {"max-size": "7m", "max-file": "3"})
            beside = host.run(f"ls {FILE}*", sudo=True).stdout.split()
            expect.nothing(f"rest of the run that broke off on {host.name}", set(beside) - {FILE, f"{FILE}.gpu-bringup-backup"})
        self._nothing_to_do("after the kill again", more)

    def _refusals(self) -> None:
        files = {
            "lab-1": '{"hosts": ["unix:///var/run/docker.sock"], "debug": true}',
            "lab-2": '{\n  "debug": true, // for now\n}',
        }
        words = {"lab-1": ("hosts (as -H)", "systemctl cat docker"), "lab-2": ("line 2, column 18", "a comment")}
        for name, text in files.items():
            self.host(name).run(f"cp -p {FILE} {FILE}.kept", sudo=True)
            self._write(self.host(name), text)
        before = {host.name: _daemon(host) for host in self.lab.hosts}
        run = self._docker("files that cannot be merged").expect_exit(1)
        for host in self.lab.hosts:
            run.expect_problem(host.name, "refused", *words[host.name])
            expect.equal(
                f"file and daemon of {host.name}", (_read(host), _daemon(host)), (files[host.name], before[host.name]), run.log
            )
            host.run(f"mv {FILE}.kept {FILE}", sudo=True)

    def _missing_program(self) -> None:
        gone = {
            "default-runtime": "nvidia",
            "runtimes": {"nvidia": {"path": "/opt/gone/nvidia-container-runtime"}, "mine": {"path": "runc"}},
        }
        start = "docker run --rm --entrypoint true $(docker image ls -q | head -n 1)"
        for host in self.lab.hosts:
            self._write(host, json.dumps(gone))
            host.run("docker rm -f shop; systemctl restart docker", sudo=True, timeout_s=120)
            expect.true(host.run(start, sudo=True, check=False).returncode, f"a start to fail on {host.name}", "that it works")
        self._docker("missing program").expect_exit(0)
        for host in self.lab.hosts:
            host.run(start, sudo=True, timeout_s=60)
            expect.equal(f"the user's runtime on {host.name}", json.loads(_read(host))["runtimes"]["mine"], {"path": "runc"})

    def _nvidia_docker2(self) -> None:
        for host in self.lab.hosts:
            host.run(NVIDIA_DOCKER2, sudo=True)
            settings = {**json.loads(_read(host)), "labels": ["rack=b7"]}
            self._write(host, json.dumps(settings, indent=4))
        run = self._docker("nvidia-docker2").expect_exit(0)
        for host in self.lab.hosts:
            left = host.run("dpkg-query -W -f '${db:Status-Status}' nvidia-docker2", check=False).stdout
            expect.true(left in ("", "not-installed"), f"nvidia-docker2 to be gone from {host.name} for good", left, run.log)
            after = json.loads(_read(host))
            expect.equal(f"the user's key on {host.name}", after["labels"], ["rack=b7"])
            expect.equal(
                f"its runtime on {host.name}",
                after["runtimes"]["nvidia"],
                {"path": "nvidia-container-runtime", "runtimeArgs": []},
            )
            host.run(
                "docker run --rm --runtime nvidia --entrypoint true $(docker image ls -q | head -n 1)", sudo=True, timeout_s=60
            )
        self._nothing_to_do("nvidia-docker2 again")

    def _docker(self, what: str, more: Mapping[str, Mapping[str, Any]] | None = None) -> Run:
        inventory = self.inventory(what, more) if more else LAB_INVENTORY
        return self.deploy(what, DOCKER, inventory=inventory, timeout_s=300)

    def _nothing_to_do(self, what: str, more: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        run = self._docker(what, more).expect_exit(0)
        for name in self.hosts:
            expect.nothing(f"operation that changed {name} again", run.result(name)["changed"], run.log)

    def _write(self, host: Host, text: str) -> None:
        host.run(f"mkdir -p /etc/docker && cat >{FILE}", sudo=True, stdin=text)


def _read(host: Host) -> str:
    return host.run(f"cat {FILE}", sudo=True).stdout


def _info(host: Host, template: str) -> str:
    return host.run(f"docker info --format '{template}'", sudo=True).stdout.strip()


def _container(host: Host) -> str:
    """A restart of it would change both."""
    return host.run(
        "docker inspect --format '{{.State.Status}} {{.State.Pid}} {{.State.StartedAt}}' shop", sudo=True
    ).stdout.strip()


def _daemon(host: Host) -> str:
    return host.run("cat /run/docker.pid").stdout
