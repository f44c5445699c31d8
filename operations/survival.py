"""Disturb the host as systemd and Docker's upgrades do, and see whether a container that runs keeps its GPU. The result is kept."""

from __future__ import annotations

import json
import time

import gevent
from pyinfra import logger, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand
from pyinfra.connectors.local import LocalConnector

from bringup import probes
from bringup.errors import HostError
from bringup.steps import driver
from bringup.steps import proof as steps
from bringup.steps.docker import removed_by_restart
from bringup.survey import known
from bringup.survival import PATH, SCHEMA, rebooted
from bringup.target import Target
from facts import live
from facts.in_container import CONTAINER_LIMIT_S, GIVEN, script
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed
from operations.reboot import reboot_from
from operations.record import RUN, report_problem
from operations.registry import with_digests

SETTLED_S = 180  # until the services of a host that has booted run; persistence of 8 GPUs takes most of a minute

# $3 the probe, $4 the disturbances, $5 what the result is of, $6 the user's containers that a restart of Docker would end, $7 the boot that
# a reboot of ours has made. Always exits 0: the proof reads what was kept, and judges. No --rm: Docker before 24.0.8 takes such containers
# away when it starts again.
SCRIPT = (
    GIVEN
    + rf"""
probe=$3 disturbances=$4 of=$5 doomed=$6 rebooted=$7 folder={PATH.rsplit("/", 1)[0]}
plain() {{ tr -cd '[:alnum:] :;,._/()=@-' | cut -c 1-300; }}
kernel() {{ # AFTER: the probe in the running container, as one JSON object
    said=$(printf '%s' "$probe" | timeout {CONTAINER_LIMIT_S} docker exec -i "$name" python3 -u - 2>&1); code=$?
    result=$(printf '%s\n' "$said" | sed -n '/^{{.*}}$/p' | tail -n 1)
    last=$(printf '%s\n' "$said" | sed '/^$/d' | tail -n 1 | plain)
    [ -z "$result" ] || last=
    printf '{{"after": "%s", "exit": %s, "probe": %s, "said": "%s"}}' "$1" "$code" "${{result:-null}}" "$last"
}}
steps=
docker container prune --force --filter label=gpu-bringup.proof >/dev/null 2>&1 # of runs that were killed
said=$(docker run -d --label gpu-bringup.proof --name "$name" $flags "$image" python3 -c 'import time; time.sleep(1800)' 2>&1) ||
    steps=$(printf '{{"after": "start", "exit": 125, "probe": null, "said": "%s"}}' "$(printf '%s' "$said" | tr '\n' ' ' | plain)")
if [ -z "$steps" ]; then
    steps=$(kernel start)
    for each in $disturbances; do
        case $each in
        daemon-reload) systemctl daemon-reload ;;
        docker-restart)
            if [ "$(docker info -f '{{{{.LiveRestoreEnabled}}}}' 2>/dev/null)" != true ]; then
                why='live-restore is off, and a restart would end every container: set it in gpu_docker_options'
            elif [ -n "$doomed" ]; then
                why="a restart of this Docker would end $doomed, which run with --rm"
            else
                why=
            fi
            if [ -n "$why" ]; then
                steps="$steps, $(printf '{{"after": "%s", "skipped": "%s"}}' "$each" "$why")"
                continue
            fi
            systemctl restart docker
            ;;
        esac
        sleep 2 # systemd applies device rules after the command has returned
        steps="$steps, $(kernel "$each")"
    done
fi
mkdir -p -m 755 "$folder" &&
    printf '{{"schema": {SCHEMA}, "made_at": %s, "of": %s, "steps": [%s], "rebooted": "%s"}}\n' \
    "$(date +%s)" "$of" "$steps" "$rebooted" >"{PATH}.new" && mv -f "{PATH}.new" "{PATH}"
"""
)


@host_operation
def proof_reboot(target: Target) -> Commands:
    """For the full proof. One that this run has made for the driver is enough."""
    target = with_digests(target)
    change = needed("proof-reboot", target)
    if change is None:
        return
    if not state.is_executing:
        yield StringCommand("systemctl reboot")
        return
    current, survey = live.current_host(), live.survey(fresh=True)
    if target.reboot == "if-idle" and (users := driver.busy(survey)):
        current.log(f"not rebooted: {', '.join(users)} running", logger.warning)
        return
    if not RUN.of(current.name).reboots:
        if isinstance(current.connector, LocalConnector):
            current.log("not rebooted: a machine does not reboot itself", logger.warning)
            return
        yield from reboot_from(str(known(survey["boot_id"])), target.reboot_timeout_s)
    yield FunctionCommand(_in_order_again, (target,), {}, _timeout=SETTLED_S + 60)
    yield write_file(PATH, steps.rebooted(live.survey(), target))


def _in_order_again(state: State, host: Host, target: Target) -> bool:
    """The host answers before its services run."""
    deadline = time.monotonic() + SETTLED_S
    while not steps.in_order(live.survey(fresh=True), target):
        if time.monotonic() > deadline:
            report_problem(
                host, f"after the reboot the host is not as it was within {SETTLED_S} s: run deploys/gpu_host.py again"
            )
            return False
        gevent.sleep(2)
    return True


@host_operation
def survival(target: Target) -> Commands:
    """One container, the same kernel before and after what the level of the proof asks for. Nothing else is disturbed."""
    target = with_digests(target)
    if needed("survival", target) is None:
        return
    survey = live.survey()
    disturbances = " ".join(steps.DISTURBANCES[steps.level(survey, target)])
    doomed = ", ".join(removed_by_restart(survey))
    of = json.dumps(steps.subject(survey, target))
    yield script(
        SCRIPT,
        target.images[0],
        target.docker.injection,
        probes.source("cuda_startup"),
        disturbances,
        of,
        doomed,
        rebooted(survey["proof"]) or "",
    )


@host_operation
def proof_record(target: Target) -> Commands:
    """After a thorough proof that passed: note its level beside the kept result."""
    target = with_digests(target)
    if needed("proof-record", target) is None:
        return
    if state.is_executing and RUN.of(live.current_host().name).function != "proven":
        raise HostError("the proof has not passed: nothing is noted")
    yield write_file(PATH, steps.recorded(live.survey(), target))
