"""What is run to remove a .run installation, on folders of the test's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bringup.steps.runfile import UNINSTALLER
from operations import runfile
from tests.test_operations import Shell

LEFT, OURS = "575.57.08", "580.159.04"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def uninstaller(shell: Shell) -> Path:
    return shell.folder / "nvidia-uninstall"


def uninstall(shell: Shell, uninstaller: Path) -> tuple[int, str]:
    done = shell.run(runfile.UNINSTALL.replace(UNINSTALLER, str(uninstaller)))
    return done.returncode, done.stderr


def write(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_uninstaller_is_run_without_questions_and_its_exit_status_is_not_what_counts(shell: Shell, uninstaller: Path) -> None:
    write(uninstaller, 'echo "$@" >asked; read -r answer; rm -f "$0"; exit 1')
    assert uninstall(shell, uninstaller) == (0, "")
    assert (shell.folder / "asked").read_text() == "--silent\n"
    assert uninstall(shell, uninstaller) == (0, ""), "where it is gone there is nothing to do"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'ERROR: no log'; echo 'ERROR: second'; exit 3", "exit 3 and has not removed the driver: no log"),
        ("exit 0", "exit 0 and has not removed the driver: see /var/log/nvidia-uninstall.log"),
    ],
)  # fmt: skip
def test_an_uninstaller_that_stays_has_failed_and_its_first_error_is_said(
    shell: Shell, uninstaller: Path, script: str, why: str
) -> None:
    write(uninstaller, script)
    code, said = uninstall(shell, uninstaller)
    assert code == 1 and said == f"gpu-bringup: nvidia-uninstall ended with {why}\n"


def test_only_libraries_and_modules_of_the_version_that_no_package_owns_are_removed(shell: Shell) -> None:
    """Owned by a package under either path of a merged /usr; of another version; by name of no version: these stay."""
    libraries, modules = shell.folder / "usr/lib/x86_64-linux-gnu", shell.folder / "lib/modules/6.1/updates/dkms"
    video = shell.folder / "lib/modules/6.1/kernel/drivers/video"
    names = [f"libcuda.so.{LEFT}", f"libnvidia-ml.so.{LEFT}", f"libnvidia-cfg.so.{LEFT}", f"libcuda.so.{OURS}", "libc.so.6"]
    files = [libraries / each for each in names] + [modules / "nvidia.ko", video / "nvidia.ko", video / "nvidia-uvm.ko"]
    for each in files:
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text(OURS if each == modules / "nvidia.ko" else LEFT)
    owned = f"{libraries}/libnvidia-ml.so.{LEFT}|{str(libraries).replace('/usr/', '/', 1)}/libnvidia-cfg.so.{LEFT}|{video}/nvidia-uvm.ko"
    shell.tool("dpkg-query", f'case "$2" in {owned}) exit 0 ;; esac; exit 1')
    shell.tool("modinfo", 'cat "$3"')
    shell.tool("ldconfig")
    shell.tool("depmod")
    script = runfile.REMOVE.replace("/usr/lib", f"{shell.folder}/usr/lib").replace("/lib/modules", f"{shell.folder}/lib/modules")
    script = script.replace("#/usr}", f"#{shell.folder}/usr}}").replace('"${1#', f'"{shell.folder}${{1#')
    assert shell.run(script, LEFT).returncode == 0
    gone = {each.name for each in files if not each.exists()} | {str(each) for each in files if not each.exists()}
    assert gone == {f"libcuda.so.{LEFT}", str(files[0]), "nvidia.ko", str(video / "nvidia.ko")}
    assert [each for each in shell.calls if each.startswith(("ldconfig", "depmod"))] == ["ldconfig", "depmod[-a]"]


def test_every_folder_in_which_the_survey_finds_a_library_is_one_from_which_it_can_be_removed() -> None:
    """Else a host would be asked to change again by each run."""
    survey = (Path(runfile.__file__).parent.parent / "facts" / "survey.sh").read_text()
    folders = set(re.findall(r"(/\S+)/libcuda\.so\.\*\.\*", survey))
    assert len(folders) == 4
    assert folders == set(re.findall(r"(/\S+)/lib\*\.so\.", runfile.REMOVE))
