"""From the survey script's text to a Survey: whole, or SurveyError; what could not be read is never taken for absent."""

from __future__ import annotations

import json
import random

import pytest

from bringup.survey import Survey, gpus, is_simulated, known, loaded_version, module_kind, nvswitches, unit, unreadable
from bringup.survey.parse import parse_survey
from bringup.survey.saved import mismatch
from bringup.survey.sections import BEGIN, SurveyError
from tests.surveys import BASES, NOW_S, Host, converged, fresh

# not used, or not always: EFI says more than mokutil, and uptime is only for the start of a daemon that runs
UNUSED = (
    "inhibitors",
    "holds",
    "packages",
    "dpkg_audit",
    "secure_boot",
    "uptime",
    "driver_candidates",
    "headers_offered",
    "edited_units",
)
NAMES = sorted(converged().sections)


@pytest.mark.parametrize("base", BASES)
def test_a_survey_has_the_shape_that_its_type_says_and_is_json(base: str) -> None:
    survey = BASES[base]().survey
    assert mismatch(survey, Survey, "") is None
    assert json.loads(json.dumps(survey)) == survey


def test_a_fresh_host() -> None:
    survey = fresh("debian13").survey
    assert (survey["root"], survey["arch"], survey["memory_mib"], survey["clock_offset_s"]) == (True, "x86_64", 24105, 0.0)
    assert survey["os"] == {
        "id": "debian",
        "version_id": "13",
        "pretty_name": "Debian GNU/Linux 13 (trixie)",
        "codename": "trixie",
    }
    assert [(each["device"], each["subsystem_vendor"], each["driver"]) for each in gpus(survey)] == [("2335", "10de", "nouveau")]
    assert survey["docker"]["info"] is None and survey["driver"]["loaded_version"] is None and survey["cdi"] == []
    assert survey["secure_boot"] is False and survey["limits"]["may_raise"] is True and survey["container"] is None
    assert survey["disks"] == {"/": {"free_kib": 200000000, "free_inodes": 16331724}}


def test_a_converged_host() -> None:
    survey = BASES["converged debian13 8 x h200"]().survey
    assert (len(gpus(survey)), len(nvswitches(survey))) == (8, 4)
    assert (loaded_version(survey), module_kind(survey), is_simulated(survey)) == ("580.159.04", "open", False)
    assert survey["driver"]["blocked_modules"] == ["nouveau", "nova_core", "nova_drm"] and survey["driver"]["libraries"] == [
        "580.159.04"
    ]
    assert survey["docker"]["started_s"] == pytest.approx(NOW_S - 300.25 + 201.0)
    assert survey["docker"]["memlock"] == "unlimited" and survey["docker"]["version"] == "26.1.5"
    assert [each["devices"] for each in survey["cdi"]] == [["all", "0"]]
    assert survey["cdi"][0]["library_versions"] == ["580.159.04"] and "/dev/nvidia7" in survey["cdi"][0]["device_nodes"]
    assert (found := unit(survey, "docker.service")) and found["active"] == "active"


def test_noise_before_the_survey_is_ignored() -> None:
    host = fresh()
    noise = ["Welcome to gpu-1", "", "|looks like a line", "@@looks ok", "\x1b[32mmotd\x1b[0m"]
    assert parse_survey([*noise, *host.lines, "logout", "@@end"], NOW_S) == host.survey
    assert parse_survey([f"{each}\r" for each in host.lines], NOW_S) == host.survey


@pytest.mark.parametrize("base", ["fresh debian12 h200", "converged debian13 h200"])
def test_a_survey_cut_off_anywhere_is_an_error_that_says_so(base: str) -> None:
    lines = BASES[base]().lines
    for end in range(len(lines)):
        with pytest.raises(SurveyError, match="cut off" if end else "no survey"):
            parse_survey(lines[:end], NOW_S)


def test_another_versions_survey_is_named() -> None:
    with pytest.raises(SurveyError, match="gpu-bringup-survey 999 was made by another version"):
        parse_survey([BEGIN[:-1] + "999", "@@end"], NOW_S)


