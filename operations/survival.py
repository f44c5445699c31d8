"""Disturb the host as systemd and Docker's upgrades do, and see whether a container that runs keeps its GPU. The result is kept."""

from __future__ import annotations

from pyinfra import host

from bringup import probes
from bringup.survival import PATH, SCHEMA
from bringup.target import Target
from facts.verification import CONTAINER_LIMIT_S, GIVEN, script
from operations.guard import Commands, host_operation
from operations.registry import with_digests

# $3 the probe, $4 the disturbances. Always exits 0: the proof reads what was kept, and judges.
SCRIPT = (
    GIVEN
    + rf"""
probe=$3 disturbances=$4 folder={PATH.rsplit("/", 1)[0]}
plain() {{ tr -cd '[:alnum:] :;,._/()=@-' | cut -c 1-300; }}
kernel() {{ # AFTER: the probe in the running container, as one JSON object
    said=$(printf '%s' "$probe" | timeout {CONTAINER_LIMIT_S} docker exec -i "$name" python3 -u - 2>&1); code=$?
    result=$(printf '%s\n' "$said" | sed -n '/^{{.*}}$/p' | tail -n 1)
    last=$(printf '%s\n' "$said" | sed '/^$/d' | tail -n 1 | plain)
    [ -z "$result" ] || last=
    printf '{{"after": "%s", "exit": %s, "probe": %s, "said": "%s"}}' "$1" "$code" "${{result:-null}}" "$last"
}}
steps=
said=$(docker run -d --name "$name" $flags "$image" python3 -c 'import time; time.sleep(1800)' 2>&1) ||
    steps=$(printf '{{"after": "start", "exit": 125, "probe": null, "said": "%s"}}' "$(printf '%s' "$said" | tr '\n' ' ' | plain)")
if [ -z "$steps" ]; then
    steps=$(kernel start)
    for each in $disturbances; do
        case $each in
        daemon-reload) systemctl daemon-reload ;;
        docker-restart)
            if [ "$(docker info -f '{{{{.LiveRestoreEnabled}}}}' 2>/dev/null)" != true ]; then
                steps="$steps, $(printf '{{"after": "%s", "skipped": "live-restore is off: a restart ends every container"}}' "$each")"
                continue
            fi
            systemctl restart docker
            ;;
        esac
        sleep 2 # systemd applies device rules after the command has returned
        steps="$steps, $(kernel "$each")"
    done
fi
mkdir -p -m 755 "$folder" && printf '{{"schema": {SCHEMA}, "made_at": %s, "boot_id": "%s", "image": "%s", "steps": [%s]}}\n' "$(date +%s)" \
    "$(cat /proc/sys/kernel/random/boot_id)" "$(printf '%s' "$image" | plain)" "$steps" >"{PATH}.new" && mv -f "{PATH}.new" "{PATH}"
"""
)
DISTURBANCES = {"standard": ("daemon-reload",), "full": ("daemon-reload", "docker-restart")}


@host_operation
def survival(target: Target) -> Commands:
    """With gpu_verify standard or full: one container, the same kernel before and after. Nothing else is disturbed."""
    yield from ()
    disturbances = DISTURBANCES.get(target.verify, ())
    if target.driver is None or not disturbances or not target.images:
        return host.noop("gpu_verify asks for no disturbance")
    image = with_digests(target).images[0]
    yield script(SCRIPT, image, target.docker.injection, probes.source("cuda_startup"), " ".join(disturbances))
