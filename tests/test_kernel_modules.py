"""Which kernels get the driver's module, and what is said of one that cannot have it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bringup import catalog
from bringup.errors import HostError
from bringup.plan import Plan, make_plan
from bringup.settings import read_settings
from bringup.steps import Change, Skip
from bringup.steps.driver import PREFERENCES_FILE, check_offered, headers_to_be_had, is_pinned, preferences
from bringup.steps.driver_set import driver_packages
from bringup.steps.kernel_modules import kernel_modules, next_kernel, source_version, unbuilt
from bringup.survey import Survey
from bringup.target import Driver
from facts.packages import PackagesOffered
from facts.survey import HostSurvey
from tests.machines import machine, with_driver
from tests.surveys import TODAY

RUNS, NEXT = "6.1.0-49-cloud-amd64", "6.1.0-57-cloud-amd64"
DISTRO = {"gpu_driver_source": "distro", "gpu_driver_branch": "535", "gpu_accept": ["end-of-life"]}


def host(kernels: str, by: str = "nvidia-debian", version: str = "580.159.04") -> Survey:
    """A Debian 12 with a driver. Kernels as `NEXT headers image, RUNS headers nvidia image`."""
    names = {"RUNS": RUNS, "NEXT": NEXT}
    lines = []
    for each in kernels.split(", "):
        name, *flags = each.split()
        lines.append(
            " ".join(
                [
                    names.get(name, name),
                    *(f"{flag}={'yes' if flag in flags else 'no'}" for flag in ("headers", "nvidia", "image")),
                ]
            )
        )
    kind = "proprietary" if by == "debian" else "open"
    made = with_driver(machine("debian12 t4"), by, version, kind).set("kernels", "\n".join(lines))
    return (
        made
        if "RUNS headers nvidia" in kernels
        else made.set("module_version", "exit 1\nmodinfo: ERROR: Module nvidia not found.", "failed")
    ).survey


def driver(survey: Survey, **settings: object) -> Driver:
    plan = make_plan(survey, read_settings({"gpu_docker_source": "distro", **settings}), catalog.load(), TODAY)
    assert isinstance(plan, Plan), str(plan)
    assert plan.target.driver is not None
    return plan.target.driver


@pytest.mark.parametrize(
    ("kernels", "lacking"),
    [
        ("RUNS headers nvidia image", []),
        ("RUNS headers image", [RUNS]),
        ("RUNS headers nvidia image, NEXT headers image", [NEXT]),
        ("RUNS headers image, NEXT headers image", [RUNS, NEXT]),
        ("RUNS headers nvidia image, NEXT image", []),  # without headers nothing can be built: a note says so
        ("RUNS headers nvidia image, NEXT headers", []),  # headers alone are no kernel that could be booted
        ("6.1.0-9-cloud-amd64 headers image, RUNS headers nvidia image", []),  # an older one is not what boots next
        ("RUNS image, NEXT headers image", [NEXT]),
    ],
)  # fmt: skip
def test_the_running_and_the_next_kernel_get_the_module(kernels: str, lacking: list[str]) -> None:
    survey = host(kernels)
    assert unbuilt(survey) == lacking
    found = kernel_modules(survey, driver(survey))
    assert (isinstance(found, Change) and found.what == f"build it for {', '.join(lacking)} with DKMS") == bool(lacking)
    if isinstance(found, Change):
        assert unbuilt(found.after) == []


def test_a_module_that_is_missing_beside_all_its_packages_is_built_and_then_loaded() -> None:
    """Also in the plan, which the run is compared with: the second run of one that was killed at the build heals the host."""
    survey = host("RUNS headers image")
    survey["driver"]["loaded_version"], survey["driver"]["loaded_text"], survey["modules"] = None, None, []
    plan = make_plan(survey, read_settings({"gpu_docker_source": "distro"}), catalog.load(), TODAY)
    assert isinstance(plan, Plan), str(plan)
    steps = [each.id for each in plan.steps]
    assert "driver-packages" not in steps
    assert [each for each in steps if each in ("kernel-modules", "driver-loaded", "reboot")] == [
        "kernel-modules",
        "driver-loaded",
    ]


def test_versions_of_kernels_are_compared_number_by_number() -> None:
    following = next_kernel(host("6.1.0-9-cloud-amd64 image, 6.1.0-49-cloud-amd64 image, 6.1.0-10-cloud-amd64 image"))
    assert following and following["release"] == "6.1.0-49-cloud-amd64"


def test_a_kernel_without_headers_is_named_with_the_kernel_to_boot() -> None:
    survey = host("RUNS image, NEXT headers nvidia image")
    found = kernel_modules(survey, driver(survey))
    assert isinstance(found, Skip)
    assert (
        found.why
        == f"kernel {RUNS} has no headers, so no nvidia module can be built for it: boot {NEXT}, which has one, and run this again"
    )
    survey = host("RUNS image")
    found = kernel_modules(survey, driver(survey))
    assert isinstance(found, Skip) and "install its headers" in found.why


def test_modules_that_come_built_are_not_built() -> None:
    """One that is missing is named, with the kernel that has it."""
    survey = host("RUNS headers nvidia image")
    built = replace(driver(survey), packages=("linux-modules-nvidia-580-server-open-aws",))
    assert kernel_modules(survey, built) is None
    found = kernel_modules(host("RUNS headers image, NEXT headers nvidia image"), built)
    reason = f"none of the driver's packages has an nvidia module for kernel {RUNS}"
    assert isinstance(found, Skip) and found.why == f"{reason}: boot {NEXT}, which has one, and run this again"
    found = kernel_modules(host("RUNS headers image"), built)
    assert isinstance(found, Skip) and found.why == f"{reason}: boot the distribution's own kernel"
    assert kernel_modules(host("RUNS headers image"), replace(built, packages=())) is None  # not ours


@pytest.mark.parametrize(("by", "version"), [("nvidia-debian", "580.159.04"), ("debian", "535.309.01")])
def test_modules_are_built_from_the_sources_that_are_installed(by: str, version: str) -> None:
    survey = host("RUNS headers image", by=by, version=version)
    wanted = driver(survey, **DISTRO) if by == "debian" else driver(survey)
    assert source_version(survey, wanted) == version
    assert source_version(host("RUNS headers image"), replace(wanted, packages=("nvidia-driver-cuda",))) is None


HEADERS = (f"linux-headers-{RUNS}", "linux-headers-cloud-amd64")
META = {"linux-headers-cloud-amd64": "6.1.192-3"}


class TestHeaders:
    def test_all_that_apt_has_are_installed(self) -> None:
        assert headers_to_be_had(host("RUNS image"), HEADERS, dict.fromkeys(HEADERS, "6.1")) == HEADERS

    def test_those_of_a_kernel_that_left_the_archive_are_passed_over_where_another_kernel_is_next(self) -> None:
        assert headers_to_be_had(host("RUNS image, NEXT image"), HEADERS, META) == HEADERS[1:]

    def test_where_the_running_kernel_is_all_there_is_they_are_missed_by_name(self) -> None:
        with pytest.raises(
            HostError, match=f"no package source has linux-headers-{RUNS} for the running kernel {RUNS}: install the"
        ):
            headers_to_be_had(host("RUNS image"), HEADERS, META)

    def test_others_are_never_passed_over(self) -> None:
        with pytest.raises(HostError, match="no package source has linux-headers-cloud-amd64"):
            headers_to_be_had(host("RUNS image, NEXT image"), HEADERS, {HEADERS[0]: "6.1"})


OFFERED = dict.fromkeys(("nvidia-kernel-dkms", "libcuda1", "nvidia-smi", "nvidia-modprobe"), "535.309.01-1~deb12u1")


class TestArchive:
    """A distribution's own driver: its tools have versions of their own, and its archive has one version."""

    survey = host("RUNS headers nvidia image", by="debian", version="535.309.01")

    def test_a_tool_of_another_version_is_none_of_the_drivers(self) -> None:
        there = self.survey["packages"]["installed"]
        survey: Survey = {**self.survey, "packages": {**self.survey["packages"], "installed": {**there}}}
        for name, version in {"nvidia-modprobe": "570.133.07-1", "nvidia-persistenced": "525.147.05-1"}.items():
            survey["packages"]["installed"][name] = {"version": version, "state": "installed", "held": False}
        assert driver_packages(survey, driver(survey, **DISTRO)) is None
        survey["packages"]["installed"]["libcuda1"] = {"version": "550.163.01-1", "state": "installed", "held": False}
        found = driver_packages(survey, driver(survey, **DISTRO))
        assert found and found.why == "libcuda1 not of 535"

    def test_what_apt_would_install_instead_is_said_before(self) -> None:
        wanted = driver(self.survey, **DISTRO)
        check_offered(wanted, {**OFFERED, "nvidia-modprobe": "570.133.07-1", "nvidia-persistenced": "535.216.01-1"})
        with pytest.raises(
            HostError, match=r"apt would install nvidia-kernel-dkms 620.70.06-1, and driver 535 is wanted: name 620.70.06 in"
        ):
            check_offered(wanted, {**OFFERED, "nvidia-kernel-dkms": "620.70.06-1", "nvidia-persistenced": "1"})
        with pytest.raises(HostError, match="no package source has nvidia-persistenced: is non-free enabled"):
            check_offered(wanted, OFFERED)


