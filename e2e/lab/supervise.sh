#!/bin/sh
# Runs one lab host until it powers off. nspawn.py starts it, with what it needs in LAB_* variables and with further arguments of
# systemd-nspawn in "$@". One script, four stages, each started by the one before:
#   enter  goes into the host's control group and into a mount namespace of its own
#   loop   mounts the host's disk, and boots it again for as long as it asks for a reboot
#   boot   gives one boot a network card, in a network and a time namespace of its own
#   run    goes into the group of this boot and becomes systemd-nspawn
# All mounts and interfaces live in these namespaces: when the processes of the control group are gone, nothing is left.
set -eu
stage=$1
shift
case $stage in
enter)
    echo $$ >"$LAB_CGROUP/loop/cgroup.procs"
    exec unshare --mount --propagation private "$0" loop "$@"
    ;;
loop)
    # nspawn wants /run/systemd/nspawn on a tmpfs, and none of it may stay on the machine
    mount -t tmpfs -o mode=755 tmpfs /run
    # volatile: fsync does nothing, since no host ever loses what this machine holds in memory; needs an empty workdir
    mount -t overlay -o "volatile,lowerdir=$LAB_LOWER,upperdir=$LAB_FOLDER/upper,workdir=$LAB_FOLDER/work" overlay "$LAB_FOLDER/root"
    exec 9</proc/self/ns/net # for boot, which makes the card's other end here
    while :; do
        find "$LAB_CGROUP/machine" -mindepth 1 -depth -type d -exec rmdir {} +
        # /proc/uptime begins at 0 on every boot: programs that wait for a reboot look at it. The offset counts from the clock of the
        # kernel, which is not that of this machine if it is a container with a clock of its own.
        own=$(sed -n 's/^boottime *\(-\?[0-9]*\).*/\1/p' /proc/self/timens_offsets)
        offset=$((own - $(cut -d. -f1 /proc/uptime)))
        code=0
        unshare --net --time --fork --boottime "$offset" --monotonic "$offset" "$0" boot "$@" || code=$?
        [ "$code" = 133 ] || exit "$code" # 133: the host has asked for a reboot
        [ ! -e "$LAB_FOLDER/stays-off" ] || exit 0
    done
    ;;
boot)
    outside() { nsenter --net=/proc/self/fd/9 "$@"; }
    outside ip link delete "$LAB_LINK" 2>/dev/null || : # the last boot's may not be gone yet
    outside ip link add "$LAB_LINK" type veth peer name host0 address "$LAB_MAC" netns $$
    outside ip link set "$LAB_LINK" master "$LAB_BRIDGE" up
    ip link set lo up
    ip address add "$LAB_ADDRESS/24" dev host0
    ip link set host0 up
    ip route add default via "$LAB_GATEWAY"
    exec "$0" run "$@" 9<&-
    ;;
run)
    # A group for each host: without it nspawn puts all hosts into one, their units collide, and shutdowns hang.
    echo $$ >"$LAB_CGROUP/machine/cgroup.procs"
    # Docker needs mounts, keyrings and bpf, and for its overlays a folder that is none itself. Of the sysctls only net.* are a host's own:
    # the others stay read-only, since Docker alone would change kernel.keys.* of the whole machine. nspawn's /sys has no /sys/module.
    export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
    exec systemd-nspawn --quiet --boot --register=no --keep-unit --link-journal=no --resolv-conf=off --timezone=off \
        --directory="$LAB_FOLDER/root" --machine="$LAB_NAME" --hostname="$LAB_NAME" --uuid="$LAB_MACHINE_ID" \
        --network-namespace-path=/proc/self/ns/net --capability=all \
        --system-call-filter='add_key keyctl bpf perf_event_open @mount @keyring' \
        --bind-ro=/sys/module --bind="$LAB_FOLDER/docker:/var/lib/docker" "$@"
    ;;
esac
