"""Docker itself and its daemon.json."""

from __future__ import annotations

from pyinfra import state
from pyinfra.api import QuoteString, StringCommand

from bringup import daemon_json as merging
from bringup.errors import HostError
from bringup.steps.containers import docker_engine as docker_engine_step
from bringup.survey import known, unit
from bringup.target import Target
from facts import live
from operations import packages
from operations.files import show_diff, write_file
from operations.guard import Commands, host_operation
from operations.needed import needed

NEW = f"{merging.PATH}.gpu-bringup-new"
BACKUP = f"{merging.PATH}.gpu-bringup-backup"

# Moves the new file into place, restarts Docker, and waits until its daemon answers; where it does not, the old file is put back
# and Docker started with it. One script, so that a lost connection in between changes nothing.
SWAP = rf"""
path={merging.PATH} new={NEW} backup={BACKUP}
if [ -e "$path" ]; then cp -p "$path" "$backup"; chmod --reference="$path" "$new" 2>/dev/null; else rm -f "$backup"; fi
mv -f "$new" "$path"
up() {{
    end=$(($(date +%s) + 90))
    until timeout 10 docker info >/dev/null 2>&1; do [ "$(date +%s)" -lt $end ] || return 1; sleep 1; done
}}
systemctl reset-failed docker.service 2>/dev/null
if systemctl restart docker.service && up; then exit 0; fi
echo "Docker did not come up with the new $path:" >&2
journalctl --no-pager -q -n 20 -o cat -u docker.service 2>/dev/null | grep -iE 'fatal|error|unable|failed|conflict' | tail -n 3 >&2
if [ -e "$backup" ]; then mv -f "$backup" "$path"; else rm -f "$path"; fi
systemctl reset-failed docker.service 2>/dev/null
systemctl restart docker.service && up && echo "the old file was put back, Docker is up with it" >&2
exit 1
"""


@host_operation
def docker_engine(target: Target) -> Commands:
    """Docker where there is none, or its daemon started where it is down. What is there is adopted, never replaced."""
    if needed("docker-engine", target) is None:
        return
    if unit(live.survey(), "docker.service") is None:
        yield from packages.install(target, target.docker.packages, target.docker.repository, None)
        if target.family != "apt":  # whose packages start no service
            yield StringCommand("systemctl enable --now docker.service")
    else:
        yield StringCommand("systemctl reset-failed docker.service; systemctl enable --now docker.service")
    if state.is_executing:
        found = docker_engine_step(live.survey(fresh=True), target.docker)
        if found is not None:
            raise HostError(f"{found.why}: see `journalctl -u docker` on the host")


@host_operation
def daemon_json(target: Target) -> Commands:
    """Merge what is wanted into daemon.json, and restart Docker only where it has not taken it up. Rolled back by itself."""
    change = needed("daemon-json", target)
    if change is None:
        return
    survey = live.survey()
    old = known(survey["docker"]["daemon_json"])
    new = merging.merged_text(old, target.docker.options) or old or "{}\n"
    show_diff(merging.PATH, old, new)
    running = known(survey["docker"]["running"]) or []
    keeps = bool((known(survey["docker"]["info"]) or {}).get("LiveRestoreEnabled"))
    if state.is_executing and running and not keeps and "stop-containers" not in target.accepted:
        names = ", ".join(each["name"] for each in running)
        raise HostError(
            f"Docker must be restarted and would stop {names}: stop them yourself, switch live-restore on, "
            f"or add stop-containers to gpu_accept"
        )
    yield write_file(NEW, new)
    yield StringCommand("systemctl daemon-reload && sh -c", QuoteString(SWAP), _timeout=300)
