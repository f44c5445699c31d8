"""The script that takes a new daemon.json into use: whole, on the host, so that a lost connection changes nothing of it."""

# Standard input: three texts as base64, each ended by a line ".": the new file, the new one with live-restore, the old one with it.
# Arguments: the file; `restart` or `reload`; its time of change (- where it is not there), by which one that was changed since is
# told; `read` where the daemon that runs has read it; `lend` where live-restore is to be on over a restart, `never` where a restart
# is not allowed; what `docker info` must show, and must show while live-restore is lent, a text a line; the unit's command line.
#
# The old file stays as .gpu-bringup-pending until the new one is proven, and as .gpu-bringup-backup after it. One that is pending
# from a run that broke stays what is gone back to, unless the daemon has read another one since. What was proven is marked by its time.
TAKE_UP = r"""
trap '' HUP PIPE
umask 077
path=$1 mode=$2 seen=$3 read_=$4 lend=$5 shows=$6 shows_lent=$7; shift 7
real=$(readlink -f "$path")
[ -n "$real" ] || { echo "$path is a link that leads nowhere: mend it" >&2; exit 1; }
new=$real.gpu-bringup-new pending=$real.gpu-bringup-pending backup=$real.gpu-bringup-backup refused=$real.gpu-bringup-refused
mark=/run/gpu-bringup-daemon-json
[ -d "${real%/*}" ] || mkdir -m 755 "${real%/*}" || exit 1
[ "$(stat -L -c %.3Y "$path" 2>/dev/null || echo -)" = "$seen" ] || { echo "$path was changed while this ran: run again" >&2; exit 1; }
take() { while IFS= read -r line && [ "$line" != . ]; do printf '%s\n' "$line"; done | base64 -d >"$1" || exit 1; }
take "$new"; take "$new.lent"; take "$new.kept"
trap 'rm -f "$new" "$new.lent" "$new.kept" "$new.copy"' EXIT

begun=$(date +%s)
why() { # dockerd's own words since the beginning, the telling ones first
    said=$(journalctl --no-pager -q -o cat --since "@$begun" -u docker.service 2>/dev/null)
    printf '%s\n' "$said" | grep -E 'failed to start daemon|unable to configure|level=fatal' | tail -n 1 | grep . ||
        printf '%s\n' "$said" | grep -iE 'level=error|error|failed' | tail -n 1 | grep . || echo 'see journalctl -u docker'
}
shown() { # does the daemon answer, and its info have every line of $1?
    info=$(timeout 10 docker info --format '{{json .}}' 2>/dev/null) || return 1
    case $info in *'"ServerVersion":"'[0-9]*) ;; *) return 1 ;; esac
    printf '%s\n' "$1" | while IFS= read -r line; do case $info in *"$line"*) ;; *) exit 1 ;; esac; done
}
within() { # SECONDS TEXT
    end=$(($(date +%s) + $1))
    until shown "$2"; do
        [ "$(date +%s)" -lt $end ] || return 1
        case $(systemctl is-active docker.service) in failed|inactive) return 1 ;; esac
        sleep 0.2 2>/dev/null || sleep 1
    done
}
put() { # NEW: in the file's place, with its owner and mode
    if [ -e "$real" ]; then chmod --reference="$real" "$1"; chown --reference="$real" "$1"; else chmod 644 "$1"; fi
    mv -f "$1" "$real"
}
reload() { systemctl reload docker.service >/dev/null 2>&1; }
restart() {
    [ "$(systemctl show -p NeedDaemonReload --value docker.service)" = no ] || systemctl daemon-reload
    systemctl reset-failed docker.service docker.socket 2>/dev/null
    systemctl restart docker.service >/dev/null 2>&1
}
back() { # what is gone back to, and what was tried kept for looking at
    cp -p "$real" "$refused" 2>/dev/null
    if [ -s "$pending" ]; then put "$pending"; else rm -f "$real" "$pending"; fi
}
done_() {
    stat -c %.3Y "$real" >"$mark"
    if [ -s "$pending" ]; then mv -f "$pending" "$backup"; else rm -f "$pending"; fi
    rm -f "$refused"; exit 0
}

if dockerd=$(command -v "${1:-dockerd}" || command -v dockerd) && "$dockerd" --help 2>/dev/null | grep -q -- '--validate'; then
    [ $# = 0 ] || shift
    said=$(timeout 60 "$dockerd" --validate "$@" --config-file="$new" 2>&1) || {
        why=$(printf '%s\n' "$said" | grep -v '^$' | tail -n 1)
        echo "nothing was changed: dockerd refuses the new $path: $why" | sed "s#$new#it#" >&2; exit 1; }
fi
if [ ! -e "$pending" ] || [ "$read_" = read ]; then
    if [ -e "$real" ]; then cp -p "$real" "$pending.new" && mv -f "$pending.new" "$pending" || exit 1; else : >"$pending"; fi
fi

try() { cp "$1" "$new.copy"; put "$new.copy"; } # NEW, which stays
if [ "$mode" = reload ]; then
    try "$new"
    if reload && within 15 "$shows"; then done_; fi
    if [ "$lend" = never ]; then
        back; reload
        echo "Docker did not take up the new $path by a reload, and a restart would end its containers: stop them first" >&2; exit 1
    fi
fi
if [ "$lend" = lend ]; then
    try "$new.kept"
    if ! reload || ! within 15 '"LiveRestoreEnabled":true'; then
        back; reload
        echo "live-restore could not be switched on, and a restart of Docker would end its containers: stop them first" >&2; exit 1
    fi
    try "$new.lent"; tried=$shows_lent
else try "$new"; tried=$shows; fi
if restart && within 120 "$tried"; then
    if [ "$lend" = lend ]; then
        try "$new"
        if ! reload || ! within 15 "$shows"; then
            echo "Docker runs with the new $path, but live-restore could not be switched off again: see journalctl -u docker" >&2; exit 1
        fi
    fi
    done_
fi
why=$(why)
begun=$(date +%s)
if [ "$lend" = lend ]; then # the containers live, and shall not be ended by the way back
    cp -p "$real" "$refused"; try "$new.kept"
    if restart && within 120 '"LiveRestoreEnabled":true'; then put "$pending"; reload; up=yes; fi
else
    back
    if restart && within 120 ''; then up=yes; fi
fi
if [ -n "${up:-}" ]; then then="the old one is back, and Docker runs with it"
else then="the old one is back, and Docker does not start with it either: $(why)"; fi
echo "Docker refused the new $path ($why): $then" >&2
exit 1
"""
