#!/bin/sh
# rootfs.sh ROOT: after rootfs/ was copied into a host's root file system ROOT, put the stand-ins in the place of kmod's commands.
# dpkg-divert keeps that so when kmod is upgraded. kmod looks at the name it is called by: hence links of the same names.
set -eu
root=$1
[ -x "$root/usr/bin/kmod" ] || { echo "rootfs.sh: the root file system $root has no kmod" >&2; exit 1; }
mkdir -p "$root/usr/lib/simulated-gpu/kmod"
for name in modprobe rmmod lsmod depmod; do
	ln -sfn /usr/bin/kmod "$root/usr/lib/simulated-gpu/kmod/$name"
	[ $name != depmod ] || continue
	# the path as dpkg knows it: /sbin/modprobe in Debian 12, /usr/sbin/modprobe in 13 (and lsmod in a bin folder too)
	for path in $(chroot "$root" dpkg -L kmod | grep "/$name\$" | grep bin/); do
		chroot "$root" dpkg-divert --quiet --local --rename --divert "$path.distrib" --add "$path"
		ln -sfn /usr/lib/simulated-gpu/$name "$root$path"
	done
done
for name in boot modprobe rmmod lsmod dmesg initramfs; do chmod 755 "$root/usr/lib/simulated-gpu/$name"; done
# dmesg: the machine's own is shared by all hosts
for path in $(chroot "$root" dpkg -L util-linux | grep '/dmesg$' | grep bin/); do
	chroot "$root" dpkg-divert --quiet --local --rename --divert "$path.distrib" --add "$path"
	ln -sfn /usr/lib/simulated-gpu/dmesg "$root$path"
done
