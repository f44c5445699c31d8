# shellcheck shell=sh
# The simulated kernel of a lab host, sourced by boot, modprobe, rmmod and lsmod beside this file.
#
# It stands in for the parts of a kernel that a lab host, which shares the machine's kernel, cannot have: NVIDIA devices on the
# PCI bus, the modules nouveau and nvidia*, and what these show under /sys and /proc. All state is lost at a reboot, as in a kernel:
#   /run/simulated-gpu/hardware   what is plugged in, made by e2e/lab/gpu.py, read-only
#   /run/simulated-gpu/modules    loaded modules, in the format of /proc/modules
#   /run/simulated-gpu/driver     what a loaded nvidia driver tells its libraries (on a real host: by ioctl on /dev/nvidiactl)

state=/run/simulated-gpu
release=$(uname -r)
devices=/sys/bus/pci/devices
# nvidia-uvm gets a number at run time on a real host; here the last one that a kernel would give away
uvm_major=384

is_ours() { case $1 in nouveau | nvidia | nvidia[-_]uvm | nvidia[-_]modeset | nvidia[-_]drm) return 0 ;; *) return 1 ;; esac }

is_loaded() { grep -q "^$1 " $state/modules; }

# what dmesg beside this file shows
kernel_log() {
	read -r now _ </proc/uptime
	for line; do printf '[%12.6f] %s\n' "$now" "$line" >>$state/kmsg; done
	printf '%s\n' "$@" | logger -t kernel 2>/dev/null || :
}

# gpus, switches: PCI addresses of NVIDIA devices of one class
nvidia_devices() {
	for device in "$devices"/*; do
		read -r vendor <"$device/vendor"
		read -r class <"$device/class"
		case $vendor$class in 0x10de$1*) echo "${device##*/}" ;; esac
	done
}
gpus() { nvidia_devices 0x03; }
switches() { nvidia_devices 0x0680; }