def parsed_or_error(lines: list[str]) -> Survey | None:
    try:
        survey = parse_survey(lines, NOW_S)
    except SurveyError as error:
        assert "\n" not in str(error)
        return None
    assert mismatch(survey, Survey, "") is None
    return survey


@pytest.mark.parametrize("name", NAMES)
def test_a_section_in_any_state_gives_a_survey_or_an_error_with_a_name(name: str) -> None:
    for host in (fresh(), converged("debian13")):
        for status, text in (
            ("absent", ""), ("timeout", ""), ("failed", "exit 1\nsaid so"), ("failed", ""), ("ok", ""),
            ("ok", "?"), ("ok", "a b"), ("ok", "-1 :\n\n=\n==> x"), ("ok", "{}"), ("ok", '{"ServerErrors": 5}'), ("failed", "exit 137"),
        ):  # fmt: skip
            parsed_or_error(host.set(name, text, status).lines)
        without = Host({key: value for key, value in host.sections.items() if key != name})
        if parsed_or_error(without.lines) is not None:
            assert name in UNUSED


def test_garbled_lines_give_a_survey_or_an_error_with_a_name() -> None:
    chance = random.Random(580)
    lines = converged("debian13").lines
    for _ in range(200):
        garbled = list(lines)
        at = chance.randrange(len(lines))
        cut = chance.randrange(len(garbled[at]) + 1)
        what = chance.randrange(5)
        if what == 0:
            del garbled[at]
        elif what == 1:
            garbled[at] = garbled[at][:cut]
        elif what == 2:
            garbled[at] = garbled[at][:1] + chance.choice(["", "x", "0", "é", "{", "@@end", "=", " "]) + garbled[at][cut:]
        elif what == 3:
            garbled.insert(at, chance.choice(["|", "@@", "@@end ok", "x", "", "|==> ", "|a", "@@new ok"]))
        else:
            garbled[at], garbled[at - 1] = garbled[at - 1], garbled[at]
        parsed_or_error(garbled)


UNKNOWN = [  # section, where its value is
    ("smi", "driver.smi"), ("gpu_processes", "driver.processes"), ("module_version", "driver.module_version"),
    ("docker_info", "docker.info"), ("docker_running", "docker.running"), ("docker_auto_remove", "docker.auto_remove"),
    ("docker_images", "docker.images"), ("engine", "docker.version"),
    ("daemon_json", "docker.daemon_json"), ("docker_limits", "docker.memlock"), ("units", "units"), ("os_release", "os"),
    ("cloud_init", "cloud_init"), ("virtualization", "virtualization"), ("container_env", "container"), ("provenance", "provenance"),
    ("toolkit", "toolkit_version"), ("cgroup_controllers", "cgroup_controllers"), ("system_memlock", "limits.systemd_memlock"),
    ("holds", "packages.holds"), ("dpkg_audit", "packages.interrupted"), ("driver_loaded_version", "driver.loaded_version"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "path"), UNKNOWN, ids=[section for section, _ in UNKNOWN])
def test_not_there_and_not_readable_are_two_things(section: str, path: str) -> None:
    def value(text: str, status: str) -> object:
        found: object = fresh().set(section, text, status).survey
        for key in path.split("."):
            assert isinstance(found, dict)
            found = found[key]
        return found

    assert value("", "absent") is None
    assert value("", "timeout") == {"unreadable": "no answer within the time limit"}
    assert value("exit 4\nno  permission", "failed") == {"unreadable": "exit 4 no permission"}


def test_a_file_without_permission_is_unreadable_among_others_that_are_read() -> None:
    survey = fresh().set("limits", "==> /a\n==! no permission\n==> /b\n* soft memlock 1").survey
    assert survey["limits"]["limits_d"] == {"/a": {"unreadable": "no permission"}, "/b": "* soft memlock 1\n"}


def test_docker_whose_daemon_is_down_is_unreadable_and_not_absent() -> None:
    """The CLI prints JSON all the same, with ServerErrors; 20.10 exits 0 then."""
    text = '{"ID":"","ServerErrors":["Cannot connect to the Docker daemon at unix:///var/run/docker.sock"]}'
    assert fresh().set("docker_info", text).survey["docker"]["info"] == {
        "unreadable": "Cannot connect to the Docker daemon at unix:///var/run/docker.sock"
    }
    assert fresh().set("docker_info", "WARNING: x\nrubbish").survey["docker"]["info"] == {"unreadable": "WARNING: x\nrubbish"}


