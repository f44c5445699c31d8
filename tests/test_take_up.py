"""The script that takes a daemon.json into use, run in a folder of the test's own on a small stand-in for Docker."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from operations.docker_scripts import TAKE_UP
from tests.shell import Shell

OLD, NEW = '{"debug": true}', '{"debug": true, "mtu": 9000}'
LENT, KEPT = '{"debug": true, "mtu": 9000, "live-restore": true}', '{"debug": true, "live-restore": true}'

# What the daemon runs with lies in `runs`; it starts with a file that has no "bad", and `docker info` prints the file.
SYSTEMCTL = """
case $1 in
show) echo no ;;
is-active) [ -e down ] && echo failed || echo active ;;
reload) [ -e deaf ] || cp daemon.json runs ;;
restart) echo "with $(cat daemon.json)" >>calls
    if grep -q bad daemon.json 2>/dev/null; then touch down; exit 1; fi
    rm -f down; cp daemon.json runs 2>/dev/null || : >runs ;;
esac"""
DOCKER = """
[ ! -e down ] || exit 1
live=false; grep -q '"live-restore": true' runs && live=true
mtu=0; grep -q 9000 runs && mtu=9000
echo "{\\"ServerVersion\\":\\"28.5.2\\",\\"LiveRestoreEnabled\\":$live,\\"Mtu\\":$mtu}\""""
DOCKERD = """
[ "$1" != --help ] || { echo "      --validate"; exit; }
for file; do :; done
file=${file#*=}
! grep -q unknown "$file" || { echo "no option unknown in $file" >&2; exit 1; }"""


class Daemon:
    """A host's Docker: its file, and what was done to it."""

    def __init__(self, shell: Shell) -> None:
        self.shell, self.file = shell, shell.folder / "daemon.json"
        self.mark = shell.folder / "mark"
        shell.tool("systemctl", f"cd {shell.folder}\n{SYSTEMCTL}")
        shell.tool("docker", f"cd {shell.folder}\n{DOCKER}")
        shell.tool("dockerd", DOCKERD)
        shell.tool("journalctl", 'echo "level=info msg=x"; echo "failed to start daemon: error bad is bad"')
        shell.tool("sleep")
        shell.tool("date", "n=$(cat now 2>/dev/null || echo 0); echo $((n + 5)) >now; echo $((n + 5))")  # every wait is short
        self.write(OLD)
        (shell.folder / "runs").write_text(OLD)

    def write(self, text: str) -> None:
        self.file.write_text(text)
        self.file.chmod(0o640)

    def take_up(
        self,
        new: str = NEW,
        mode: str = "restart",
        *,
        read: bool = True,
        lend: str = "",
        shows: str = '"Mtu":9000',
        seen: str = "",
    ) -> subprocess.CompletedProcess[str]:
        lines = [line for text in (new, LENT, KEPT) for line in (base64.b64encode(text.encode()).decode(), ".")]
        there = f"{int(self.file.stat().st_mtime_ns // 10**6) / 1000:.3f}" if self.file.exists() else "-"  # as stat cuts it
        script = TAKE_UP.replace("/run/gpu-bringup-daemon-json", str(self.mark))
        live = '\n"LiveRestoreEnabled":'
        arguments = (
            str(self.file),
            mode,
            seen or there,
            "read" if read else "",
            lend,
            f"{shows}{live}false",
            f"{shows}{live}true",
        )
        return self.shell.run(script, *arguments, "dockerd", "-H", "fd://", lines=lines)

    @property
    def runs(self) -> str:
        return (self.shell.folder / "runs").read_text()

    @property
    def restarts(self) -> list[str]:
        return [line.removeprefix("with ") for line in self.shell.calls if line.startswith("with ")]

    def beside(self) -> dict[str, str]:
        """What lies beside the file."""
        return {
            path.name.removeprefix("daemon.json.gpu-bringup-"): path.read_text()
            for path in self.file.parent.glob("daemon.json.*")
        }


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon(Shell(tmp_path))


def test_a_new_file_is_taken_into_use_with_the_old_ones_owner_and_mode_and_the_old_one_kept(daemon: Daemon) -> None:
    done = daemon.take_up()
    assert done.returncode == 0, done.stderr
    assert daemon.file.read_text() == daemon.runs == NEW and daemon.file.stat().st_mode & 0o777 == 0o640
    assert daemon.beside() == {"backup": OLD} and daemon.restarts == [NEW]
    assert float(daemon.mark.read_text()) == pytest.approx(daemon.file.stat().st_mtime, abs=0.001)


def test_a_first_file_is_written_and_nothing_is_kept(daemon: Daemon) -> None:
    daemon.file.unlink()
    assert daemon.take_up().returncode == 0
    assert daemon.file.read_text() == NEW and daemon.file.stat().st_mode & 0o777 == 0o644 and daemon.beside() == {}


def test_docker_is_not_restarted_where_a_reload_is_enough_and_what_was_read_is_marked(daemon: Daemon) -> None:
    assert daemon.take_up(mode="reload").returncode == 0
    assert daemon.runs == NEW and daemon.restarts == [] and daemon.beside() == {"backup": OLD}
    assert float(daemon.mark.read_text()) == pytest.approx(daemon.file.stat().st_mtime, abs=0.001)


