"""Kernel modules that do not compile: what is said of it, and how apt is left."""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from facts.packages import DKMS_FAILURE
from operations import apt
from operations.apt_scripts import CONFIGURE, RETRYING
from operations.driver import BUILD

LOGS = Path(__file__).parent / "samples" / "dkms"
NEXT = "6.1.0-57-cloud-amd64"
KERNEL, OLD = "6.12.118+deb13-cloud-amd64", "6.1.0-49-cloud-amd64"
GPL = "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_read_lock_strict'"
FAILURES = {
    "open-550-on-6.12": f"for kernel {KERNEL}: nvidia/nv-pci.c:237:9: error: too few arguments to function 'pci_resize_resource'",
    "compiler-too-old": "for kernel 6.5.0-1018-gcp: gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'",
    "symbol-for-gpl-only": f"for kernel {OLD}: {GPL}",
    "disk-full": f"for kernel {OLD}: x86_64-linux-gnu-ld.bfd: final link failed: No space left on device",
    "no-compiler": f"for kernel {OLD}: /bin/sh: 1: gcc-12: not found",
    "only-make-says": f"for kernel {OLD}: make: *** [Makefile:92: modules] Error 2",
}
# a package manager whose packages are in a folder: NAME holds its state; installing nvidia-open-kernel-dkms fails as Debian 13's does
APT = """
case "$*" in
*' -s '*|'-s '*) for each in $REMOVED_TOO nvidia-open-kernel-dkms; do echo "Remv $each [550]"; done ;;
*remove*) echo not-installed >packages/nvidia-open-kernel-dkms ;;
*) echo half-configured >packages/nvidia-open-kernel-dkms; mkdir -p "$BUILD"; cp "$LOG" "$BUILD/make.log"
   echo 'E: Sub-process /usr/bin/dpkg returned an error code (1)'; exit 100 ;;
esac
"""
DPKG_QUERY = """
format=$3; shift 3
[ "$format" != '${db:Status-Status}' ] || { cat "packages/$1"; exit; }
for each; do [ ! -e "packages/$each" ] || echo "$each $(cat "packages/$each")"; done
"""
DPKG = """
case "$*" in *--remove*) echo not-installed >packages/nvidia-open-kernel-dkms; exit 0 ;; esac
grep -q half packages/nvidia-open-kernel-dkms || exit 0
mkdir -p "$BUILD"; cp "$LOG" "$BUILD/make.log"; exit 1
"""


