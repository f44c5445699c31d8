# shellcheck shell=sh disable=SC2317 # a function for other scripts
# What holds the package manager, a line each: FILE PID COMMAND. A POSIX lock is seen in /proc/locks by device and inode; asking
# fuser would need a package.
package_locks() {
    for f in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock \
        /var/lib/rpm/.rpm.lock /var/cache/dnf/metadata_lock.pid /run/zypp.pid; do
        [ -e "$f" ] || continue
        inode=$(ls -i "$f" 2>/dev/null); inode=${inode%% *}; [ -n "$inode" ] || continue
        while read -r _ _ _ mode pid where _; do
            case "$mode $where" in "WRITE "*:"$inode")
                comm='?'; [ -r "/proc/$pid/comm" ] && read -r comm <"/proc/$pid/comm"
                printf '%s %s %s\n' "$f" "$pid" "$comm" ;;
            esac
        done </proc/locks
    done
}
