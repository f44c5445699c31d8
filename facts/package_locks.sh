# shellcheck shell=sh disable=SC2317 # a function for other scripts
# What holds the package manager, a line each: FILE PID COMMAND. A POSIX lock is seen in /proc/locks by device and inode; asking
# fuser would need a package. dnf's locks are files that hold the process's number, and count as long as there is such a process.
package_locks() {
    for f in /var/cache/dnf/metadata_lock.pid /var/cache/dnf/download_lock.pid /var/lib/dnf/rpmdb_lock.pid /run/yum.pid; do
        [ -s "$f" ] || continue
        pid=; { read -r pid <"$f"; } 2>/dev/null; [ -d "/proc/${pid:-none}" ] || continue
        comm='?'; { read -r comm <"/proc/$pid/comm"; } 2>/dev/null
        printf '%s %s %s\n' "$f" "$pid" "$comm"
    done
    for f in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock \
        /var/lib/rpm/.rpm.lock /usr/lib/sysimage/rpm/.rpm.lock /run/zypp.pid; do
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