class Host:
    """A folder with fake tools, in which scripts find /var/lib/dkms."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.build = folder / "dkms" / "nvidia-current-open" / "550.163.01" / "build"
        for name, text in {"apt-get": APT, "dpkg-query": DPKG_QUERY, "dpkg": DPKG}.items():
            tool = folder / "bin" / name
            tool.parent.mkdir(exist_ok=True)
            tool.write_text(f'#!/bin/sh\necho "{name} $*" >>calls\n{text}')
            tool.chmod(0o755)
        (folder / "packages").mkdir()
        (folder / "packages" / "libcuda1").write_text("unpacked\n")

    def run(self, script: str, *arguments: str, removed_too: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", script.replace("/var/lib/dkms", str(self.folder / "dkms")), "sh", *arguments],
            cwd=self.folder,
            env={
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "BUILD": str(self.build),
                "LOG": str(LOGS / "open-550-on-6.12.log"),
                "REMOVED_TOO": removed_too,
            },
            capture_output=True,
            text=True,
            timeout=30,
        )

    def state(self, package: str) -> str:
        return (self.folder / "packages" / package).read_text().strip()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize("name", FAILURES)
def test_a_build_that_failed_is_named_by_module_kernel_and_its_first_error(host: Host, name: str) -> None:
    host.build.mkdir(parents=True)
    (host.build / "make.log").write_text((LOGS / f"{name}.log").read_text())
    said = host.run(f"{DKMS_FAILURE}\ndkms_failure").stdout
    assert said == f"DKMS could not build nvidia-current-open/550.163.01 {FAILURES[name]}\n"


def test_the_log_of_a_good_build_and_one_of_before_say_nothing(host: Host) -> None:
    good = host.folder / "dkms" / "nvidia" / "580.159.04" / OLD / "x86_64" / "log"
    good.mkdir(parents=True)
    (good / "make.log").write_text("a.c:1:1: error: tried and passed over\n")
    assert host.run(f"{DKMS_FAILURE}\ndkms_failure").stdout == ""
    host.build.mkdir(parents=True)
    (host.build / "make.log").write_text("a.c:1:1: error: of last year\n")
    os.utime(host.build / "make.log", (0, 0))
    stamp = host.folder / "stamp"
    stamp.touch()
    assert host.run(f'{DKMS_FAILURE}\ndkms_failure "$1"', str(stamp)).stdout == ""
    assert "of last year" in host.run(f"{DKMS_FAILURE}\ndkms_failure").stdout


def test_of_two_failed_builds_the_newer_counts(host: Host) -> None:
    for at, name in enumerate(("nvidia", "zfs")):
        build = host.folder / "dkms" / name / "1.0" / "build"
        build.mkdir(parents=True)
        (build / "make.log").write_text(f"{name}.c:1:1: error: {name}\n")
        os.utime(build / "make.log", (at, at))
    assert host.run(f"{DKMS_FAILURE}\ndkms_failure").stdout == "DKMS could not build zfs/1.0: zfs.c:1:1: error: zfs\n"


INSTALL = ("apt-get", "install", "nvidia-open-kernel-dkms", "libcuda1")


def test_a_package_whose_module_does_not_compile_is_removed_and_the_way_out_is_the_last_word(host: Host) -> None:
    done = host.run(RETRYING, "nvidia-open-kernel-dkms libcuda1", "set gpu_kernel_module to proprietary", *INSTALL)
    assert done.returncode == 100
    assert done.stderr.splitlines()[-1] == (
        f"gpu-bringup: DKMS could not build nvidia-current-open/550.163.01 {FAILURES['open-550-on-6.12']}; "
        "set gpu_kernel_module to proprietary"
    )
    assert host.state("nvidia-open-kernel-dkms") == "not-installed"
    assert host.state("libcuda1") == "unpacked", "apt configures it with the removal"


def test_what_is_not_of_the_driver_set_is_never_removed_with_it(host: Host) -> None:
    done = host.run(RETRYING, "nvidia-open-kernel-dkms libcuda1", "", *INSTALL, removed_too="my-desktop")
    assert done.returncode == 100 and host.state("nvidia-open-kernel-dkms") == "half-configured"
    assert "my-desktop needs nvidia-open-kernel-dkms" in done.stderr and "error: too few arguments" in done.stderr


def test_packages_that_were_not_named_stay_as_they_are(host: Host) -> None:
    assert host.run(RETRYING, "", "", *INSTALL).returncode == 100
    assert host.state("nvidia-open-kernel-dkms") == "half-configured"


def test_an_interrupted_build_that_can_never_finish_does_not_stop_the_next_run(host: Host) -> None:
    (host.folder / "packages" / "nvidia-open-kernel-dkms").write_text("half-configured\n")
    done = host.run(CONFIGURE, "nvidia-open-kernel-dkms")
    assert done.returncode == 0, done.stderr
    assert host.state("nvidia-open-kernel-dkms") == "not-installed"


def test_a_package_that_a_loss_of_power_left_half_installed_is_removed(host: Host) -> None:
    (host.folder / "packages" / "nvidia-open-kernel-dkms").write_text("half-installed\n")
    done = host.run(CONFIGURE, "nvidia-open-kernel-dkms")
    assert done.returncode == 0, done.stderr
    assert host.state("nvidia-open-kernel-dkms") == "not-installed"
    assert "dpkg --force-remove-reinstreq --remove nvidia-open-kernel-dkms" in (host.folder / "calls").read_text()


def test_one_that_is_not_ours_is_named_and_stays(host: Host) -> None:
    (host.folder / "packages" / "nvidia-open-kernel-dkms").write_text("half-configured\n")
    done = host.run(CONFIGURE)
    assert done.returncode == 1 and done.stderr.startswith("gpu-bringup: DKMS could not build nvidia-current-open/550.163.01")
    assert host.state("nvidia-open-kernel-dkms") == "half-configured"


class Sources:
    """/usr/src and /lib/modules in a folder, and a dkms that writes what it was called with and then does as it is told."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.calls = host.folder / "calls"
        for name in ("nvidia-current-535.309.01", "nvidia-current-535.216.01", "nvidia-fs-2.28.2"):
            (host.folder / "src" / name).mkdir(parents=True)
            (host.folder / "src" / name / "dkms.conf").touch()
        self.modules = host.folder / "modules" / NEXT / "updates" / "dkms"
        self.modules.mkdir(parents=True)

    def make(self, version: str = "535.309.01", name: str = "nvidia-current.ko.xz") -> str:
        """The line of sh that puts a module there, of which modinfo tells the version."""
        return f"echo {version} >{self.modules}/{name}"

    def build(self, dkms: str = "", wait: str = "1500") -> subprocess.CompletedProcess[str]:
        tool = self.host.folder / "bin" / "dkms"
        tool.write_text(f'#!/bin/sh\necho "$@" >>{self.calls}\n{dkms}\n')
        tool.chmod(0o755)
        modinfo = self.host.folder / "bin" / "modinfo"
        modinfo.write_text('#!/bin/sh\n[ "$1 $2" = "-F version" ] && cat "$3"\n')
        modinfo.chmod(0o755)
        script = BUILD.replace("/usr/src", f"{self.host.folder}/src").replace("/lib/modules", f"{self.host.folder}/modules")
        script = script.replace("/run/", f"{self.host.folder}/").replace("-w 1500", f"-w {wait}")
        return self.host.run(script, "535.309.01", NEXT, "set gpu_driver_source to nvidia")


