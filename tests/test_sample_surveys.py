"""Surveys captured on real machines and lab hosts still parse, say what the machine was, and can be planned for."""

from __future__ import annotations

import base64
from datetime import date
from pathlib import Path

import pytest

from bringup import catalog
from bringup import survey as surveys
from bringup.openpgp import fingerprints
from bringup.plan import Plan, Refusal, make_plan
from bringup.settings import read_settings
from bringup.survey import Survey
from bringup.survey.parse import parse_survey
from bringup.survey.saved import mismatch

SAMPLES = Path(__file__).parent / "samples" / "surveys"
TODAY = date(2026, 12, 1)
DRIVER_KEY, TOOLKIT_KEY = (f"/usr/share/keyrings/{name}-keyring.gpg" for name in ("cuda-archive", "nvidia-container-toolkit"))


def sample(name: str) -> Survey:
    """Parsed as if it were taken now."""
    lines = (SAMPLES / f"{name}.txt").read_text().splitlines()
    clock = lines[lines.index("@@clock ok") + 1].lstrip("|").rstrip("N%.")
    return parse_survey(lines, now_s=float(clock))


def unread(value: object, path: str = "") -> list[str]:
    """Paths of what could not be read."""
    if isinstance(value, dict):
        if surveys.unreadable(value) is not None:
            return [path]
        return [each for key, inner in value.items() for each in unread(inner, f"{path}.{key}".lstrip("."))]
    return []


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.txt")), ids=lambda path: path.stem)
def test_everything_that_can_be_read_was_read(path: Path) -> None:
    survey = sample(path.stem)
    assert mismatch(survey, Survey, "") is None
    # PID 1's environment was closed even to root on the H200 machine
    assert unread(survey) == (["container"] if path.stem.startswith("h200") else [])
    assert path.stat().st_size < 48 << 10


def test_a_real_h200_without_systemd_and_docker() -> None:
    survey = sample("h200-ubuntu2404-no-systemd")
    assert [each["device"] for each in surveys.gpus(survey)] == ["2335"] and surveys.nvswitches(survey) == []
    assert surveys.loaded_version(survey) == "580.159.04" and surveys.module_kind(survey) == "open"
    assert not surveys.is_simulated(survey)
    assert survey["driver"]["module_version"] is None  # built into the image: modinfo knows nothing of it
    assert survey["docker"]["version"] is None and survey["units"] is None
    assert survey["cgroup_controllers"] == ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"]


def test_the_driver_of_the_real_h200_is_adopted() -> None:
    plan = make_plan(sample("h200-ubuntu2404-no-systemd"), read_settings({}), catalog.load(), TODAY)
    assert isinstance(plan, Plan) and plan.target.driver and plan.only_shown is None
    assert (plan.target.driver.source, plan.target.driver.wanted, plan.target.driver.kind) == (
        "preinstalled",
        "580.159.04",
        "open",
    )
    assert "driver-packages" not in [each.id for each in plan.steps]


@pytest.mark.parametrize(
    ("name", "gpus", "switches", "docker"),
    [("debian12-lab", 1, 0, "20.10.24"), ("debian13-lab", 8, 4, "26.1.5")],
    ids=["debian12", "debian13"],
)
def test_lab_hosts(name: str, gpus: int, switches: int, docker: str) -> None:
    new, done = sample(f"{name}-fresh"), sample(f"{name}-after-a-run")
    for survey in (new, done):
        assert (len(surveys.gpus(survey)), len(surveys.nvswitches(survey))) == (gpus, switches)
        assert (
            survey["container"] == "systemd-nspawn" and survey["cgroup_controllers"] == []
        )  # v2, and no controller is handed in
        assert survey["limits"]["may_raise"] is False and survey["packages"]["manager"] == "dpkg"
    assert surveys.loaded_version(new) is None and new["docker"]["version"] is None and new["driver"]["module_version"] is None
    assert surveys.is_simulated(done) and surveys.loaded_version(done) == "580.178.04" and surveys.installed_kind(done) == "open"
    assert done["docker"]["version"] == docker and len(done["driver"]["device_nodes"]) == gpus + 3
    assert done["packages"]["holds"] and "nvidia-driver-cuda" in done["packages"]["holds"]


@pytest.mark.parametrize("name", ["debian12-lab", "debian13-lab"])
def test_a_lab_host_after_a_run_needs_nothing_and_a_fresh_one_is_refused_only_for_being_a_container(name: str) -> None:
    done = sample(f"{name}-after-a-run")
    image = (surveys.known(done["docker"]["images"]) or [""])[0]
    registry = image.partition("/")[0]
    repositories = {
        purpose: {"url": url, "key_url": url, "fingerprint": fingerprints(base64.b64decode(done["packages"]["keyrings"][key]))[0]}
        for purpose, url, key in (
            ("nvidia-driver", "http://198.18.8.1:8082/cuda/repos/{distro}/x86_64/", DRIVER_KEY),
            ("nvidia-toolkit", "http://198.18.8.1:8082/libnvidia-container/stable/deb/amd64/", TOOLKIT_KEY),
        )
    }
    settings = read_settings(
        {
            "gpu_accept": ["container-host"],
            "gpu_docker_source": "distro",
            "gpu_repositories": repositories,
            "gpu_insecure_registries": [registry],
            "gpu_images": [image],
        }
    )
    plan = make_plan(done, settings, catalog.load(), TODAY)
    # captured before these: apt's settings, links in /dev/char, holds of the libraries, and what of it the provenance lists, and a proof
    assert isinstance(plan, Plan) and [each.id for each in plan.steps] == [
        "apt-settings", "device-links", "package-holds", *(["cdi-spec"] if name == "debian13-lab" else []), "provenance",
        "survival", "proof-record",
    ]  # fmt: skip
    refused = make_plan(sample(f"{name}-fresh"), read_settings({}), catalog.load(), TODAY)
    assert isinstance(refused, Refusal) and refused.accept == "container-host"


def test_busybox_alone_sees_the_machine_and_none_of_its_tools() -> None:
    survey = sample("debian12-lab-through-busybox-alone")
    assert [each["device"] for each in surveys.gpus(survey)] == ["2335"] and survey["modules"] == ["nouveau"]
    assert survey["packages"]["manager"] is None and survey["packages"]["installed"] == {}
    assert survey["driver"]["module_version"] is None and survey["units"] is None and survey["docker"]["info"] is None
    assert list(survey["disks"]) == ["/"] and survey["boot_id"] and survey["cgroup_controllers"] == []