# the driver of a device in $driver, empty if it has none
find_driver() {
	driver=''
	[ ! -L "$devices/$1/driver" ] || driver=$(readlink "$devices/$1/driver")
	driver=${driver##*/}
}

bind_driver() { # ADDRESS DRIVER
	mkdir -p "/sys/bus/pci/drivers/$2"
	ln -sfn "../../drivers/$2" "$devices/$1/driver"
	ln -sfn "../../devices/$1" "/sys/bus/pci/drivers/$2/$1"
}

unbind_driver() { # DRIVER
	for link in "/sys/bus/pci/drivers/$1"/*:*; do
		[ ! -L "$link" ] || rm -f "$devices/$(basename "$link")/driver" "$link"
	done
	rm -rf "/sys/bus/pci/drivers/$1"
}

module_file() { modinfo -k "$release" -n "$1" 2>/dev/null; }

add_module() { # NAME SIZE USED-BY [VERSION]
	echo "$1 $2 0 $3 Live 0x0000000000000000 (OE)" >>$state/modules
	mkdir -p "/sys/module/$1"
	echo live >"/sys/module/$1/initstate"
	echo 0 >"/sys/module/$1/refcnt"
	[ -z "${4-}" ] || echo "$4" >"/sys/module/$1/version"
}

drop_module() {
	grep -v "^$1 " $state/modules >$state/modules.new || :
	cat $state/modules.new >$state/modules # in place: it may be bound over /proc/modules
	rm -rf $state/modules.new "/sys/module/$1"
}

load_nouveau() {
	for gpu in $(gpus); do
		find_driver "$gpu"
		[ -n "$driver" ] || bind_driver "$gpu" nouveau
	done
	add_module nouveau 3219456 -
}

# load_nvidia: 0, or 1 with the kernel's answer to insmod in $problem
load_nvidia() {
	file=$(module_file nvidia) || return 1
	version=$(modinfo -F version "$file")
	case $(modinfo -F license "$file") in *MIT*) kind=open ;; *) kind=proprietary ;; esac
	free='' failed=0
	for file in "$state"/hardware/gpus/*; do
		gpu=$(sed -n 's/^address=//p' "$file")
		[ -n "$gpu" ] || continue
		find_driver "$gpu"
		if [ -n "$driver" ]; then
			kernel_log "NVRM: GPU $gpu is already bound to $driver."
		elif [ $kind = open ] && ! grep -qx gsp_processor=yes "$file"; then
			failed=$((failed + 1))
			kernel_log "NVRM: The NVIDIA GPU $gpu (PCI ID: $(sed -n 's/^query_device_id=0x\(....\)\(....\)/\2:\1/p' "$file" | tr A-F a-f))" \
				"NVRM: installed in this system is not supported by open" "NVRM: nvidia.ko because it does not include the required GPU" \
				"NVRM: System Processor (GSP)." "NVRM: Please see the 'Open Linux Kernel Modules' and 'GSP" \
				"NVRM: Firmware' sections in the driver README, available on" "NVRM: the Linux graphics driver download page at" \
				"NVRM: www.nvidia.com." "nvidia $gpu: probe with driver nvidia failed with error -1"
		else
			free="$free $gpu"
		fi
	done
	[ $failed = 0 ] || kernel_log "NVRM: The NVIDIA probe routine failed for $failed device(s)."
	if [ -z "$free" ]; then
		if [ $failed = 0 ]; then kernel_log "NVRM: No NVIDIA GPU found. (stand-in)"; else kernel_log "NVRM: None of the NVIDIA devices were initialized."; fi
		# shellcheck disable=SC2034 # for who called
		problem="No such device"
		return 1
	fi
	case $kind in open) words="Open Kernel Module for x86_64" ;; *) words="x86_64 Kernel Module" ;; esac
	text="NVRM version: NVIDIA UNIX $words  $version  Release Build  (stand-in: simulated GPU)"
	for gpu in $free; do bind_driver "$gpu" nvidia; done
	mkdir -p $state/driver/gpus /proc/driver/nvidia/gpus /proc/driver/nvidia-nvswitch/devices
	for switch in $(switches); do
		bind_driver "$switch" nvidia-nvswitch
		echo "(stand-in)" >"/proc/driver/nvidia-nvswitch/devices/$switch"
	done
	for file in "$state"/hardware/gpus/*; do
		address=$(sed -n 's/^address=//p' "$file")
		find_driver "$address"
		[ "$driver" = nvidia ] || continue
		cp "$file" $state/driver/gpus/
		mkdir "/proc/driver/nvidia/gpus/$address"
		sed -n 's/^name=/Model: \t\t /p; s/^uuid=/GPU UUID: \t /p; s/^address=/Bus Location: \t /p; s/^minor=/Device Minor: \t /p' "$file" \
			>"/proc/driver/nvidia/gpus/$address/information"
	done
	echo "$version" >$state/driver/version
	printf '%s\nGCC version:  none, nothing was compiled\n' "$text" >/proc/driver/nvidia/version
	add_module nvidia 104071168 nvidia_modeset,nvidia_uvm, "$version"
	add_module nvidia_modeset 1638400 - "$version"
	load_uvm
	kernel_log "$text"
	uevent add module KERNEL nvidia
	uevent bind pci DRIVER nvidia
}

load_uvm() {
	is_loaded nvidia_uvm || add_module nvidia_uvm 4038656 - "$(cat $state/driver/version)"
	echo $uvm_major >$state/driver/uvm
	uevent add module KERNEL nvidia_uvm
}

# uevent ACTION SUBSYSTEM KEY VALUE: udev does not run in lab hosts: what the rules of those files would do, in the order of their names
uevent() {
	for rules in /usr/lib/udev/rules.d/*nvidia*.rules /etc/udev/rules.d/*.rules; do
		[ -e "$rules" ] || continue
		sed -n "s/^ACTION==\"$1\", SUBSYSTEM==\"$2\", $3==\"$4\", RUN+=\"\(.*\)\"\$/\1/p" "$rules"
	done | while read -r command; do
		$command </dev/null || :
	done
}

# in_use NAME: the loaded modules that use a module, `-` for a process that has a device of it open, or nothing
in_use() {
	case $1 in
	nouveau) echo drm ;; # the console
	nvidia)
		for user in nvidia_uvm nvidia_modeset; do ! is_loaded $user || printf '%s ' $user; done
		open_nodes '/dev/nvidia[c0-9]*'
		;;
	nvidia_uvm) open_nodes '/dev/nvidia-uvm*' ;;
	esac
}

# of all processes, those in containers included
open_nodes() { [ -z "$(find /proc/[0-9]*/fd -maxdepth 1 -lname "$1" -print -quit 2>/dev/null)" ] || echo -; }

unload() { # NAME
	drop_module "$1"
	case $1 in
	nvidia_uvm) rm -f $state/driver/uvm ;;
	nvidia)
		rm -rf $state/driver/* /proc/driver/nvidia /proc/driver/nvidia-nvswitch
		unbind_driver nvidia
		unbind_driver nvidia-nvswitch
		;;
	esac
}
