"""What is run on a host for its images, as sh scripts. They speak to Docker's own interface through `docker system dial-stdio`,
which needs no other program there and tells more than the command line does: bytes of each layer, and errors one at a time.

Docker takes a closed standard input for a caller that has gone: a named pipe is kept open instead.
"""

from __future__ import annotations

# $1 method, $2 path, $3 seconds; stdin: the registry's login (X-Registry-Auth, may be empty), the body. Prints the whole answer.
ENGINE = r"""
umask 077; LC_ALL=C; export LC_ALL
folder=$(mktemp -d /run/gpu-bringup-engine.XXXXXX) || exit 1
trap 'rm -rf "$folder"' EXIT
mkfifo "$folder/in" || exit 1
IFS= read -r auth; IFS= read -r body
timeout "$3" docker system dial-stdio <"$folder/in" 2>&1 &
exec 3>"$folder/in"
printf '%s %s HTTP/1.0\r\nHost: docker\r\nX-Registry-Auth: %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' \
    "$1" "$2" "$auth" "${#body}" "$body" >&3
wait $!
"""

# Adds up what Docker says of each layer; the newest sum is the only line of $folder/progress.
SUMS = r"""
function value(name, pattern,   skip) {
    skip = length(name) + 3
    return match($0, "\"" name "\":" pattern) ? substr($0, RSTART + skip, RLENGTH - skip) : ""
}
function text(name,   found) { found = value(name, "\"[^\"]*\""); return found == "" ? "" : substr(found, 2, length(found) - 2) }
function number(name) { return value(name, "[0-9]+") + 0 }
function write(   id, got, total) {
    for (id in seen) { got += current[id]; total += all[id] }
    printf "%d %d %d %d %s\n", layers, finished, got, total, note >(folder "/progress"); close(folder "/progress")
}
{ sub(/\r$/, "") }
/^HTTP\/1\.[01] / { code = $2; next }
/"errorDetail"|"message"/ { print >(folder "/error"); close(folder "/error") }
/"status":"Status: / { print "pulled" >(folder "/result"); close(folder "/result") }
{
    id = text("id"); status = text("status")
    if (id == "" || status ~ /^Pulling from/) next
    if (!(id in seen)) { seen[id] = 1; layers++ }
    if (status == "Downloading") { current[id] = number("current"); all[id] = number("total"); note = "" }
    else if (status == "Download complete" || status == "Verifying Checksum") current[id] = all[id]
    else if (status == "Pull complete" || status == "Already exists") { if (!(id in done)) { done[id] = 1; finished++ } }
    else if (status ~ /^Retrying/) note = "Docker tries a layer again"
    else if (status == "Extracting") note = got_all() ? "unpacking" : ""
    if (++lines % 8 == 0 || status !~ /^(Downloading|Extracting)$/) write()
}
function got_all(   id) { for (id in seen) if (all[id] && current[id] < all[id]) return 0; return 1 }
END { write() }
"""

# The pull itself; outlives the connection that has started it. $1 folder, $2 path of the request, $3 seconds, $4 sums; stdin: login.
WORKER = r"""
folder=$1
trap '' HUP
echo $$ >"$folder/pid"
IFS= read -r auth
exec </dev/null
at_once=
case $(awk -W version 2>/dev/null) in mawk*) at_once='-W interactive' ;; esac  # it reads nothing before a large buffer is full
timeout "$3" docker system dial-stdio <"$folder/in" 2>"$folder/said" | awk $at_once -v folder="$folder" "$4" &
exec 3>"$folder/in"
printf 'POST %s HTTP/1.0\r\nHost: docker\r\nX-Registry-Auth: %s\r\nContent-Length: 0\r\n\r\n' "$2" "$auth" >&3
auth=
wait
: >"$folder/ended"
"""

# $1 folder, $2 path, $3 seconds, $4 sums, $5 the worker. Starts it, or joins one that an earlier run has left at work.
PULL = r"""
umask 077; LC_ALL=C; export LC_ALL
folder=$1
IFS= read -r auth
if [ ! -e "$folder/ended" ] && kill -0 "$(cat "$folder/pid" 2>/dev/null)" 2>/dev/null; then echo joined; exit 0; fi
rm -rf "$folder"
mkdir -p "$folder" && mkfifo "$folder/in" || exit 1
printf '%s\n' "$auth" | setsid sh -c "$5" sh "$folder" "$2" "$3" "$4" >/dev/null 2>&1 &
for try in 1 2 3 4 5 6 7 8 9 10; do [ -s "$folder/pid" ] && break; sleep 0.02 2>/dev/null || sleep 1; done
echo started
"""

# $1 folder. Waits a second for the end. Prints `progress LINE`, and when it has ended `pulled`, `error LINE`, or `said WORDS`; then
# nothing of it stays.
LOOK = r"""
folder=$1
tick=0
while [ ! -e "$folder/ended" ] && [ $tick -lt 20 ]; do tick=$((tick + 1)); sleep 0.05 2>/dev/null || { sleep 1; tick=20; }; done
[ -s "$folder/progress" ] && sed 's/^/progress /' "$folder/progress"
if [ ! -e "$folder/ended" ]; then
    kill -0 "$(cat "$folder/pid" 2>/dev/null)" 2>/dev/null && exit 0
    [ -e "$folder/ended" ] || echo "said the pull on the host was ended from outside"
fi
if [ -s "$folder/error" ]; then tail -n 1 "$folder/error" | sed 's/^/error /'
elif [ -s "$folder/result" ]; then echo pulled
else echo "said $(tail -n 1 "$folder/said" 2>/dev/null)"; fi
rm -rf "$folder"
rmdir "${folder%/*}" 2>/dev/null || true
"""

# $1 folder: gives up a pull that does not get on. Docker then drops what nobody else asks for.
STOP = r"""
pid=$(cat "$1/pid" 2>/dev/null) && kill -TERM -- "-$pid" 2>/dev/null
rm -rf "$1"
"""

# Prints what a pull needs to know of the disk: `root PATH`, `kib FREE`, `inodes TOTAL FREE`.
ROOM = r"""
LC_ALL=C; export LC_ALL
root=$(docker info --format '{{.DockerRootDir}}') || exit 1
case $(docker info --format '{{.DriverStatus}}') in
*io.containerd.snapshotter*) [ -d /var/lib/containerd ] && root=/var/lib/containerd ;;
esac
echo "root $root"
df -P -k "$root" | awk 'END { print "kib", $(NF - 2) }'
df -P -i "$root" | awk 'END { print "inodes", $(NF - 4), $(NF - 2) }'
"""

# $1 by digest, $2 by tag: an image without a tag would go with the next `docker image prune`; a tag that is there is not moved
TAG = 'docker image inspect "$2" >/dev/null 2>&1 || docker tag "$1" "$2"'

# $1 file, $2 reference: what is ours is written down before it is there
NOTE = 'mkdir -p -m 755 "${1%/*}" && { grep -qxF -e "$2" "$1" 2>/dev/null || printf "%s\\n" "$2" >>"$1"; }'
