# shellcheck shell=sh
# The evidence of one host for the doctor: prints files and what commands say, and changes nothing. POSIX sh, as survey.sh.
#
#   @@gpu-bringup-evidence 1     begins
#   @@SOURCE                     /a/file, or $ a command
#   |a line of it
#   @@end                        without it the evidence was cut off
#
# Secrets are masked before anything leaves the host: tokens, passwords, logins of registries, user names in paths.
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/sbin:/sbin:/usr/local/bin; export PATH
LIMIT_S=@LIMIT_S@  # seconds for each command; a sick driver answers never

masked() {
    sed -e 's#://[^/ "]*@#://***@#g' \
        -e 's#/\(home\|media\|Users\)/[^/ ":,;]*#/\1/***#g' \
        -e 's#\("auth"[: ]*"\)[^"]*#\1***#g' -e 's#\("identitytoken"[: ]*"\)[^"]*#\1***#g' \
        -e 's#\(nvapi-\|hf_\|gh[oprsu]_\|github_pat_\|dckr_[po]at_\|glpat-\|sk-\|AKIA\|eyJ\)[A-Za-z0-9_.-]*#\1***#g' \
        -e 's#\([Bb]earer \|[Bb]asic \)[A-Za-z0-9._=+/-]*#\1***#g' \
        -e 's#\(--[a-z-]*password \|--[a-z-]*token \|login .*-p \|curl .*-u \)[^ ]*#\1***#g' \
        -e 's#\([A-Za-z_]*\([Pp]assword\|[Pp]asswd\|[Tt]oken\|TOKEN\|PASSWORD\|PASSWD\|SECRET\|[Ss]ecret\|_KEY\|[Aa]pi_\{0,1\}[Kk]ey\)\("\{0,1\} *[=:] *"\{0,1\}\)\)[^ "&,;]*#\1***#g'
}
lines() { while IFS= read -r l || [ -n "$l" ]; do printf '|%s\n' "$l"; done; }
file() { # PATH...
    for f; do
        if [ ! -f "$f" ] || [ ! -r "$f" ]; then continue; fi
        printf '@@%s\n' "$f"; head -c 65536 "$f" | tr -d '\000' | masked | lines
    done
}
command_() { # LINE of sh: left out where its first word is no program here
    command -v "${1%% *}" >/dev/null 2>&1 || return 0
    printf '@@$ %s\n' "$1"
    timeout -k 2 "$LIMIT_S" sh -c "$1" 2>&1 </dev/null | tail -c 131072 | tr -d '\000' | masked | lines
}

journal() { # UNIT LINES: what it has said since it was last started; what failed before that is history
    printf '@@$ journalctl -u %s\n' "$1"
    id=$(systemctl show -p InvocationID --value "$1" 2>/dev/null)
    [ -n "$id" ] || return 0
    timeout -k 2 "$LIMIT_S" journalctl -b --no-pager -n "$2" "_SYSTEMD_INVOCATION_ID=$id" + "INVOCATION_ID=$id" 2>&1 </dev/null |
        tail -c 65536 | masked | lines
}

printf '@@gpu-bringup-evidence 1\n'
file /etc/os-release /proc/version /proc/cmdline /proc/driver/nvidia/version /sys/module/nvidia/version /proc/devices
file /etc/gpu-bringup/provenance.json /etc/docker/daemon.json /etc/nvidia-container-runtime/config.toml /etc/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml
file /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources /etc/modprobe.d/*.conf
command_ 'uname -r'
command_ 'uname -m'
command_ 'systemd-detect-virt'
command_ "dmesg | grep -iE 'nvrm|nvidia|nouveau|xid|pcie bus error|out of memory' | tail -n 400"
command_ 'lsmod'
command_ 'lspci -nnk -d 10de:'
command_ 'modinfo -F version nvidia'
command_ 'dkms status'
command_ 'mokutil --sb-state'
command_ 'ls /lib/modules'
command_ 'ls -l /dev/nvidia*'
command_ 'nvidia-smi'
command_ 'nvidia-smi -q'
command_ 'nvidia-smi --query-gpu=index,persistence_mode,mig.mode.current,mig.mode.pending,pstate,pcie.link.width.current,pcie.link.width.max --format=csv'
command_ "find /lib/modules -name 'nvidia.ko*'"
command_ "ldconfig -p | grep -E 'libcuda|libnvidia-ml'"
command_ 'dpkg -l'
command_ 'rpm -qa'
command_ 'apt-mark showhold'
command_ 'cloud-init status'
command_ 'df -P -k / /var/lib/docker'
command_ 'getenforce'
command_ 'command -v nvidia-container-runtime'
command_ 'nvidia-ctk --version'
command_ 'nvidia-ctk cdi list'
command_ 'ls -l /etc/cdi /var/run/cdi'
command_ 'readlink -f /usr/bin/docker'
command_ 'snap list docker'
command_ 'docker --version'
command_ 'docker info'
command_ 'systemctl cat docker.service'
command_ 'systemctl show docker -p Environment'
command_ 'systemctl status docker.service --no-pager --lines=0'
command_ 'systemctl is-active nvidia-fabricmanager'
command_ 'systemctl is-active nvidia-persistenced'
command_ 'systemctl cat nvidia-persistenced'
journal docker.service 100
journal containerd.service 30
journal nvidia-fabricmanager.service 50
journal nvidia-persistenced.service 50
printf '@@end\n'
