#!/bin/sh
# Runs the host until it powers off: boots it again for as long as it asks for a reboot. host.py starts it in a control group of its own.
#   loop  boots, again and again
#   boot  in namespaces of its own: what a container has of /proc, /sys and /dev, the machine's GPUs among it; then systemd
# The network is the machine's: kernels made for GPU guests often have no bridges. HOST_ROOT: the host's root file system; HOST_GROUP:
# its control group; HOST_SHOWN: folders of the machine that it sees at the same place, read-only.
set -eu
case $1 in
loop)
    while :; do
        mkdir -p "$HOST_GROUP/boot"
        code=0
        # in the group before the namespace is made: it becomes the root of what the host sees
        sh -c 'echo $$ >"$HOST_GROUP/boot/cgroup.procs"; exec unshare --mount --pid --fork --uts --ipc --cgroup --propagation private "$0" boot' \
            "$0" || code=$?
        [ "$code" = 129 ] || exit "$code" # 129, SIGHUP: its systemd has asked the kernel for a reboot
    done
    ;;
boot)
    root=$HOST_ROOT
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount -t cgroup2 none "$root/sys/fs/cgroup"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    for node in null zero full random urandom tty kmsg fuse; do
        if [ -e /dev/$node ]; then cp -a /dev/$node "$root/dev/"; fi
    done
    for node in /dev/nvidia*; do
        if [ -e "$node" ]; then cp -a "$node" "$root/dev/"; fi
    done
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for folder in $HOST_SHOWN; do
        mkdir -p "$root$folder"
        mount --bind -o ro "$folder" "$root$folder"
    done
    # as VMs do: another boot id after every boot
    mkdir -p "$root/run/boot"
    cat /proc/sys/kernel/random/uuid >"$root/run/boot/id"
    mount --bind "$root/run/boot/id" "$root/proc/sys/kernel/random/boot_id"
    hostname "$HOST_NAME"
    cd "$root"
    mkdir -p .machine
    pivot_root . .machine
    umount -l /.machine
    exec env -i container=other PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /sbin/init
    ;;
esac
