# shellcheck shell=sh
# The survey of one host: prints what the host is, in sections, and changes nothing. POSIX sh: runs under dash and busybox.
#
#   @@gpu-bringup-survey 1       begins; what a noisy login shell printed before it is ignored
#   @@NAME ok|absent|failed|timeout
#   |a line of that section
#   @@end                        without it the survey was cut off
#
# What may block (a sick driver, a dead daemon, a stale mount) runs beside the rest, and all of it shares one deadline: what has
# not answered by then is a `timeout`. It is not waited for, since a process stuck in the kernel cannot be killed.
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/sbin:/sbin:/usr/local/bin; export PATH
WAIT_S=@WAIT_S@      # seconds to wait for cloud-init and package locks before looking
LIMIT_S=@LIMIT_S@    # seconds for everything that may block

work=$(mktemp -d /run/gpu-bringup-survey.XXXXXX 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

head_() { printf '@@%s %s\n' "$1" "$2"; }
# by `lines`, also what sed printed: a file may end without a newline, and would swallow the next section
lines() { while IFS= read -r l || [ -n "$l" ]; do printf '|%s\n' "$l"; done; }
ok() { head_ "$1" ok; printf '%s\n' "$2" | lines; }
absent() { head_ "$1" absent; }
failed() { head_ "$1" failed; printf '%s\n' "$2" | lines; }
has() { command -v "$1" >/dev/null 2>&1; }

file() { # NAME PATH: a small file
    if [ -r "$2" ] && [ ! -d "$2" ]; then head_ "$1" ok; lines 2>/dev/null <"$2"
    elif [ -e "$2" ]; then failed "$1" "no permission to read $2"
    elif [ -d "${2%/*}" ] && [ ! -x "${2%/*}" ]; then failed "$1" "no permission to look into ${2%/*}"
    else absent "$1"; fi
}
text_file() { # NAME PATH: one that is written anew from what was read: bytes that are no text would be lost
    if [ -r "$2" ] && has iconv && ! iconv -f UTF-8 -t UTF-8 <"$2" >/dev/null 2>&1; then failed "$1" "$2 is no UTF-8 text"
    else file "$1" "$2"; fi
}
files() { # NAME PATH...: several small files without comments, each after a line "==> PATH"
    name=$1; shift; head_ "$name" ok
    for f; do
        [ -e "$f" ] || continue
        printf '|==> %s\n' "$f"
        if [ -r "$f" ]; then sed '/^[[:space:]]*\(#.*\)*$/d' "$f" | lines; else printf '|==! no permission\n'; fi
    done
}

file_named() { if [ -e "$2" ]; then ok "$1" "$2"; else absent "$1"; fi; } # NAME PATH: only whether it is there

jobs_=
job() { # NAME COMMAND...: starts it beside the rest; its output and exit status are collected at the end
    name=$1; shift; jobs_="$jobs_ $name"
    has "$1" || { echo absent >"$work/$name.rc"; return; }
    # The whole group leaves our standard output alone: who reads the survey waits until nobody holds that open any more.
    { timeout -s KILL $((LIMIT_S + 5)) "$@" >"$work/$name.out" 2>&1; echo $? >"$work/$name.rc"; } </dev/null >/dev/null 2>&1 &
}
job_sh() { # NAME TOOL SCRIPT: the same for a line of sh that needs TOOL
    if has "$2"; then job "$1" sh -c "$3"; else job "$1" "$2"; fi
}
collect() { # prints every job; those that have not ended by the deadline are timeouts
    tick=0
    while :; do
        missing=
        for name in $jobs_; do [ -s "$work/$name.rc" ] || missing=1; done
        { [ -z "$missing" ] || [ $tick -ge $((LIMIT_S * 20)) ]; } && break
        sleep 0.05 2>/dev/null || { sleep 1; tick=$((tick + 19)); }
        tick=$((tick + 1))
    done
    for name in $jobs_; do
        rc=; [ -s "$work/$name.rc" ] && read -r rc <"$work/$name.rc"
        case $rc in
        '') head_ "$name" timeout ;;
        absent) head_ "$name" absent ;;
        0) head_ "$name" ok; lines <"$work/$name.out" ;;
        *) head_ "$name" failed; printf '|exit %s\n' "$rc"; lines <"$work/$name.out" ;;
        esac
    done
}

