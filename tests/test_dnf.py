"""What is sent to a host of dnf's, run on this machine with fake tools; and a whole plan for one, held against its operations."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest

from bringup import catalog
from bringup.openpgp import armor, dearmor, fingerprints
from bringup.plan import Plan, make_plan
from bringup.settings import read_settings
from bringup.steps.driver import driver_repository
from bringup.steps.packages import PREDICTED, repository, to_hold
from bringup.steps.undo import undo
from bringup.survey import Survey
from bringup.target import Target
from deploys import ending
from facts.dnf import RpmIndex
from facts.packages import PackageLocks
from operations.dnf import dnf
from operations.dnf_scripts import LIFT, RETRYING
from tests import test_run
from tests.fakes import data
from tests.machines import machine
from tests.surveys import FINGERPRINT, KEYS, MIRROR, TODAY, Host

own_run = test_run.own_run  # a run is a process: a fixture that every test here takes
HOSTILE = "a b; $(touch x) `touch x` 'touch x' \"touch x\" \\ & > x"
CHOSEN = {
    "gpu_accept": ["untried-distribution"],
    "gpu_docker_source": "docker",
    "gpu_repositories": {
        name: {"url": f"{MIRROR}/{name}/", "key_url": f"{MIRROR}/{name}.pub", "fingerprint": FINGERPRINT}
        for name in ("nvidia-driver", "nvidia-toolkit", "docker")
    },
}


def sh(folder: Path, command: str, *arguments: str, **tools: str) -> subprocess.CompletedProcess[str]:
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    for name, text in tools.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-c", command, "sh", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, env=env
    )


SHOW = """for each; do printf '[%s]' "$each"; done; echo"""


def test_hostile_package_names_are_arguments_of_dnf(tmp_path: Path) -> None:
    done = sh(tmp_path, dnf("install", HOSTILE).get_raw_value(), dnf=SHOW)
    assert f"[install][{HOSTILE}]" in done.stdout and not (tmp_path / "x").exists()
    assert "[--setopt=*.skip_if_unavailable=1][--setopt=gpu-bringup-*.skip_if_unavailable=0]" in done.stdout


def test_what_passes_is_tried_again_and_what_does_not_is_not(tmp_path: Path) -> None:
    count = f'echo x >>{tmp_path}/tries; [ "$(wc -l <{tmp_path}/tries)" -gt 2 ] && exit 0'
    done = sh(tmp_path, RETRYING, "", "dnf", sleep="", dnf=f"{count}; echo 'metadata already locked by 17'; exit 200")
    assert done.returncode == 0 and done.stdout.count("tried again") == 2
    (tmp_path / "tries").unlink()
    done = sh(tmp_path, RETRYING, "", "dnf", sleep="", dnf=f"{count}; echo 'Error: GPG check FAILED'; exit 1")
    assert done.returncode == 1 and (tmp_path / "tries").read_text() == "x\n"


def test_locks_are_lifted_line_by_line_and_all_else_in_the_list_stays(tmp_path: Path) -> None:
    ours, other = "nvidia-driver-cuda-3:580.159.04-1.el9.*", "rocky-release-0:9.6-1.el9.*"
    (tmp_path / "conf").write_text(f"[main]\nenabled = 1\nlocklist = {tmp_path}/list\n")
    people = f"# kept by hand\n{other}\n\n# Added lock on Mon\nkernel-0:5.14.0-1.el9.*\n"
    (tmp_path / "list").write_text(f"{people}\n# Added lock on Tue\n{ours}\n#{ours}\n{ours} \n")
    (tmp_path / "list").chmod(0o640)
    script = LIFT.replace("/etc/dnf/plugins/versionlock.conf", f"{tmp_path}/conf")
    done = sh(tmp_path, script, ours, "nvidia-.*", HOSTILE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "list").read_text() == f"{people}#{ours}\n" and not (tmp_path / "x").exists()
    assert (tmp_path / "list").stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bin", "conf", "list"]


def test_without_a_list_of_locks_there_is_none_to_lift(tmp_path: Path) -> None:
    assert sh(tmp_path, LIFT.replace("/etc/dnf/plugins/versionlock.conf", f"{tmp_path}/conf"), "a-0:1-1.*").returncode == 0


def test_hostile_addresses_of_a_repository_are_arguments(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("a key")
    command = RpmIndex().command(HOSTILE, f"file://{key}", [HOSTILE]).get_raw_value()
    done = sh(tmp_path, command, dnf=f'case "$*" in *repoquery*) {{ {SHOW}; }} >&2; exit 1 ;; esac')
    index = RpmIndex().process(done.stdout.splitlines())
    assert not (tmp_path / "x").exists() and index["key"] == base64.b64encode(b"a key").decode()
    assert (
        f"[--repofrompath=gpu-bringup,{HOSTILE}]" in str(index["index_problem"])
        and f"[{HOSTILE}]\n" in f"{index['index_problem']}\n"
    )


def test_versions_and_streams_are_read_among_what_dnf_says_besides(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    query = "echo 'Added gpu-bringup repo'; echo 'version a 3:580-1.el9'; echo 'version a 0:1-1'"
    listing = (
        "printf 'gpu-bringup\\nName          Stream\\nnvidia-driver 580-open [e]   default  x\\nnvidia-driver open-dkms   x\\n'"
    )
    tool = f'case "$*" in *repoquery*) {query} ;; *"module list"*) {listing} ;; esac'
    done = sh(tmp_path, RpmIndex().command("http://a/", f"file://{tmp_path}/key", ["a"]).get_raw_value(), dnf=tool)
    index = RpmIndex().process(done.stdout.splitlines())
    assert index["versions"] == {"a": ["3:580-1.el9", "0:1-1"]} and index["streams"] == ["580-open", "open-dkms"]
    done = sh(tmp_path, RpmIndex().command("http://a/", f"file://{tmp_path}/none", ["a"]).get_raw_value(), dnf=tool)
    assert RpmIndex().process(done.stdout.splitlines())["key"] is None


def test_who_holds_a_lock_of_dnfs_is_named_as_long_as_there_is_such_a_process(tmp_path: Path) -> None:
    lock = tmp_path / "metadata_lock.pid"
    script = PackageLocks().command().replace("/var/cache/dnf/metadata_lock.pid", str(lock))
    lock.write_text(str(os.getpid()))
    (found,) = (each for each in PackageLocks().process(sh(tmp_path, script).stdout.splitlines()) if each["file"] == str(lock))
    assert found["pid"] == os.getpid()
    lock.write_text(str(2**22 + 1))
    assert not [line for line in sh(tmp_path, script).stdout.splitlines() if str(lock) in line]


@pytest.mark.parametrize("name", ["ed25519.gpg", "rsa.gpg"])
def test_a_key_is_armoured_as_rpm_wants_it(name: str) -> None:
    packets = (KEYS / name).read_bytes()
    text = armor(packets)
    assert dearmor(text) == packets and fingerprints(text) == fingerprints(packets)
    assert text.splitlines()[-2] == (KEYS / name.replace(".gpg", ".asc")).read_bytes().splitlines()[-2]  # gpg's checksum


def target(host: Host) -> tuple[Survey, Target]:
    plan = make_plan(host.survey, read_settings(CHOSEN), catalog.load(), TODAY)
    assert isinstance(plan, Plan), str(plan)
    return host.survey, plan.target


def test_a_repository_is_as_it_shall_be_with_file_key_and_rpms_own_keyring() -> None:
    _, wanted = target(machine("rocky9 h100"))
    assert wanted.driver and wanted.driver.repository
    source = wanted.driver.repository
    assert source.keyring == "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-bringup-nvidia-driver"
    assert "gpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-bringup-nvidia-driver\n" in source.sources_text
    host = machine("rocky9 h100").set("repositories", f"==> {source.sources_file}\n{source.sources_text}")
    host = host.set("keyrings", f"{source.keyring} {base64.b64encode((KEYS / 'ed25519.gpg').read_bytes()).decode()}")
    change = repository(host.survey, source)
    assert change and change.why == f"rpm does not know the key {FINGERPRINT}"
    known = host.set("packages", f"gpg-pubkey 0:{FINGERPRINT[-8:].lower()}-62589a51 install installed (none)")
    assert repository(known.survey, source) is None
    stream = driver_repository(known.survey, wanted.driver)
    assert stream and stream.what == "enable nvidia-driver:580-open"
    assert driver_repository(stream.after, wanted.driver) is None
    assert change.after["packages"]["keyrings"][source.keyring] == PREDICTED and repository(change.after, source) is None


def test_a_kernel_is_held_once_though_it_is_there_by_its_full_name_too() -> None:
    host = machine("rocky9 h100").set("packages", "kernel-core 0:5.14.0-1.el9 install installed x86_64")
    chosen = read_settings({**CHOSEN, "gpu_hold_packages": "driver+kernel"})
    plan = make_plan(host.survey, chosen, catalog.load(), TODAY)
    assert isinstance(plan, Plan) and to_hold(host.survey, plan.target) == ("kernel-core",)


def test_what_is_undone_are_our_packages_keys_sources_and_the_stream() -> None:
    host = machine("rocky9 h100").set(
        "installed_by_us", "gpg-pubkey-d42d0685\nnvidia-driver-cuda\nkernel-devel-5.14.0-1.el9.x86_64"
    )
    packages = ("gpg-pubkey 0:d42d0685-1", "nvidia-driver-cuda 3:580.159.04-1.el9", "kernel-devel 0:5.14.0-1.el9", "dkms 0:3-1")
    host = host.set("packages", "\n".join(f"{each} install installed x86_64" for each in packages))
    host = host.set("repositories", "==> /etc/yum.repos.d/gpu-bringup-docker.repo\n[a]\n==> /etc/yum.repos.d/epel.repo\n[epel]")
    record = '{"schema": 1, "packages": {"nvidia-driver-cuda": "3:580.159.04-1.el9"}, "stream": "nvidia-driver:580-open"}'
    found = undo(host.set("provenance", record).survey)
    assert found and found.packages == ("gpg-pubkey-d42d0685", "kernel-devel-5.14.0-1.el9.x86_64", "nvidia-driver-cuda")
    assert found.stream == "nvidia-driver:580-open"
    assert "/etc/yum.repos.d/gpu-bringup-docker.repo" in found.files and "/etc/yum.repos.d/epel.repo" not in found.files


@pytest.mark.parametrize("words", ["rocky9 h200", "rhel9 8 x h100 + 4 x nvswitch", "amzn2023 l4", "alma10 h100"])
def test_the_planned_steps_are_those_that_would_be_executed(words: str) -> None:
    docker = "distro" if words.startswith("amzn") else "docker"
    state = test_run.run({"new": data(machine(words), **{**CHOSEN, "gpu_docker_source": docker})}, execute=False)
    host = state.inventory.get_host("@fake/new")
    assert host is not None
    changing = {ending.step_name(state, op_hash) for op_hash, each in state.ops[host].items() if each.operation_meta.will_change}
    assert changing == {each["step"] for each in test_run.result("new").planned}
    assert {"driver-repository", "driver-packages", "package-holds"} <= changing and "apt-settings" not in changing


def test_suse_is_planned_and_never_acted_on() -> None:
    test_run.run({"suse": data(machine("sles15 h100"), **{**CHOSEN, "gpu_docker_source": "distro"})}, execute=False)
    found = test_run.result("suse")
    assert found.ended == "refused" and "installs nothing with zypper yet" in found.problems[0]