@pytest.fixture
def sources(host: Host) -> Sources:
    return Sources(host)


def test_a_module_is_built_for_a_kernel_from_its_sources_of_one_version(sources: Sources) -> None:
    made = f"{sources.make()}; exit 1"
    assert sources.build(made).returncode == 0, "whatever dkms says: the module is there"
    call = f"install --force -m nvidia-current -v 535.309.01 -k {NEXT}\n"
    assert sources.calls.read_text() == call
    assert sources.build(made).returncode == 0
    assert sources.calls.read_text() == call, "one that is there is not built again"


def test_a_module_of_another_version_is_not_the_one_that_is_wanted(sources: Sources) -> None:
    for name in ("nvidia-current.ko", "nvidia-fs.ko"):
        sources.host.run(sources.make("535.216.01", name))
    assert sources.build(sources.make(name="nvidia-current.ko")).returncode == 0
    assert sources.calls.read_text() == f"install --force -m nvidia-current -v 535.309.01 -k {NEXT}\n"


def test_what_stopped_a_build_is_said_with_the_way_out_where_that_helps(sources: Sources) -> None:
    failed = (
        f'mkdir -p "{sources.host.build}"; cp "$LOG" "{sources.host.build}/make.log"; echo "Error! Bad return status"; exit 10'
    )
    found = sources.build(failed)
    assert found.returncode == 1
    assert found.stderr.startswith(f"gpu-bringup: kernel {NEXT} has no nvidia module: DKMS could not build nvidia-current-open")
    assert found.stderr.endswith("; set gpu_driver_source to nvidia\n")
    other = sources.build("sleep 0.1; echo 'Error! Your kernel headers for kernel X cannot be found.'; exit 1")
    assert other.stderr.endswith("has no nvidia module: Your kernel headers for kernel X cannot be found.\n"), (
        "no other source helps"
    )
    assert "DKMS built none" in sources.build("exit 0").stderr, "a success without a module is none"


def test_a_second_build_waits_for_the_first(sources: Sources) -> None:
    with (sources.host.folder / "gpu-bringup-dkms.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        began = time.monotonic()
        sources.build(wait="0.2")
        assert time.monotonic() - began >= 0.2


def test_the_way_out_and_the_packages_reach_the_script_as_single_arguments() -> None:
    command = apt.apt_get("install", "a", fragile=("a", "b"), way_out="set x; touch y, or `z`").get_raw_value()
    assert shlex.split(command)[3:7] == ["sh", "a b", "set x; touch y, or `z`", "apt-get"]