@pytest.mark.skipif(shutil.which("apt-cache") is None, reason="needs apt")
def test_apt_takes_the_driver_from_the_distributions_archive_alone_and_the_toolkit_from_where_it_is(tmp_path: Path) -> None:
    """A repository of NVIDIA's with a newer driver beside Debian's; both have a container toolkit."""
    offers = {
        "debian": {"nvidia-smi": "535.309.01-1", "libcuda1": "535.309.01-1", "nvidia-container-toolkit": "1.10-1"},
        "nvidia": {"nvidia-smi": "620.70.06-1", "libcuda1": "620.70.06-1", "nvidia-container-toolkit": "1.20-1"},
    }
    for origin, packages in offers.items():
        folder = tmp_path / origin
        folder.mkdir()
        text = "".join(
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nFilename: x\nSize: 1\n\n"
            for name, version in packages.items()
        )
        (folder / "Packages").write_text(text)
        (folder / "Release").write_text(f"Origin: {origin.title()}\nSuite: x\n")
    (tmp_path / "sources.list").write_text("".join(f"deb [trusted=yes] file:{tmp_path}/{origin} ./\n" for origin in offers))
    (tmp_path / "preferences").write_text(preferences(driver(TestArchive.survey, **DISTRO)))
    for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d", "etc/sources.list.d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "status").touch()
    paths = {
        "Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "etc/sources.list.d", "Dir::State::lists": "lists",
        "Dir::Cache": "cache", "Dir::State::status": "status", "Dir::Etc::preferences": "preferences",
        "Dir::Etc::preferencesparts": "etc/preferences.d",
    }  # fmt: skip
    options = [word for key, value in paths.items() for word in ("-o", f"{key}={tmp_path / value}")]
    subprocess.run(["apt-get", *options, "-o", "APT::Sandbox::User=root", "update"], check=True, capture_output=True, timeout=60)
    command = PackagesOffered().command(list(offers["debian"]), options).get_raw_value()
    said = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, timeout=60).stdout
    expected = {**offers["debian"], "nvidia-container-toolkit": "1.20-1"}
    assert PackagesOffered().process(said.splitlines()) == expected


