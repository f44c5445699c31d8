"""dockerd's command line: what it gives that daemon.json may give too."""

from __future__ import annotations

import pytest

from bringup.dockerd import command_line, environment, flag_keys, flag_values, unit_environment

SHOWN = "{ path=/usr/sbin/dockerd ; argv[]=/usr/sbin/dockerd -H fd:// $DOCKER_OPTS ${EXTRA}x ; ignore_errors=no ; pid=1 }"
DEFAULTS = """\
# Use DOCKER_OPTS to modify the daemon startup options.
#DOCKER_OPTS="--dns 8.8.8.8"
export http_proxy="http://127.0.0.1:3128/"
  DOCKER_OPTS="--default-runtime=nvidia \\
    -D"
OPTIONS='--selinux-enabled --log-driver=journald'
"""


def test_the_variables_of_a_unit_are_filled_in_as_systemd_does() -> None:
    given = environment(DEFAULTS)
    assert given["http_proxy"] == "http://127.0.0.1:3128/" and given["OPTIONS"] == "--selinux-enabled --log-driver=journald"
    assert command_line(SHOWN, given).split() == ["/usr/sbin/dockerd", "-H", "fd://", "--default-runtime=nvidia", "-D", "x"]
    assert command_line("-/usr/bin/dockerd $OPTIONS", given) == "/usr/bin/dockerd --selinux-enabled --log-driver=journald"
    assert command_line(SHOWN, {}).split() == ["/usr/sbin/dockerd", "-H", "fd://", "x"]


@pytest.mark.parametrize(("flags", "keys"), [
    ("dockerd -H fd:// --containerd=/run/c.sock", {"hosts": "-H", "containerd": "--containerd"}),
    ("dockerd -Hfd:// -D -l warn -s=overlay2", {"hosts": "-H", "debug": "-D", "log-level": "-l", "storage-driver": "-s"}),
    ("dockerd --debug tcp://x --label a=1 --label b=2", {"debug": "--debug", "labels": "--label"}),
    ('dockerd --log-opt "tag=a b" --dns', {"log-opts": "--log-opt", "dns": "--dns"}),
    ("dockerd --label 'unfinished", {"labels": "--label"}), ("", {}),
])  # fmt: skip
def test_each_flag_is_known_by_its_key(flags: str, keys: dict[str, str]) -> None:
    assert flag_keys(flags) == keys


def test_the_values_of_flags_have_the_files_form() -> None:
    flags = "dockerd --debug=false --icc --mtu=9000 --label a=1 --label b=2 --log-opt max-size=1m --add-runtime x=/y --default-ulimit a=1"
    assert flag_values(flags) == {
        "debug": False, "icc": True, "mtu": 9000, "labels": ["a=1", "b=2"], "log-opts": {"max-size": "1m"},
        "runtimes": {"x": {"path": "/y"}}, "default-ulimits": None,
    }  # fmt: skip


def test_variables_of_drop_ins_are_read_with_their_quotes() -> None:
    text = '[Service]\nEnvironment="A=--label x=1" B=2\nEnvironment=C=3\nExecStart=/usr/bin/dockerd $A'
    assert unit_environment(text) == {"A": "--label x=1", "B": "2", "C": "3"}
