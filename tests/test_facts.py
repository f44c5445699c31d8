"""What facts make of output, good and bad; and their scripts, run on this machine with values that want to be code."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import facts.packages
from bringup.startup import docker_ns
from bringup.steps import provenance
from facts.packages import PackageLocks, PackagesOffered, RepositoryIndex
from facts.provenance import FROM_PROVENANCE
from facts.verification import ContainerGpus, CudaStartup, StartupComparison, docker_reason

HOSTILE = "a b; $(touch x) `touch x` 'touch x' \"touch x\" \\ \n| touch x & > x"
SAMPLE = (Path(__file__).parent / "samples" / "nvidia-smi-q-h200.xml").read_text().splitlines()


def sh(command: object, folder: Path, **tools: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours as pyinfra does, in a folder, with fake tools before the real ones."""
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    for name, text in tools.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    text = command if isinstance(command, str) else command.get_raw_value()  # type: ignore[attr-defined]
    return subprocess.run(
        ["sh", "-c", text],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"},
    )


# prints its arguments, each in brackets
SHOW = """for each; do printf '[%s]' "$each"; done; echo"""


@pytest.mark.parametrize("injection", ["cdi", "runtime"])
def test_a_hostile_image_name_is_one_argument_of_docker(tmp_path: Path, injection: str) -> None:
    done = sh(ContainerGpus().command(HOSTILE, injection), tmp_path, docker=f'[ "$1" = run ] || exit 0; {SHOW}')
    assert f"[{HOSTILE}][nvidia-smi][-q][-x]" in done.stdout and not (tmp_path / "x").exists()
    done = sh(CudaStartup().command(HOSTILE, injection, 1), tmp_path, docker=f'[ "$1" = create ] || exit 0; {SHOW} >&2; exit 1')
    assert "touch x" in done.stdout and done.stdout.startswith("problem ") and not (tmp_path / "x").exists()


def test_without_image_and_provenance_the_fact_says_what_to_do(tmp_path: Path) -> None:
    if Path("/etc/gpu-bringup/provenance.json").exists():
        pytest.skip("this machine has a provenance of its own")
    done = sh(ContainerGpus().command(), tmp_path, docker="exit 1")
    report = ContainerGpus().process(done.stdout.splitlines())
    assert report["report"] is None and "run deploys/gpu_host.py first" in str(report["problem"])
    assert "no injection is named" in sh(CudaStartup().command("image", "hook"), tmp_path, docker="exit 1").stdout