# --- what holds the package manager ------------------------------------------------------------------------------------------
#@package_locks.sh@ is put here
if [ "$WAIT_S" -gt 0 ]; then
    waited=0
    has cloud-init && [ "$(id -u)" = 0 ] && timeout "$WAIT_S" cloud-init status --wait >/dev/null 2>&1
    while [ $waited -lt "$WAIT_S" ] && [ -n "$(package_locks)" ]; do sleep 1; waited=$((waited + 1)); done
fi

printf '@@gpu-bringup-survey 1\n'

# --- may block: start first, collect last -----------------------------------------------------------------------------------
job smi nvidia-smi -L
# nvidia-smi knows nothing once its library is newer than the loaded module (exit 18), which is when it must be known whether that may
# be loaded anew: who has a GPU open is then read from the kernel, but for the daemons that are stopped for it
# shellcheck disable=SC2016 # expanded by the job's own sh
job_sh gpu_processes nvidia-smi 'said=$(nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader 2>&1); code=$?
if [ $code != 18 ] || [ "$(id -u)" != 0 ] || ! find /dev/null -lname x 2>/dev/null; then printf "%s\n" "$said"; exit $code; fi
for pid in $(find /proc/[0-9]*/fd -lname "/dev/nvidia*" 2>/dev/null | cut -d/ -f3 | sort -un); do
    name=$(tr "\0" " " <"/proc/$pid/cmdline" 2>/dev/null) || continue
    name=${name%% *}
    case ${name##*/} in nvidia-persistenced|nv-fabricmanager) ;; *) echo "$pid, $name" ;; esac
done'
job docker_info docker info --format '{{json .}}'
# each start of docker's command costs a host 20 ms of CPU: the counts in its info say where there is nothing to list
after_info() { # NAME COUNT COMMAND: unless the info says that there are none
    job_sh "$1" docker "until [ -s '$work/docker_info.rc' ]; do [ -d '$work' ] || exit; sleep 0.05 2>/dev/null || sleep 1; done
        grep -v ServerErrors '$work/docker_info.out' | grep -q '\"$2\":0[,}]' || exec $3" # of a daemon that is down it says 0 too
}
after_info docker_running ContainersRunning "docker ps --format '{{.ID}} {{.Names}} {{.Image}}'"
after_info docker_auto_remove ContainersRunning \
    "docker ps -q | xargs -r docker inspect -f '{{if .HostConfig.AutoRemove}}{{.Name}}{{end}}'"
after_info docker_images Images "docker image ls --digests --format '{{.Repository}}:{{.Tag}} {{.Repository}}@{{.Digest}}'"
job cloud_init cloud-init status --long
job virtualization systemd-detect-virt
job units systemctl show docker.service containerd.service nvidia-persistenced.service nvidia-fabricmanager.service \
    kubelet.service slurmd.service unattended-upgrades.service nvidia-cdi-refresh.path nvidia-dcgm.service \
    gpu-bringup-device-links.service gpu-bringup-device-links.path gpu-bringup-cdi-spec.service \
    -p Id -p LoadState -p ActiveState -p UnitFileState -p LimitMEMLOCK -p MainPID -p FragmentPath -p ExecStart
# shellcheck disable=SC2016 # expanded by the job's own sh
job_sh containerd_limits systemctl 'pid=$(systemctl show -p MainPID containerd.service); pid=${pid#MainPID=}
    [ "${pid:-0}" = 0 ] || cat "/proc/$pid/limits"'
job boot_arguments grubby --info=DEFAULT
job system_memlock systemctl show -p DefaultLimitMEMLOCK
job inhibitors systemd-inhibit --list --no-legend --no-pager
# shellcheck disable=SC2016 # expanded by the job's own sh
job_sh disks df 'for d in / /var/lib/docker; do [ -d "$d" ] && df -P -k "$d" | tail -n 1; done; true'
# shellcheck disable=SC2016
job_sh inodes df 'for d in / /var/lib/docker; do [ -d "$d" ] && df -P -i "$d" | tail -n 1; done; true'
job secure_boot mokutil --sb-state
# Debian's own packages call the module nvidia-current, or nvidia-current-open
# shellcheck disable=SC2016
of_module='for name in nvidia nvidia-current nvidia-current-open; do
    said=$(modinfo -F "$field" $name 2>/dev/null) && [ -n "$said" ] && echo "$said" && exit; done; modinfo -F "$field" nvidia'
job_sh module_version modinfo "field=version; $of_module"
job_sh module_license modinfo "field=license; $of_module"
# all modules of the running kernel by that name: of two, modprobe takes one, and a reboot does not bring the other
# shellcheck disable=SC2016
job_sh module_files modinfo 'find "/lib/modules/$(uname -r)/" -type f \( -name "nvidia.ko*" -o -name "nvidia-current.ko*" -o -name "nvidia-current-open.ko*" \) |
    while IFS= read -r file; do echo "$(modinfo -F version "$file" 2>/dev/null) $file"; done'
# a package can be installed and its program gone, which only a container's start would tell
job_sh toolkit nvidia-ctk 'command -v nvidia-container-runtime >/dev/null || { echo "nvidia-container-runtime is missing"; exit 1; }; nvidia-ctk --version'
job engine docker --version
job docker_group getent group docker
job selinux getenforce
job dkms dkms status
# only the packages that a plan looks at: all of them would be 50 KiB
ours='nvidia|cuda|nvlsm|nvsdm|libxnvctrl|docker|containerd|moby|runc|podman|dkms|linux-(headers|image|modules)|kernel|shim|mokutil|cloud-init'
ours="$ours|unattended-upgrades|snapd|infiniband-diags|initramfs-tools|dracut|^gcc-[0-9]+ "
ids=''
[ -r /etc/os-release ] && while IFS='=' read -r k v; do case $k in ID|ID_LIKE) ids="$ids $v" ;; esac; done </etc/os-release
manager=dpkg # each of the two can be installed as a mere program on hosts of the other
case $ids in *rhel*|*fedora*|*centos*|*amzn*|*suse*|*sles*) has rpm && manager=rpm ;; *) has dpkg-query || manager=rpm ;; esac
if [ $manager = dpkg ]; then
    job_sh packages dpkg-query "all=\$(dpkg-query -W -f '\${Package} \${Version} \${db:Status-Want} \${db:Status-Status}\n') || exit 1; printf '%s\n' \"\$all\" | grep -E '$ours' || true"
    # what apt-mark showhold prints, without the 0.4 s of CPU that apt takes to read all its lists
    job_sh holds dpkg-query "all=\$(dpkg-query -W -f '\${db:Status-Want} \${Package}\n') || exit 1; printf '%s\n' \"\$all\" | sed -n 's/^hold //p'"
    # what the driver could be upgraded to, from the package lists that are there (apt-cache would read all of them, 0.4 s of CPU)
    # shellcheck disable=SC2016
    job_sh driver_candidates awk '[ ! -e /var/lib/dpkg/info/nvidia-driver-cuda.list ] || for list in /var/lib/apt/lists/*cuda*_Packages; do
        [ -r "$list" ] && awk "/^Package: /{ours = (\$2 == \"nvidia-driver-cuda\")} ours && /^Version: /{print \"nvidia-driver-cuda | \" \$2 \" | list\"}" "$list"
    done; true'
    job dpkg_audit dpkg --audit
    # whether the running kernel's headers can be had, by the package lists; nothing where there are none, or they are compressed
    # shellcheck disable=SC2016
    job_sh headers_offered grep '[ ! -e "/lib/modules/$(uname -r)/build/Makefile" ] || exit 0
        for list in /var/lib/apt/lists/*_Packages.[gxlz]*; do [ ! -e "$list" ] || exit 0; done
        set -- /var/lib/apt/lists/*_Packages; [ -e "$1" ] || exit 0
        if grep -qxF "Package: linux-headers-$(uname -r)" "$@"; then echo yes; else echo no; fi'
    # units of the driver whose files are no longer the packages' (as dpkg --verify, without reading the libraries): an upgrade overwrites them
    job_sh edited_units md5sum 'cd / && sed -n "/lib\/systemd\/system\/nvidia/p" /var/lib/dpkg/info/*nvidia*.md5sums 2>/dev/null |
        md5sum -c 2>/dev/null | sed -n "s/^\(.*\): FAILED\$/\/\1/p"'
elif has rpm && { [ -d /var/lib/rpm ] || [ -d /usr/lib/sysimage/rpm ]; }; then # busybox has an rpm without a database
    job_sh packages rpm "all=\$(rpm -qa --qf '%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE} install installed %{ARCH}\n') || exit 1; printf '%s\n' \"\$all\" | grep -E '^gpg-pubkey|versionlock|$ours' || true"
    # shellcheck disable=SC2016
    job_sh edited_units rpm 'for file in /usr/lib/systemd/system/nvidia-*.service; do [ ! -f "$file" ] || rpm -Vf --nodeps "$file"; done 2>/dev/null |
        sed -n "s/^..5.* \(\/usr\/lib\/systemd\/system\/nvidia-.*\)/\1/p" | sort -u'
fi

# --- the machine --------------------------------------------------------------------------------------------------------------
ok root "$(id -u)"
file uptime /proc/uptime # before the clock: on a busy host the two are read seconds apart, and Docker must not seem to be older than it is
ok clock "$(date +%s.%N)"
file kernel_built /proc/version
ok arch "$(uname -m)"
ok kernel "$(uname -r)"
file os_release /etc/os-release
file boot_id /proc/sys/kernel/random/boot_id
file command_line /proc/cmdline
ok meminfo "$(sed -n "/^MemTotal/p" /proc/meminfo)"
files dmi /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/chassis_asset_tag
if [ -r /run/systemd/container ]; then file container_env /run/systemd/container # for everybody to read, where systemd runs
elif [ -e /.dockerenv ]; then ok container_env docker
elif environment=$(tr '\0' '\n' 2>/dev/null </proc/1/environ); then ok container_env "$(printf '%s\n' "$environment" | sed -n 's/^container=//p')"
elif [ -d /run/systemd/system ]; then ok container_env '' # systemd as PID 1 would have written that file
else failed container_env 'no permission to read /proc/1/environ'; fi

head_ pci ok
for d in /sys/bus/pci/devices/*; do
    [ -r "$d/vendor" ] || continue
    read -r vendor <"$d/vendor"; [ "$vendor" = 0x10de ] || continue
    device='' class='' sv='' sd='' numa='' driver=-
    read -r device <"$d/device"; read -r class <"$d/class"
    [ -r "$d/subsystem_vendor" ] && read -r sv <"$d/subsystem_vendor"
    [ -r "$d/subsystem_device" ] && read -r sd <"$d/subsystem_device"
    [ -r "$d/numa_node" ] && read -r numa <"$d/numa_node"
    [ -L "$d/driver" ] && { driver=$(readlink "$d/driver"); driver=${driver##*/}; }
    bars=0; unassigned=0
    if [ -r "$d/resource" ]; then
        while read -r start end flags; do
            case $flags in 0x0000000000000000) continue ;; esac
            bars=$((bars + 1))
            case "$start$end" in 0x00000000000000000x0000000000000000) unassigned=$((unassigned + 1)) ;; esac
        done <"$d/resource"
    fi
    printf '|%s\n' "${d##*/} $vendor $device ${sv:--} ${sd:--} $class ${numa:--} $driver $bars $unassigned"
