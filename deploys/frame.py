"""The frame of a run. Per host: settings, survey, plan or refusal. At the end: results and summary, whatever happened.

No operation is made here: that is for the stage files, so that every host gets every operation and the operation decides.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import UTC, datetime

from pyinfra import logger, state
from pyinfra.api import Host
from pyinfra.context import ctx_state

from bringup import catalog
from bringup.errors import HostError, UserError
from bringup.plan import Plan, Refusal, make_plan
from bringup.report import Ended
from bringup.report.text import describe_host
from bringup.settings import PREFIX, Settings, read_settings
from bringup.target import Target
from deploys import ending
from facts import live
from facts.connection import keep_alive
from operations.images_lock import read_lock
from operations.record import RUN

Stage = Callable[[Target], None]
COMMAND_TIMEOUT_S = 900  # where an operation names no longer one
PREPARE_WAIT_S = 0  # a busy package manager makes the plan provisional; the operations wait for it

_plans: dict[str, Plan | Refusal | None] = {}


def settings_of(this: Host) -> Settings:
    """The user's choices for this host. A wrong one ends the run for all hosts: exit 2, nothing was changed."""
    try:
        return read_settings({key: value for key, value in this.data.dict().items() if key.startswith(PREFIX)})
    except UserError as error:
        raise ending.wrong_use(str(error)) from None


def plan_this_host() -> Plan | Refusal:
    """Survey and decide. Raises HostError when the host cannot be surveyed."""
    this = live.current_host()
    settings = settings_of(this)
    keep_alive(this)
    survey = live.survey(wait_s=PREPARE_WAIT_S)
    try:
        locked = {name: each.digest for name, each in read_lock(settings.images_lock).items()}
    except UserError as error:
        raise ending.wrong_use(str(error)) from None
    plan = make_plan(survey, settings, catalog.load(), datetime.now(tz=UTC).date(), locked)
    result = RUN.of(this.name)
    result.summary = describe_host(survey, catalog.load())
    if isinstance(plan, Plan):
        result.planned = [{"step": each.id, "why": each.why, "what": each.what} for each in plan.steps]
        result.skipped = [{"step": each.id, "why": each.why} for each in plan.skipped]
    return plan


def stage(function: Stage) -> None:
    """Queue one stage's operations for the current host. Whatever goes wrong in here fails this host alone."""
    this = live.current_host()
    ending.watch(ctx_state.get())
    if this not in state.active_hosts:
        return  # left out by an earlier stage
    try:
        if this.name not in _plans:
            limit_commands(this)
            _plans[this.name] = plan_this_host()
            show_plan(this, _plans[this.name])
        plan = _plans[this.name]
        if isinstance(plan, Refusal):
            leave_out(this, "refused", str(plan))
        elif plan is not None and plan.only_shown:
            leave_out(this, "refused", str(plan.only_shown))
        elif plan is not None:
            function(plan.target)
    except HostError as error:
        leave_out(this, "failed", str(error))
    except Exception as error:
        logger.debug(traceback.format_exc())
        leave_out(this, "failed", f"internal error: {type(error).__name__}: {error}")


def without_plan(function: Callable[[], None]) -> None:
    """Queue operations that need no target (undo): they ask the survey themselves."""
    this = live.current_host()
    ending.watch(ctx_state.get())
    if this not in state.active_hosts:
        return
    try:
        settings_of(this)
        limit_commands(this)
        keep_alive(this)
        RUN.of(this.name).summary = describe_host(live.survey(), catalog.load())
        function()
    except HostError as error:
        leave_out(this, "failed", str(error))
    except Exception as error:
        logger.debug(traceback.format_exc())
        leave_out(this, "failed", f"internal error: {type(error).__name__}: {error}")


def limit_commands(this: Host) -> None:
    """Without a limit one lost host hangs the whole run; an inventory may set its own."""
    if this.data.get("_timeout") is None:
        this.data._timeout = COMMAND_TIMEOUT_S


def show_plan(this: Host, plan: Plan | Refusal | None) -> None:
    """What will be done and why, before anything is: for `--dry`, and before the question."""
    if not isinstance(plan, Plan):
        return
    for step in plan.steps:
        reboots = " (reboots)" if step.reboots else ""
        this.log(f"{step.id}{reboots}: {step.what}, because {step.why}", logger.info)
    for step in plan.skipped:
        this.log(f"{step.id} is skipped: {step.why}", logger.info)
    if plan.provisional:
        this.log(f"this plan is provisional: {plan.provisional}", logger.warning)
    if not plan.steps:
        this.log("nothing to change", logger.info)


def leave_out(this: Host, ended: Ended, reason: str) -> None:
    """No operation runs on this host, the run exits 1, the other hosts go on."""
    result = RUN.of(this.name)
    result.ended = ended
    result.problems.append(reason)
    this.log_styled(f"{ended}: {reason}", fg="red", log_func=logger.error)
    # Not state.fail_hosts(): without -y it stops to ask, even under --dry, and it raises when no host is left.
    this.state.failed_hosts.add(this)
    this.state.active_hosts.discard(this)
