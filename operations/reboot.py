"""One reboot for everything that asks for it, confirmed by the boot id, with a deadline."""

from __future__ import annotations

import time

import gevent
from pyinfra import logger, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors.local import LocalConnector
from pyinfra.connectors.util import clear_askpass_cache, remove_any_sudo_askpass_file

from bringup.errors import HostError
from bringup.steps import driver as steps
from bringup.survey import known
from bringup.target import Target
from facts import live
from facts.connection import keep_alive
from operations import lock, shell
from operations.guard import Commands, host_operation
from operations.needed import needed
from operations.record import RUN, report_problem

POLL_S = 2


@host_operation
def reboot(target: Target) -> Commands:
    """Reboot where what the kernel runs is not what is installed, and gpu_reboot allows it. Asked again right before."""
    change = needed("reboot", target)
    if change is None:
        return
    if target.reboot == "never":
        return live.current_host().noop(f"{change.why}; gpu_reboot is never")
    if state.is_executing:
        found = live.survey(fresh=True)
        if target.reboot == "if-idle" and steps.busy(found):
            live.current_host().log(f"not rebooted: {', '.join(steps.busy(found))} running", logger.warning)
            return
        if isinstance(live.current_host().connector, LocalConnector):
            raise HostError(f"{change.why}: reboot this machine, then run again")
        before = known(found["boot_id"])
        if before is None:
            raise HostError("the boot id cannot be read: a reboot could not be confirmed; reboot by hand, then run again")
        yield from reboot_from(before, target.reboot_timeout_s)
    else:
        yield StringCommand("systemctl reboot")


def reboot_from(boot_id: str, timeout_s: int) -> Commands:
    """Reboot, and wait until the host answers with another boot id."""
    yield FunctionCommand(_forget_askpass, (), {})
    # detached, so that the SSH channel closes before the connection does
    yield StringCommand("( sleep 1; systemctl reboot ) </dev/null >/dev/null 2>&1 &")
    yield FunctionCommand(_wait, (boot_id, timeout_s), {}, _timeout=timeout_s + 60)


def _forget_askpass(state: State, host: Host) -> bool:
    remove_any_sudo_askpass_file(host)
    return True


def _wait(state: State, host: Host, before: str, timeout_s: int) -> bool:
    began = time.monotonic()
    clear_askpass_cache(host)
    host.disconnect()
    lock.forget(host)
    said_s = 0.0
    while (waited := time.monotonic() - began) < timeout_s:
        gevent.sleep(POLL_S)
        if _boot_id(host) not in (None, before):
            RUN.of(host.name).reboots += 1
            host.log(f"back after {time.monotonic() - began:.0f} s", logger.info)
            return True
        if waited - said_s >= 30:
            said_s = waited
            host.log(f"rebooting, {waited:.0f} s so far (limit {timeout_s} s)", logger.info)
    report_problem(host, f"the host did not come back from its reboot within {timeout_s} s: look at its console")
    return False


def _boot_id(host: Host) -> str | None:
    """The boot id, or None while the host does not answer."""
    try:
        if not host.connected:
            host.connect(show_errors=False)
        if not host.connected:
            return None
        keep_alive(host)
        success, said = shell.run(host, "cat /proc/sys/kernel/random/boot_id", timeout_s=15)
    except (ConnectError, OSError, EOFError):
        success, said = False, ""
    if success:
        return said.strip().splitlines()[-1]
    if host.connected:  # the old connection: make a new one next time
        host.disconnect()
    return None