done
head_ modules ok # from sysfs: /proc/modules is missing where the kernel has no loadable ones, and lacks built-in ones
for d in /sys/module/nvidia* /sys/module/nouveau /sys/module/nova* /sys/module/gdrdrv /sys/module/vfio_pci; do
    [ -d "$d" ] && printf '|%s\n' "${d##*/}"
done
head_ kernels ok
for d in /lib/modules/*; do
    [ -d "$d" ] || continue
    headers=no; [ -e "$d/build/Makefile" ] && headers=yes
    nvidia=no
    for m in "$d"/updates/dkms/nvidia*.ko* "$d"/extra/nvidia*.ko* "$d"/kernel/drivers/video/nvidia*.ko* "$d"/kernel/nvidia-*/nvidia*.ko*; do
        [ -e "$m" ] && { nvidia=yes; break; }
    done
    image=no; [ -e "/boot/vmlinuz-${d##*/}" ] && image=yes
    printf '|%s\n' "${d##*/} headers=$headers nvidia=$nvidia image=$image"
done

# --- the driver ---------------------------------------------------------------------------------------------------------------
file driver_loaded /proc/driver/nvidia/version
file driver_loaded_version /sys/module/nvidia/version
head_ driver_libraries ok
for f in /usr/lib/*-linux-gnu/libcuda.so.*.* /usr/lib/*-linux-gnu/nvidia/current/libcuda.so.*.* /usr/lib64/libcuda.so.*.* \
    /usr/local/nvidia/lib64/libcuda.so.*.*; do
    [ -e "$f" ] && printf '|%s\n' "$f"
done
head_ device_nodes ok
for f in /dev/nvidia*; do
    [ -c "$f" ] && printf '|%s\n' "$f"
done
# by their numbers, and whether systemd can find them by these
nodes=
for f in /dev/nvidia* /dev/nvidia-caps/* /dev/nvidia-caps-imex-channels/*; do [ -c "$f" ] && nodes="$nodes $f"; done
head_ device_numbers ok
# shellcheck disable=SC2086,SC3013 # names without blanks; dash and busybox know -ef
[ -z "$nodes" ] || stat -c '%n %t %T %a %G' $nodes | while read -r path major minor mode group; do
    number=$(printf '%d:%d' "0x$major" "0x$minor") linked=unlinked
    [ "/dev/char/$number" -ef "$path" ] && linked=linked
    printf '|%s\n' "$path $number $linked $mode $group"
done
# when the running kernel's initramfs was made, and when our list of blocked modules was written: one that is older lacks it
head_ initramfs ok
for f in "/boot/initrd.img-$(uname -r)" "/boot/initramfs-$(uname -r).img" /etc/modprobe.d/gpu-bringup-nouveau.conf; do
    [ -e "$f" ] && stat -c '|%n %Y' "$f"
done
head_ modprobe ok
for f in /etc/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf; do
    [ -r "$f" ] || continue
    while IFS= read -r l || [ -n "$l" ]; do
        case $l in *nouveau*|*nova_*|*nvidia*) printf '|%s\n' "$f: $l" ;; esac
    done <"$f"
done
file_named runfile /usr/bin/nvidia-uninstall
head_ efi_secure_boot ok
if [ ! -d /sys/firmware/efi ]; then printf '|no EFI\n'
else for f in /sys/firmware/efi/efivars/SecureBoot-*; do [ -r "$f" ] && printf '|%s\n' "$(od -An -t u1 "$f" 2>/dev/null)"; done; fi

# --- the package manager ----------------------------------------------------------------------------------------------------
ok locks "$(package_locks)"
head_ dpkg_updates ok
for f in /var/lib/dpkg/updates/[0-9]*; do [ -e "$f" ] && printf '|%s\n' "$f"; done
head_ repositories ok
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources /etc/yum.repos.d/*.repo \
    /etc/zypp/repos.d/*.repo; do
    [ -e "$f" ] || continue
    printf '|==> %s\n' "$f"
    if [ -r "$f" ]; then sed 's#//[^/@ ]*@#//***@#' "$f" | lines; else printf '|==! no permission\n'; fi
done
head_ keyrings ok
for f in /usr/share/keyrings/cuda-archive-keyring.gpg /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg \
    /etc/apt/keyrings/docker.asc /etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-bringup-*; do
    [ -r "$f" ] && printf '|%s %s\n' "$f" "$(base64 <"$f" | tr -d '\n')"
done
# how dnf holds packages, and NVIDIA's module stream
conf=/etc/dnf/plugins/versionlock.conf list='' off=''
[ -r $conf ] && while IFS=' =' read -r k v; do case $k=$v in locklist=*) list=$v ;; enabled=[0nNfF]*) off=1 ;; esac; done <$conf
if [ -n "$off" ]; then failed version_locks "versionlock is switched off in $conf"
elif [ -n "$list" ] && [ -e "$list" ]; then file version_locks "$list"
elif [ -n "$list" ]; then ok version_locks ''
else absent version_locks; fi
files module_stream /etc/dnf/modules.d/nvidia-driver.module
files apt_settings /etc/apt/apt.conf.d/*gpu-bringup*
files apt_preferences /etc/apt/preferences /etc/apt/preferences.d/*
files reboot_required /run/reboot-required /run/reboot-required.pkgs

# --- containers ---------------------------------------------------------------------------------------------------------------
text_file daemon_json /etc/docker/daemon.json
docker_path=$(command -v docker 2>/dev/null) && docker_path=$(readlink -f "$docker_path")
file daemon_json_pending "$(readlink -f /etc/docker/daemon.json).gpu-bringup-pending"
file daemon_json_taken_up /run/gpu-bringup-daemon-json
if written=$(stat -L -c %.3Y /etc/docker/daemon.json 2>/dev/null); then ok daemon_json_written "$written"; else absent daemon_json_written; fi
# the daemon that runs: when it was started (clock ticks after boot), and how much memory it may lock
pid=; [ -r /run/docker.pid ] && read -r pid </run/docker.pid
file docker_stat "/proc/${pid:-none}/stat"
file docker_limits "/proc/${pid:-none}/limits"
ok docker_path "$docker_path"
file_named docker_snap /snap/bin/docker
files docker_dropins /etc/systemd/system/docker.service.d/*.conf /run/systemd/system/docker.service.d/*.conf \
    /etc/systemd/system/containerd.service.d/*.conf /run/systemd/system/containerd.service.d/*.conf | sed 's#//[^/@ ]*@#//***@#'
head_ ldconfig ok
for f in /sbin/ldconfig.real /sbin/ldconfig; do [ -e "$f" ] && printf '|%s\n' "$f"; done
head_ rootless ok
for f in /run/user/*/docker.sock; do [ -S "$f" ] && printf '|%s\n' "$f"; done
files docker_environment /etc/default/docker /etc/sysconfig/docker* | sed 's#//[^/@ ]*@#//***@#' # EnvironmentFile= of its units
file toolkit_config /etc/nvidia-container-runtime/config.toml
head_ cdi ok
# shellcheck disable=SC2016 # awk's own
cdi='function text(l) { sub(/^[^:]*:[ \t]*/, "", l); gsub(/["\047 \t]/, "", l); return l }
function flush() { if (node != "") print "node", node, major == "" ? "-" : major ":" minor; node = ""; major = ""; minor = 0 }
match($0, /libcuda\.so\.[0-9][0-9.]*[0-9]/) { print "library", substr($0, RSTART, RLENGTH) }
!/:/ { next }
{ key = $0; sub(/:.*/, "", key); gsub(/["\047 \t-]/, "", key); value = text($0) }
key == "kind" || key == "name" || key == "cdiVersion" { flush(); print key == "name" ? "device" : key == "kind" ? key : "version", value }
key == "path" || key == "hostPath" { flush(); if (value ~ /^\/dev\//) node = value; else if (value != "") print "file", value }
key == "major" { major = value }
key == "minor" { minor = value }
END { flush() }'
for f in /etc/cdi/*.yaml /etc/cdi/*.json /var/run/cdi/*.yaml /var/run/cdi/*.json; do
    [ -e "$f" ] || continue
    if [ -r "$f" ] && has awk; then
        stat -c "|$f mode %a" "$f"
        # JSON may be one line
        # shellcheck disable=SC2020 # three characters
        tr '{},' '\n\n\n' <"$f" | awk "$cdi" | sort -u | while read -r what value number; do
            case $what in
            file) [ -e "$value" ] || printf '|%s missing %s\n' "$f" "$value" ;;
            *) printf '|%s %s %s\n' "$f" "$what" "$value${number:+ $number}" ;;
            esac
        done
    else printf '|%s unreadable\n' "$f"; fi
done

# --- limits, cgroups ----------------------------------------------------------------------------------------------------------
head_ bootloader ok
for f in grubby update-grub; do has $f && printf '|%s\n' $f; done
file cgroup_controllers /sys/fs/cgroup/cgroup.controllers
head_ pid1_limits ok
[ -r /proc/1/limits ] && while IFS= read -r l; do case $l in "Max locked memory"*|"Max open files"*) printf '|%s\n' "$l" ;; esac; done </proc/1/limits
head_ pid1_capabilities ok
while IFS= read -r l; do case $l in CapBnd:*) printf '|%s\n' "$l" ;; esac; done </proc/1/status
files limits /etc/security/limits.conf /etc/security/limits.d/*.conf
files systemd_dropins /etc/systemd/system.conf.d/*.conf

# --- the rest -----------------------------------------------------------------------------------------------------------------
files our_files /usr/local/lib/gpu-bringup/* /etc/systemd/system/gpu-bringup-* /etc/udev/rules.d/*-gpu-bringup.rules /etc/default/grub.d/zz-gpu-bringup.cfg
file provenance /etc/gpu-bringup/provenance.json
file installed_by_us /etc/gpu-bringup/installed
file held_by_us /etc/gpu-bringup/held
file disabled_by_us /etc/gpu-bringup/disabled
file pulled_by_us /etc/gpu-bringup/pulled
file proof /var/lib/gpu-bringup/proof.json
files lock /run/gpu-bringup.lock/owner
head_ proxy ok
for f in /etc/environment /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    [ -r "$f" ] || continue
    while IFS= read -r l || [ -n "$l" ]; do
        case $l in *[pP]roxy*|*PROXY*) printf '|%s\n' "$f: $l" ;; esac
    done <"$f"
done | sed 's#//[^/@ ]*@#//***@#'

collect
printf '@@end\n'