@pytest.mark.parametrize("settings", [DISTRO, {}], ids=["distro", "nvidia"])
def test_a_pin_that_was_written_is_known_again_by_the_next_survey(tmp_path: Path, settings: dict[str, object]) -> None:
    survey = host(
        "RUNS headers nvidia image",
        by="debian" if settings else "nvidia-debian",
        version="535.309.01" if settings else "580.159.04",
    )
    wanted = driver(survey, **settings)
    (tmp_path / PREFERENCES_FILE.rsplit("/", 1)[-1]).write_text(preferences(wanted))
    command = HostSurvey().command().replace("/etc/apt/preferences.d", str(tmp_path))
    lines = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    found = HostSurvey().process(lines)["packages"]["preferences"]
    survey["packages"]["preferences"] = {
        each.replace(str(tmp_path), "/etc/apt/preferences.d"): text for each, text in found.items()
    }
    assert is_pinned(survey, wanted)
    survey["packages"]["preferences"][PREFERENCES_FILE] = preferences(wanted).replace("Pin: ", "Pin: version 1.* ")
    assert not is_pinned(survey, wanted)


WAYS = [
    ("debian13 h200", {"gpu_driver_source": "distro", "gpu_driver_branch": "550"},
     "set gpu_kernel_module to proprietary, or set gpu_driver_source to nvidia"),
    ("debian13 t4", {"gpu_driver_source": "distro", "gpu_driver_branch": "550", "gpu_kernel_module": "proprietary"},
     "set gpu_kernel_module to open, or set gpu_driver_source to nvidia"),
    ("debian12 t4", {"gpu_driver_source": "distro", "gpu_driver_branch": "535"}, "set gpu_driver_source to nvidia"),
    ("debian12 b200", {"gpu_driver_branch": "580"}, "set gpu_driver_branch to 595 or 615 or 620, which may know the kernel"),
    ("debian12 v100", {"gpu_driver_branch": "580"}, "boot an older kernel of the distribution"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "settings", "way"), WAYS)
def test_the_way_out_of_a_module_that_does_not_compile(words: str, settings: dict[str, object], way: str) -> None:
    assert driver(machine(words).survey, **settings, gpu_accept=["end-of-life"]).way_out == way