def test_modinfo_that_finds_no_module_is_absent_and_one_that_breaks_is_unreadable() -> None:
    gone = fresh().set("module_version", "exit 1\nmodinfo: ERROR: Module nvidia not found.", "failed").survey
    broken = fresh().set("module_version", "exit 1\nmodinfo: can't open '/lib/modules/6.1/modules.dep'", "failed").survey
    by_busybox = fresh().set("module_version", "modinfo: module '/lib/modules/6.1/nvidia' not found").survey  # with exit 0
    assert gone["driver"]["module_version"] is None and by_busybox["driver"]["module_version"] is None
    assert known(broken["driver"]["module_version"]) is None and broken["driver"]["module_version"] is not None


def test_the_loaded_version_comes_from_the_drivers_text_where_sysfs_has_none() -> None:
    host = converged()
    assert host.set("driver_loaded_version", "", "absent").survey["driver"]["loaded_version"] == "580.159.04"
    odd = host.set("driver_loaded_version", "", "absent").set("driver_loaded", "NVRM version: none").survey
    assert odd["driver"]["loaded_version"] == {"unreadable": "no version in 'NVRM version: none'"}
    simulated = host.set("driver_loaded", "NVRM version: X  580.159.04  Release Build  (stand-in: simulated GPU)").survey
    assert is_simulated(simulated) and module_kind(simulated) == "proprietary"


def test_a_folder_without_a_mount_point_is_no_disk() -> None:
    text = "df: /: can't find mount point\nFilesystem 1024-blocks Used Available Capacity Mounted on"
    assert fresh().set("disks", text).set("inodes", text).survey["disks"] == {}


def test_bare_metal_is_no_failure_of_systemd_detect_virt() -> None:
    assert fresh().set("virtualization", "exit 1\nnone", "failed").survey["virtualization"] == "none"


def test_clouds_own_words_are_kept_though_cloud_init_exits_2_on_warnings() -> None:
    assert (
        fresh().set("cloud_init", "exit 2\nstatus: done\nextended_status: degraded done", "failed").survey["cloud_init"] == "done"
    )


def test_a_clock_without_nanoseconds_as_busybox_has_it() -> None:
    assert fresh().set("clock", "1796078453.%N").survey["clock_s"] == 1796078453.0


SECURE_BOOT = [("no EFI", False), (" 6 0 0 0 1", True), (" 6 0 0 0 0", False), ("", None)]


@pytest.mark.parametrize(("text", "wanted"), SECURE_BOOT)
def test_secure_boot_is_read_from_the_efi_variable(text: str, wanted: bool | None) -> None:
    assert fresh().set("efi_secure_boot", text).survey["secure_boot"] is wanted


def test_who_is_in_group_docker() -> None:
    assert fresh().set("docker_group", "docker:x:998:alice,bob").survey["docker"]["group"] == ["alice", "bob"]
    assert fresh().set("docker_group", "docker:x:998:").survey["docker"]["group"] == []
    assert fresh().set("docker_group", "exit 2", "failed").survey["docker"]["group"] is None
    assert unreadable(fresh().set("docker_group", "", "timeout").survey["docker"]["group"])


def test_dockerds_command_line_has_what_its_environment_says() -> None:
    shown = "{ path=/d ; argv[]=/d -H fd:// $A $DOCKER_OPTS ; ignore_errors=no ; pid=1 }"
    host = converged().set("units", f"Id=docker.service\nExecStart={shown}")
    host = host.set("docker_environment", '==> /etc/default/docker\nDOCKER_OPTS="-D"')
    host = host.set("docker_dropins", "==> /etc/systemd/system/docker.service.d/a.conf\n[Service]\nEnvironment=A=--icc")
    assert host.survey["docker"]["command"] == "/d -H fd:// --icc -D"
    assert fresh().survey["docker"]["command"] == ""
