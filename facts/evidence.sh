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
    sed -e 's#//[^/@ ]*@#//***@#g' \
        -e 's#/home/[^/ "]*#/home/***#g' \
        -e 's#\("auth"[: ]*"\)[^"]*#\1***#g' -e 's#\("identitytoken"[: ]*"\)[^"]*#\1***#g' \
        -e 's#\(nvapi-\|hf_\|ghp_\|github_pat_\|dckr_pat_\|glpat-\|AKIA\)[A-Za-z0-9_-]*#\1***#g' \
        -e 's#\([Bb]earer \|[Bb]asic \)[A-Za-z0-9._=+/-]*#\1***#g' \
        -e 's#\([Pp]assword\|[Pp]asswd\|[Tt]oken\|TOKEN\|PASSWORD\|SECRET\|[Ss]ecret\|API_KEY\|[Aa]pi_\{0,1\}[Kk]ey\)\("\{0,1\} *[=:] *"\{0,1\}\)[^ "&,;]*#\1\2***#g'
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

printf '@@gpu-bringup-evidence 1\n'
file /etc/os-release /proc/version /proc/cmdline /proc/driver/nvidia/version /sys/module/nvidia/version /proc/devices
file /etc/docker/daemon.json /etc/nvidia-container-runtime/config.toml /etc/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml
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
command_ 'dpkg -l'
command_ 'rpm -qa'
command_ 'apt-mark showhold'
command_ 'cloud-init status'
command_ 'df -P -k / /var/lib/docker'
command_ 'getenforce'
command_ 'docker info'
command_ 'systemctl cat docker.service'
command_ 'systemctl show docker -p Environment'
command_ 'systemctl status docker.service --no-pager --lines=0'
command_ 'systemctl is-active nvidia-fabricmanager'
command_ 'systemctl cat nvidia-persistenced'
command_ 'journalctl -u docker.service -b -n 100 --no-pager'
command_ 'journalctl -u nvidia-fabricmanager.service -b -n 50 --no-pager'
command_ 'journalctl -u nvidia-persistenced.service -b -n 50 --no-pager'
printf '@@end\n'