def test_where_a_reload_was_not_enough_docker_is_restarted_unless_that_would_end_containers(daemon: Daemon) -> None:
    (daemon.shell.folder / "deaf").touch()
    done = daemon.take_up(mode="reload", lend="never")
    assert done.returncode == 1 and "stop them first" in done.stderr
    assert daemon.restarts == [] and daemon.file.read_text() == OLD
    assert daemon.take_up(mode="reload").returncode == 0 and daemon.restarts == [NEW]


def test_what_dockerd_refuses_before_changes_nothing(daemon: Daemon) -> None:
    done = daemon.take_up('{"unknown": 1}')
    assert done.returncode == 1 and "dockerd refuses the new" in done.stderr and "no option unknown in it" in done.stderr
    assert daemon.file.read_text() == OLD and daemon.restarts == [] and daemon.beside() == {}


@pytest.mark.parametrize("old", [OLD, None])
def test_what_stops_docker_is_taken_back_and_docker_started_with_the_old_file(daemon: Daemon, old: str | None) -> None:
    if old is None:
        daemon.file.unlink()
    done = daemon.take_up('{"bad": 1}')
    assert done.returncode == 1
    assert done.stderr == (
        f"Docker refused the new {daemon.file} (failed to start daemon: error bad is bad): "
        "the old one is back, and Docker runs with it\n"
    )
    assert (daemon.file.read_text() if daemon.file.exists() else None) == old and daemon.runs == (old or "")
    assert daemon.beside() == {"refused": '{"bad": 1}'}, "what was tried is kept for looking at"


def test_a_daemon_that_comes_up_without_what_is_wanted_is_a_failure_too(daemon: Daemon) -> None:
    done = daemon.take_up(shows='"Mtu":1500')
    assert done.returncode == 1 and daemon.runs == OLD and "the old one is back" in done.stderr


def test_a_file_that_was_changed_meanwhile_is_left_alone(daemon: Daemon) -> None:
    done = daemon.take_up(seen="1.000")
    assert done.returncode == 1 and "was changed while this ran: run again" in done.stderr
    assert daemon.file.read_text() == OLD and daemon.restarts == []


def test_a_link_stays_a_link(daemon: Daemon) -> None:
    real = daemon.shell.folder / "elsewhere" / "docker.json"
    real.parent.mkdir()
    daemon.file.rename(real)
    daemon.file.symlink_to(real)
    assert daemon.take_up().returncode == 0
    assert daemon.file.is_symlink() and real.read_text() == NEW
    assert sorted(path.name for path in real.parent.iterdir()) == ["docker.json", "docker.json.gpu-bringup-backup"]


class TestAfterARunThatBrokeOff:
    """Between the swap and the restart: the new file is there, the daemon runs with the old one or not at all."""

    def test_the_old_file_stays_what_is_gone_back_to(self, daemon: Daemon) -> None:
        (daemon.shell.folder / "daemon.json.gpu-bringup-pending").write_text(OLD)
        daemon.write('{"bad": 1}')
        (daemon.shell.folder / "down").touch()
        assert daemon.take_up('{"bad": 1}', read=False).returncode == 1
        assert daemon.file.read_text() == daemon.runs == OLD

    def test_the_next_run_finishes_it_and_the_backup_is_of_the_old_one(self, daemon: Daemon) -> None:
        (daemon.shell.folder / "daemon.json.gpu-bringup-pending").write_text(OLD)
        daemon.write(NEW)
        assert daemon.take_up(read=False).returncode == 0
        assert daemon.runs == NEW and daemon.beside() == {"backup": OLD}

    def test_what_the_daemon_has_read_since_takes_its_place(self, daemon: Daemon) -> None:
        (daemon.shell.folder / "daemon.json.gpu-bringup-pending").write_text("older")
        assert daemon.take_up(read=True).returncode == 0
        assert daemon.beside() == {"backup": OLD}


class TestContainersLiveOn:
    """live-restore is lent: by a reload before the restart, and taken away by one after it."""

    def test_it_is_confirmed_before_the_restart_and_gone_after_it(self, daemon: Daemon) -> None:
        done = daemon.take_up(lend="lend")
        assert done.returncode == 0, done.stderr
        assert daemon.restarts == [LENT] and daemon.file.read_text() == daemon.runs == NEW and daemon.beside() == {"backup": OLD}
        calls = [line for line in daemon.shell.calls if line.startswith("systemctl[re") and "failed" not in line]
        assert [line[10:16] for line in calls] == ["reload", "restar", "reload"] and daemon.mark.exists()

    def test_without_it_there_is_no_restart(self, daemon: Daemon) -> None:
        (daemon.shell.folder / "deaf").touch()
        done = daemon.take_up(lend="lend")
        assert done.returncode == 1 and "live-restore could not be switched on" in done.stderr
        assert daemon.restarts == [] and daemon.file.read_text() == OLD

    def test_the_way_back_keeps_them_too(self, daemon: Daemon) -> None:
        done = daemon.take_up(lend="lend", shows='"Mtu":1500')
        assert done.returncode == 1 and "the old one is back" in done.stderr
        assert daemon.restarts == [LENT, KEPT] and daemon.file.read_text() == daemon.runs == OLD
