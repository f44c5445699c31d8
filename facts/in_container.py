"""What is sent to a host to see what a container on it can do: sh scripts around `docker run`, which change nothing."""

from __future__ import annotations

from pyinfra.api import QuoteString, StringCommand

from bringup.container_limits import OTHER, ROOT
from bringup.steps.provenance import PATH
from facts.provenance import FROM_PROVENANCE

BENCHMARK_LIMIT_S = 300  # eight GPUs one after the other; one takes about ten seconds
XID_LINES = 200  # the newest; a sick GPU writes thousands
CONTAINER_LIMIT_S = 180  # one start of an image; torch from a cold disk takes a minute

# $1 image and $2 injection, or empty: then from the provenance. Sets $image and $flags.
GIVEN = (
    FROM_PROVENANCE
    + rf"""
LC_ALL=C; export LC_ALL
image=$1; [ -n "$image" ] || image=$(from_provenance proof_image)
injection=$2; [ -n "$injection" ] || injection=$(from_provenance injection)
[ -n "$image" ] || {{ echo "problem no image is named, and {PATH} names none: run deploys/gpu_host.py first"; exit 0; }}
flags_of() {{ # sets $flags for one way of injection
    case $1 in
    cdi) flags='--runtime runc --device nvidia.com/gpu=all' ;;
    runtime) flags='--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility' ;;
    *) echo "problem no injection is named, and {PATH} names none"; exit 0 ;;
    esac
    flags="$flags --network none --pull never"
}}
flags_of "$injection"
name=gpu-bringup-proof-$$
trap 'docker rm -f "$name" >/dev/null 2>&1' EXIT
"""
)

SMI_SCRIPT = (
    GIVEN
    + rf"""
# the kernel log before the driver is asked: a sick one may not answer
log=$(timeout 10 dmesg 2>/dev/null || timeout 10 journalctl -k -b -o cat --no-pager 2>/dev/null) && [ -n "$log" ] || echo 'log unreadable'
printf '%s\n' "$log" | grep -F 'NVRM: Xid' | tail -n {XID_LINES} | sed 's/^/xid /'
said=$(timeout {CONTAINER_LIMIT_S} docker run --rm --name "$name" $flags "$image" nvidia-smi -q -x 2>&1); code=$?
# how the GPUs are joined: their links, and what stands on the way between them on the PCI bus
[ "$code" != 0 ] || timeout 30 nvidia-smi nvlink --status 2>/dev/null | sed 's/^/nvlink /'
above=
for gpu in /sys/bus/pci/devices/*; do
    [ "$(cat "$gpu/vendor" 2>/dev/null)" = 0x10de ] || continue
    case $(cat "$gpu/class" 2>/dev/null) in 0x0300*|0x0302*) ;; *) continue ;; esac
    [ ! -r "$gpu/iommu_group/type" ] || echo "iommu ${{gpu##*/}} $(cat "$gpu/iommu_group/type")"
    path=$(readlink -f "$gpu") && above="$above $(printf '%s\n' "${{path%/*}}" | tr / '\n' | grep -E '^[0-9a-f]{{4,}}:[0-9a-f]{{2}}:')"
done
if command -v lspci >/dev/null; then
    for bridge in $(printf '%s\n' $above | sort -u); do
        timeout 10 lspci -vvv -s "$bridge" 2>/dev/null | sed -n "s/^[[:space:]]*ACSCtl:[[:space:]]*/acs $bridge ACSCtl: /p"
    done
fi
nodes=0
for node in /sys/devices/system/node/node[0-9]*; do [ ! -d "$node" ] || nodes=$((nodes + 1)); done
[ $nodes = 0 ] || echo "nodes $nodes"
printf 'exit %s\n' $code
printf '%s\n' "$said"
"""
)

# $3 the number of starts, $4 the probe, $5 ways of injection one after the other (`cdi runtime bare`), or empty: the one that is given.
# `bare` is the same program without a container, by the host's own Python.
STARTUP_SCRIPT = (
    GIVEN
    + rf"""
probe=$4 ways=${{5:-$injection}}
bare() {{ # as `run`, with nothing before the interpreter
    before=$(date +%s%N) started=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)
    said=$(printf '%s' "$probe" | timeout {CONTAINER_LIMIT_S} python3 -u - 2>&1); code=$?
    printf 'run bare %s %s %s %s %s\n' "$before" "$before" "$(date +%s%N)" "$code" "$started"
    printf '%s\n' "$said" | sed 's/^/|/'
}}
run() {{
    flags_of "$1"
    before=$(date +%s%N)
    said=$(docker create -i --name "$name" $flags "$image" python3 -u - 2>&1) ||
        {{ printf 'problem %s' "$said" | tr '\n' ' '; echo; return 1; }}
    created=$(date +%s%N)
    said=$(printf '%s' "$probe" | timeout {CONTAINER_LIMIT_S} docker start -a -i "$name" 2>&1); code=$?
    after=$(date +%s%N)
    printf 'run %s %s %s %s %s %s\n' "$1" "$before" "$created" "$after" "$code" "$(docker inspect -f '{{{{.State.StartedAt}}}}' "$name")"
    printf '%s\n' "$said" | sed 's/^/|/'
    docker rm -f "$name" >/dev/null 2>&1
}}
for way in $ways; do
    runs=$3
    while [ "$runs" -gt 0 ]; do
        if [ "$way" = bare ]; then bare; else run "$way" || break; fi
        runs=$((runs - 1))
    done
done
"""
)

# inside a container, as one user
INSIDE = r"""sed -n 's/^Max locked memory *\([a-z0-9]*\) .*/memlock \1/p; s/^Max open files *\([a-z0-9]*\) .*/nofile \1/p' /proc/self/limits
set -- $(df -Pk /dev/shm 2>/dev/null | tail -n 1); [ -z "$2" ] || echo "shm $2"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo 'cgroup 2'; else echo 'cgroup 1'; fi
for each in /dev/nvidia*; do
    [ -c "$each" ] || continue
    if [ -r "$each" ] && [ -w "$each" ]; then echo "device $each"; else echo "closed $each"; fi
done
"""
LIMITS_SCRIPT = (
    GIVEN
    + rf"""
inside=$3
for user in {ROOT} {OTHER}; do
    echo "user $user"
    said=$(timeout {CONTAINER_LIMIT_S} docker run --rm --name "$name" --user "$user" $flags "$image" sh -c "$inside" 2>&1) ||
        {{ printf 'problem %s' "$said" | tr '\n' ' '; echo; continue; }}
    printf '%s\n' "$said"
done
"""
)

BENCHMARK_SCRIPT = (
    GIVEN
    + r"""
probe=$3 limit=$4 argument=$5
busy=$(timeout 30 nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader 2>/dev/null | grep -v '^\[')
[ -z "$busy" ] || { printf 'skipped GPUs in use are not benchmarked: %s\n' "$busy" | tr '\n' ' '; exit 0; }
timeout 30 nvidia-smi topo -m 2>/dev/null | sed -n 's/^/topology /p'
said=$(printf '%s' "$probe" | timeout "$limit" docker run -i --rm --name "$name" $flags "$image" python3 -u - $argument 2>&1)
printf 'exit %s\n' $?
printf '%s\n' "$said"
"""
)


def script(text: str, image: str | None, injection: str | None, *more: str) -> StringCommand:
    given = (image or "", injection or "", *more)
    return StringCommand("sh", "-c", QuoteString(text), "sh", *(QuoteString(each) for each in given))
