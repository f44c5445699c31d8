"""What is run to remove a .run installation, on folders of the test's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bringup.steps.runfile import UNINSTALLER
from operations import runfile
from tests.shell import Shell

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


class Leftovers:
    """Files of a .run driver beside those of packages, in folders of the test's own."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.libraries, self.modules = shell.folder / "usr/lib/x86_64-linux-gnu", shell.folder / "lib/modules/6.1"
        self.sources = shell.folder / "usr/src" / f"nvidia-{LEFT}"
        shell.tool("uname", "echo 6.1")
        shell.tool("modinfo", 'cat "$3"')
        for each in ("ldconfig", "depmod", "dkms"):
            shell.tool(each)

    def write(self, path: Path, version: str = LEFT) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(version)
        return path

    def remove(self, *owned: str) -> tuple[int, str]:
        self.shell.tool(
            "dpkg-query", f"""case "$2" in {"|".join(owned) or "none"}) echo "a-package: $2"; exit 0 ;; esac; exit 1"""
        )
        script = runfile.REMOVE
        for each in ("/usr/lib", "/usr/src", "/lib/modules"):
            script = re.sub(rf"(?<![\w]){each}\b", f"{self.shell.folder}{each}", script)
        script = script.replace("#/usr}", f"#{self.shell.folder}/usr}}").replace('"${1#', f'"{self.shell.folder}${{1#')
        done = self.shell.run(script, LEFT)
        return done.returncode, done.stderr


@pytest.fixture
def left(shell: Shell) -> Leftovers:
    return Leftovers(shell)


def test_only_libraries_and_modules_of_the_version_that_no_package_owns_are_removed(left: Leftovers) -> None:
    """Owned by a package under either path of a merged /usr; of another version; by name of no version: these stay."""
    names = [f"libcuda.so.{LEFT}", f"libnvidia-ml.so.{LEFT}", f"libnvidia-cfg.so.{LEFT}", f"libcuda.so.{OURS}", "libc.so.6"]
    libraries = [left.write(left.libraries / each) for each in names]
    ours = left.write(left.modules / "updates/dkms/nvidia.ko", OURS)
    video = left.modules / "kernel/drivers/video"
    gone = [libraries[0], left.write(video / "nvidia.ko"), left.write(left.modules / "updates/nvidia.ko.xz")]
    stays = [*libraries[1:], ours, left.write(video / "nvidia-uvm.ko")]
    owned = (str(libraries[1]), str(libraries[2]).replace("/usr/", "/", 1), str(video / "nvidia-uvm.ko"))
    assert left.remove(*owned) == (0, "")
    assert [each for each in gone if each.exists()] == [] and [each for each in stays if not each.exists()] == []
    assert [each for each in left.shell.calls if each.startswith(("ldconfig", "depmod"))] == ["ldconfig", "depmod[-a]"]


def test_a_module_in_the_way_that_is_some_packages_stays_and_is_named(left: Leftovers) -> None:
    module = left.write(left.modules / "kernel/nvidia-575srv/nvidia.ko")
    code, said = left.remove(str(module))
    assert code == 1 and module.exists()
    assert (
        said
        == f"gpu-bringup: {module} ({LEFT}) is of the package a-package, and in the way of the driver's own: remove that package\n"
    )


def test_sources_that_dkms_would_build_anew_for_the_next_kernel_go_unless_a_package_has_them(left: Leftovers) -> None:
    conf = left.write(left.sources / "dkms.conf")
    assert left.remove(str(conf)) == (0, "")
    assert not [each for each in left.shell.calls if each.startswith("dkms")]
    assert left.remove() == (0, "")
    assert f"dkms[remove][-m][nvidia][-v][{LEFT}][--all]" in left.shell.calls


def test_every_folder_in_which_the_survey_finds_a_library_is_one_from_which_it_can_be_removed() -> None:
    """Else a host would be asked to change again by each run."""
    survey = (Path(runfile.__file__).parent.parent / "facts" / "survey.sh").read_text()
    folders = set(re.findall(r"(/\S+)/libcuda\.so\.\*\.\*", survey))
    assert len(folders) == 4
    assert folders == set(re.findall(r"(/\S+)/lib\*\.so\.", runfile.REMOVE))
