"""What a host may give, and whose line wins: cases beside those in tests/pains/."""

from __future__ import annotations

import pytest

from bringup.limits import Limit, attainable, overriding
from tests.surveys import converged

CAN = [
    ("unlimited", "8388608", True, True), ("unlimited", "8388608", False, False), ("unlimited", "unlimited", False, True),
    ("unlimited", "8388608", None, False), (4 << 20, "8388608", False, True), (8 << 20, "8388608", False, True),
    ((8 << 20) + 1, "8388608", False, False), (0, None, False, False), (1 << 40, None, True, True), (5, "?", None, False),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "hard", "may", "can"), CAN)
def test_what_can_be_had(wanted: Limit, hard: str | None, may: bool | None, can: bool) -> None:
    assert attainable(wanted, hard, may) is can


LIMITS_D = [
    ("/etc/security/limits.conf", "* hard memlock 64", False),  # read before ours
    ("/etc/security/limits.conf", "alice - memlock 64", True),
    ("/etc/security/limits.conf", "root - memlock 64", False),
    ("/etc/security/limits.d/10-early.conf", "*\tsoft\tmemlock\t64  # why", False),
    ("/etc/security/limits.d/99-late.conf", "* - memlock 64", True),
    ("/etc/security/limits.d/99-late.conf", "* - nofile 64", False),
    ("/etc/security/limits.d/99-late.conf", "# * - memlock 64", False),
    ("/etc/security/limits.d/99-late.conf", "garbage", False),
]


@pytest.mark.parametrize(("path", "line", "wins"), LIMITS_D)
def test_whose_line_wins_at_a_login(path: str, line: str, wins: bool) -> None:
    survey = converged().survey
    survey["limits"]["limits_d"][path] = f"{line}\n"
    assert overriding(survey) == ([f"{path}: {line}"] if wins else [])


DROPINS = [
    ("/etc/systemd/system/docker.service.d/10-a.conf", "LimitMEMLOCK=64", False),
    ("/run/systemd/system/docker.service.d/zz.conf", "LimitMEMLOCK=64", True),
    ("/etc/systemd/system/containerd.service.d/override.conf", "LimitMEMLOCK = 64", True),
    ("/etc/systemd/system/docker.service.d/override.conf", "LimitNOFILE=64", False),
]


@pytest.mark.parametrize(("path", "line", "wins"), DROPINS)
def test_whose_drop_in_wins(path: str, line: str, wins: bool) -> None:
    survey = converged().survey
    survey["docker"]["dropins"][path] = f"[Service]\n{line}\n"
    assert overriding(survey) == ([f"{path}: {line}"] if wins else [])


def test_a_later_drop_in_of_systemds_own_settings_wins_and_what_cannot_be_read_says_nothing() -> None:
    survey = converged().survey
    survey["limits"]["systemd_dropins"]["/etc/systemd/system.conf.d/99.conf"] = "[Manager]\nDefaultLimitMEMLOCK=1\n"
    survey["limits"]["limits_d"]["/etc/security/limits.d/99.conf"] = {"unreadable": "no permission"}
    assert overriding(survey) == ["/etc/systemd/system.conf.d/99.conf: DefaultLimitMEMLOCK=1"]
