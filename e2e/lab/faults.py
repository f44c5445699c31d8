"""What can be wrong with a host, put there on purpose by scenarios; what can be wrong with the repositories is in repository_faults.py.

All of it is on the host's disk or in its memory and goes with the next restore(); the lock of lists is held by the repository's help.
"""

from __future__ import annotations

import base64
import shlex
from typing import Literal

from . import repository
from .distros import DISTROS
from .errors import LabError
from .host import Host
from .repository_faults import answer, slow

# --- the package manager of a host ----------------------------------------------------------------------------------------------

# A package whose configuration takes as long as the file says, and no time without it.
_SLOW_PACKAGE = """
set -eu
rm -rf /var/tmp/slow && mkdir -p /var/tmp/slow/DEBIAN
cat >/var/tmp/slow/DEBIAN/control <<'END'
Package: slow-service
Version: 1.0-1
Architecture: all
Maintainer: gpu-bringup lab <lab@example.invalid>
Description: takes long to configure (stand-in of a test lab)
END
printf '#!/bin/sh\\n[ ! -e /run/slow-service ] || sleep "$(cat /run/slow-service)"\\n' >/var/tmp/slow/DEBIAN/postinst
chmod 755 /var/tmp/slow/DEBIAN/postinst
dpkg-deb --root-owner-group --build /var/tmp/slow /var/tmp/slow-service.deb >/dev/null
"""

_WAIT_FOR = "for i in $(seq 200); do {condition} && exit 0; sleep 0.05; done; exit 1"


def hold_dpkg_lock(host: Host, seconds: float) -> None:
    """A real apt-get installs a package that takes so long: it holds the locks of dpkg. Returns when it does."""
    host.run(f"{_SLOW_PACKAGE}\necho {seconds} >/run/slow-service", sudo=True)
    install = "apt-get install -y --reinstall /var/tmp/slow-service.deb; rm -f /run/slow-service"
    host.run(f"systemd-run --quiet --collect --unit=holds-dpkg sh -c {shlex.quote(install)}", sudo=True)
    _wait(host, "pgrep -f '[s]low-service.postinst' >/dev/null", "apt to hold dpkg's lock")


def hold_lists_lock(host: Host, seconds: float) -> None:
    """A real apt-get update that waits so long for a server: it holds lists/lock alone. Replaces the rules of the repositories."""
    answer(slow("^/held/", seconds, times=1))
    sources = f"deb [trusted=yes] {repository.address(host.network)}/held/ /"
    update = "apt-get update -o Dir::Etc::sourcelist=/run/held.list -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0"
    command = f"{update} -o Acquire::http::Timeout=600 -o Acquire::Retries=0"
    host.run(f"echo {shlex.quote(sources)} >/run/held.list", sudo=True)
    host.run(f"systemd-run --quiet --collect --unit=holds-lists {command}", sudo=True)
    _wait(host, "pgrep -f '[s]ourcelist=/run/held.list' >/dev/null && sleep 0.3", "apt to hold the lock of its lists")


def interrupt_dpkg(host: Host) -> None:
    """apt and dpkg are killed while they configure a package: `dpkg was interrupted, you must manually run 'dpkg --configure -a'`."""
    hold_dpkg_lock(host, 600)
    # SIGKILL to the unit: apt, dpkg and the script; nothing cleans up
    host.run("systemctl kill --signal=KILL holds-dpkg; rm -f /run/slow-service", sudo=True)


def write_source(host: Host, name: str, text: str) -> None:
    """A file of /etc/apt/sources.list.d."""
    host.run(f"cat >/etc/apt/sources.list.d/{shlex.quote(name)}", sudo=True, stdin=text)


def clashing_source(host: Host) -> None:
    """What an older way of installing left: the same repository under another keyring. apt then reads no source at all."""
    product = DISTROS[host.spec.distro].product
    url = repository.repositories(host.network)["nvidia-driver"].url.format(distro=product)
    host.run("mkdir -p /usr/share/keyrings && printf old >/usr/share/keyrings/nvidia-old.gpg", sudo=True)
    write_source(host, f"cuda-{product}-x86_64.list", f"deb [signed-by=/usr/share/keyrings/nvidia-old.gpg] {url} /\n")


def broken_source(host: Host, kind: Literal["dead", "malformed", "unsigned", "missing"]) -> None:
    """A third party's repository, third-party-KIND.list, that has nothing to do with GPUs."""
    lines = {
        "dead": "deb http://packages.example.invalid/apt stable main\n",
        "malformed": "deb http://packages.example.invalid/apt\n",
        "unsigned": f"deb {repository.address(host.network)}/unsigned/ /\n",
        "missing": f"deb {repository.address(host.network)}/no-such-folder/ /\n",
    }
    write_source(host, f"third-party-{kind}.list", lines[kind])


# --- the driver of a host -------------------------------------------------------------------------------------------------------


def dkms(host: Host, outcome: Literal["fails", "no-module", "works"]) -> None:
    """How the next builds of kernel modules end. `fails`: a compiler error in make.log, and the package is left half configured;
    `no-module`: the same error, and the package manager is content."""
    host.run(f"mkdir -p /var/lib/simulated-gpu && echo {outcome} >/var/lib/simulated-gpu/dkms", sudo=True)


LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# Removes what the installer has put there and then itself, as NVIDIA's does; --silent, since nobody answers its questions.
_UNINSTALLER = """#!/bin/sh
[ "$1" = --silent ] || {{ echo 'ERROR: this stand-in asks questions without --silent' >&2; exit 1; }}
[ ! -e /run/nvidia-uninstall-fails ] || {{ echo 'ERROR: Unable to open the backup log file' >&2; exit 1; }}
rm -f {libraries}/lib*.so.{version} /usr/bin/nvidia-installer /usr/bin/nvidia-uninstall
"""


def runfile(host: Host, version: str = "575.57.08") -> None:
    """What NVIDIA's .run installer leaves: its uninstaller, its log, and libraries that no package owns."""
    runfile_libraries(host, version)
    text = _UNINSTALLER.format(libraries=LIBRARIES, version=version)
    host.run("cat >/usr/bin/nvidia-uninstall && chmod 755 /usr/bin/nvidia-uninstall", sudo=True, stdin=text)
    log = f"nvidia-installer log file (stand-in)\\ninstaller version: {version}\\n"
    host.run(f"ln -sf nvidia-uninstall /usr/bin/nvidia-installer; printf '{log}' >/var/log/nvidia-installer.log", sudo=True)


def runfile_libraries(host: Host, version: str) -> None:
    """Libraries that no package owns, without the uninstaller that knows of them."""
    host.run(
        f"""
        for name in libcuda libnvidia-ml libnvidia-ptxjitcompiler; do
            echo stand-in >{LIBRARIES}/$name.so.{version} && ln -sf $name.so.{version} {LIBRARIES}/$name.so.1
        done""",
        sudo=True,
    )


def uninstaller_fails(host: Host, *, fails: bool) -> None:
    """NVIDIA's uninstaller ends with an error and removes nothing, or does its work again."""
    host.run(f"{'touch' if fails else 'rm -f'} /run/nvidia-uninstall-fails", sudo=True)


def module_in_the_way(host: Host, version: str) -> str:
    """A module of another version, as built by hand, that modprobe prefers to the packages'; returns its path."""
    (package,) = repository.package_files(version, host.spec.distro).glob("nvidia-kernel-open-dkms_*.deb")
    stdin = base64.encodebytes(package.read_bytes()).decode()
    path = f"/lib/modules/{host.run('uname -r').stdout.strip()}/extra/nvidia.ko"
    host.run(
        f"""
        base64 -d >/var/tmp/module.deb && dpkg-deb -x /var/tmp/module.deb /var/tmp/module && mkdir -p {path.rsplit("/", 1)[0]}
        cp /var/tmp/module/usr/src/nvidia-*/stand-in/nvidia.ko {path} && rm -r /var/tmp/module /var/tmp/module.deb
        echo 'search extra updates built-in' >/etc/depmod.d/by-hand.conf && depmod""",
        sudo=True,
        stdin=stdin,
    )
    return path


def edit_unit(host: Host, name: str) -> str:
    """A line of the user's in a unit file that is a package's; returns its path."""
    path = f"/usr/lib/systemd/system/{name}"
    host.run(f"echo '# --uvm-persistence-mode is wanted here' >>{path} && systemctl daemon-reload", sudo=True)
    return path


def install(host: Host, version: str, packages: tuple[str, ...]) -> None:
    """Packages of one driver version by dpkg, past the package sources and whatever they depend on.

    All of a set: user space newer than the module that is loaded. One library of it: a set that is half upgraded.
    """
    folder = repository.package_files(version, host.spec.distro)
    files = []
    for name in packages:
        (path,) = folder.glob(f"{name}_*.deb")
        files.append(f"/var/tmp/{path.name}")
        host.run(f"base64 -d >{files[-1]}", sudo=True, stdin=base64.encodebytes(path.read_bytes()).decode())
    host.run(f"DEBIAN_FRONTEND=noninteractive dpkg --force-depends -i {' '.join(files)}", sudo=True, timeout_s=120)


def gpu_process(host: Host, name: str = "train-model") -> None:
    """A process that computes on GPU 0 until it is ended: nvidia-smi names it, and the kernel's modules are in use."""
    # in a file, since systemd would replace the dollars
    nodes = "/dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm"
    program = f'$0 = "{name}"; sysopen($n[@n], $_, 010000000) or die for qw({nodes}); sleep\n'
    host.run("nvidia-modprobe -u && cat >/run/gpu-process", sudo=True, stdin=program)
    host.run("systemd-run --quiet --collect --unit=gpu-process perl /run/gpu-process", sudo=True)
    _wait(host, f"pgrep -x {name[:15]} >/dev/null", "the GPU process to run")


def end_gpu_process(host: Host) -> None:
    host.run("systemctl stop gpu-process", sudo=True, check=False)


# --- the machine of a host ------------------------------------------------------------------------------------------------------


def no_sshd_after_reboot(host: Host) -> None:
    """The host boots, and nobody can log in: it is on, and its console is all that there is."""
    host.run("systemctl mask ssh.service ssh.socket", sudo=True)


def stays_off(host: Host) -> None:
    """The next time the host asks for a reboot its machine does not come back; power_on() switches it on."""
    (host.folder / "stays-off").touch()


def _wait(host: Host, condition: str, what: str) -> None:
    done = host.run(_WAIT_FOR.format(condition=condition), sudo=True, check=False, timeout_s=30)
    if done.returncode:
        raise LabError(f"{host.name}: waited 10 s for {what}, and it did not happen")