def test_what_nvidia_smi_says_in_the_container() -> None:
    found = ContainerGpus().process(["exit 0", *SAMPLE])
    assert found["problem"] is None and found["report"] and found["report"]["gpus"][0]["name"] == "NVIDIA H200"
    docker = "docker: Error response from daemon: failed to create task: could not apply required modification: unresolvable CDI devices"
    found = ContainerGpus().process(["exit 125", docker, "", "Run 'docker run --help' for more information"])
    assert (found["problem"], found["report"], found["xids"]) == (f"{docker.split('daemon: ')[1]} (exit 125)", None, [])
    found = ContainerGpus().process(["exit 9", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."])
    assert found["report"] is None and "couldn't communicate" in str(found["problem"])
    assert ContainerGpus().process(["exit 124"])["problem"] == "nvidia-smi printed no XML but: nothing (exit 124)"
    found = ContainerGpus().process(["problem no image is named"])
    assert (found["problem"], found["report"], found["xids"]) == ("no image is named", None, None)


@pytest.mark.parametrize("code", [127, 136, 139])
def test_an_nvidia_smi_that_breaks_with_this_driver_is_named_and_ends_nothing_else(code: int) -> None:
    """A program made for a newer library than the driver has: the Xids that the host gave are kept."""
    said = "nvidia-smi: symbol lookup error: nvidia-smi: undefined symbol: nvmlDeviceGetGpuFabricInfoV"
    found = ContainerGpus().process(["xid NVRM: Xid (PCI:0000:61:00): 63, x", f"exit {code}", said])
    assert "undefined symbol" in str(found["problem"]) and f"(exit {code})" in str(found["problem"])
    assert found["xids"] == ["NVRM: Xid (PCI:0000:61:00): 63, x"]


START = docker_ns("2026-11-30T21:43:00Z")


def run_line(started: str = "2026-11-30T21:43:00.2Z", code: int = 0) -> str:
    return f"run cdi {START} {START + 100_000_000} {START + 900_000_000} {code} {started}".rstrip()


def printed(at: int) -> list[str]:
    return ["|noise", "|", "|" + json.dumps({"stamps": [["interpreter", at], ["end", at + 1_000_000]], "failed": None})]


def test_each_start_is_a_sample_and_a_problem_in_between_is_kept() -> None:
    at = START + 300_000_000
    lines = [run_line(), *printed(at), run_line(), *printed(at + 10_000_000), "problem Error response from daemon: gone "]
    found = CudaStartup().process(lines)
    assert [each["stages_ms"]["interpreter"] for each in found["samples"]] == [100.0, 110.0]
    assert found["problem"] == "gone" and found["stages_ms"]["interpreter"]["max"] == 110.0


def test_the_first_start_is_the_cold_one_and_ways_of_injection_are_kept_apart() -> None:
    at = START + 300_000_000
    lines = [
        run_line(),
        *printed(at),
        run_line(),
        *printed(at + 10_000_000),
        run_line().replace("cdi", "bare"),
        *printed(at - 5_000_000),
    ]
    compared = StartupComparison().process(lines)
    found = compared["ways"]
    assert "runtime was not measured" in compared["said"] and any("takes" in each for each in compared["said"])
    assert found["cdi"]["cold_ms"]["interpreter"] == 100.0 and found["cdi"]["warm_ms"]["interpreter"]["median"] == 110.0
    assert found["bare"]["cold_ms"]["interpreter"] == 95.0 and found["bare"]["warm_ms"] == {} and "runtime" not in found
    failed = [run_line(code=1), "|Traceback", run_line(), *printed(at)]
    assert CudaStartup().process(failed)["cold_ms"] == {}, "a first start that failed says nothing of a cold one"


def test_the_script_starts_each_way_as_often_as_asked_and_goes_on_where_one_fails(tmp_path: Path) -> None:
    docker = """case "$1" in
    create) case "$*" in *"--runtime nvidia"*) echo "no such runtime" >&2; exit 1 ;; esac ;;
    start) cat >/dev/null ;;
    inspect) date -u +%FT%TZ ;;
    esac"""
    python = "cat >/dev/null; echo '{}'"
    done = sh(StartupComparison().command("image", 2), tmp_path, docker=docker, python3=python)
    ways = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("run ")]
    assert ways == ["cdi", "cdi", "bare", "bare"] and "problem no such runtime" in done.stdout


@pytest.mark.parametrize("started", ["", "2026-11-30 22:43:00 +0100 CET"], ids=["docker died", "podman"])
def test_a_start_whose_time_docker_does_not_tell_is_a_problem_and_no_exception(started: str) -> None:
    found = CudaStartup().process([run_line(started, code=1), *printed(START)])
    assert found["samples"] == [] and "when the container was started" in str(found["problem"])


def test_dockers_own_reason_is_found_in_what_it_prints() -> None:
    assert docker_reason("x\ndocker: Error response from daemon: no such image. \nRun 'docker'") == "no such image."
    assert docker_reason("something else") is None


def test_who_holds_a_package_lock_is_named_with_process_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "locks.sh"
    lock = tmp_path / "lock-frontend"
    script.write_text(facts.packages.LOCKS_SCRIPT.read_text().replace("/var/lib/dpkg/lock-frontend", str(lock)))
    monkeypatch.setattr(facts.packages, "LOCKS_SCRIPT", script)

    def holders() -> list[dict[str, object]]:
        found = PackageLocks().process(sh(PackageLocks().command(), tmp_path).stdout.splitlines())
        return [dict(each) for each in found if each["file"] == str(lock)]

    assert holders() == []
    with lock.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert holders() == [{"file": str(lock), "pid": os.getpid(), "command": Path("/proc/self/comm").read_text().strip()}]
    assert holders() == []


def test_hostile_addresses_of_a_repository_are_arguments(tmp_path: Path) -> None:
    if not Path("/usr/lib/apt/apt-helper").exists():
        pytest.skip("needs apt")
    command = RepositoryIndex().command(HOSTILE, HOSTILE, HOSTILE, f"file:{tmp_path}/{HOSTILE}".replace("\n", ""), [HOSTILE])
    done = sh(command, tmp_path)
    index = RepositoryIndex().process(done.stdout.splitlines())
    assert index["key"] is None and index["key_problem"] and index["versions"] == {}
    assert not (tmp_path / "x").exists()


def test_a_repository_without_an_index_is_a_problem_with_apts_words(tmp_path: Path) -> None:
    if not Path("/usr/lib/apt/apt-helper").exists():
        pytest.skip("needs apt")
    shutil.copy(Path(__file__).parent / "keys" / "ed25519.asc", tmp_path / "key.asc")
    tmp_path.chmod(0o755)
    done = sh(RepositoryIndex().command(f"file:{tmp_path}/", "/", None, f"file:{tmp_path}/key.asc", ["x"]), tmp_path)
    index = RepositoryIndex().process(done.stdout.splitlines())
    assert index["key"] and index["key_problem"] is None and index["index_problem"]


def test_an_index_has_the_versions_of_each_package() -> None:
    index = RepositoryIndex().process(["key a2V5", "version a 2", "version a 1", "version b 1:3-1"])
    assert index == {
        "key": "a2V5",
        "key_problem": None,
        "index_problem": None,
        "versions": {"a": ["2", "1"], "b": ["1:3-1"]},
        "streams": [],
    }
    broken = RepositoryIndex().process(["key a2V5", "index-problem W: one", "index-problem E: two"])
    assert broken["index_problem"] == "W: one\nE: two"


POLICY = """
if [ "$1" = -o ] && [ "$2" = broken ]; then exit 100; fi
printf 'a:\\n  Installed: (none)\\n  Candidate: 1:2-3\\n  Version table:\\n     1:2-3 500\\nb:\\n  Installed: 1\\n  Candidate: (none)\\n'
"""


def test_what_apt_would_install_of_each_package_and_that_it_did_not_say(tmp_path: Path) -> None:
    def asked(*packages: str, options: tuple[str, ...] = ()) -> dict[str, str] | None:
        done = sh(PackagesOffered().command(list(packages), list(options)), tmp_path, **{"apt-cache": POLICY})
        return PackagesOffered().process(done.stdout.splitlines())

    assert asked("a", "b", HOSTILE) == {"a": "1:2-3"}
    assert asked("a", options=("-o", "broken")) is None
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("image", ["registry.example:5000/team/train:7@sha256:" + "5" * 64, ""])
def test_values_of_the_provenance_that_we_write_are_read(tmp_path: Path, image: str) -> None:
    """An image without name is none: `null` is no text."""
    content = {"proof_image": image or None, "injection": "cdi", "settings": {"proof_image": "another"}}
    (tmp_path / "provenance.json").write_text(provenance.text(content, "2026-12-01T00:00:00Z", "1a2b3c"))
    script = FROM_PROVENANCE.replace(provenance.PATH, str(tmp_path / "provenance.json"))
    done = sh(f"{script}\nfrom_provenance proof_image; from_provenance injection; from_provenance none", tmp_path)
    assert done.stdout.split() == [*([image] if image else []), "cdi"]
