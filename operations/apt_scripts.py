"""The shell scripts around apt and dpkg: questions are never asked, passing faults tried again, failed builds named."""

from __future__ import annotations

from bringup.index import FINAL, PASSING
from facts.packages import DKMS_FAILURE

# noninteractive; the user's configuration files and running services are left as they are by package tools
ENVIRONMENT = "DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C"
RETRY_PAUSES_S = (3, 10, 30)  # a mirror's synchronisation takes longer than a hiccup of the network
VIEW = "/run/gpu-bringup/sources.d"
MAKE_VIEW = f"""
rm -rf {VIEW} && mkdir -p -m 755 {VIEW} || exit 1
for file in /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] || continue
    for broken; do [ "${{file##*/}}" = "$broken" ] && continue 2; done
    ln -s "$file" {VIEW}/
done
"""
# A package whose kernel module did not compile is left half configured, and every later apt would build, and fail, again: of the named
# ones, those are removed. Not where something beyond the driver set would go with them.
SETTLE = r"""
settle() {
    half=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ half-configured$//p')
    [ -n "$half" ] || return 0
    # shellcheck disable=SC2086 # a list of names
    gone=$(apt-get -s remove $half 2>/dev/null | sed -n 's/^Remv \([^ ]*\).*/\1/p')
    for each in $gone; do
        case $each in *nvidia*|libcuda*|libnv*|libxnvctrl*|cuda-drivers*) continue ;; esac
        echo "$each needs $half, which stays half configured" >&2
        return 0
    done
    # shellcheck disable=SC2086
    apt-get -q -y -o DPkg::Lock::Timeout=300 remove $half
}
"""
# Runs "$@" until it succeeds or fails for good; all that it prints goes to standard output, the last try's exit status to $code. $stamp:
# a file from before the first try.
TRIES = rf"""stamp=$(mktemp) && said=$(mktemp) || exit 1
trap 'rm -f "$stamp" "$said"' EXIT
for pause in {" ".join(str(each) for each in RETRY_PAUSES_S)} 0; do
    "$@" >"$said" 2>&1; code=$?
    cat "$said"
    [ $code = 0 ] && exit 0
    [ $pause = 0 ] && break
    grep -qiE '{FINAL.pattern}' "$said" && break
    grep -qiE '{PASSING.pattern}' "$said" || break
    echo "tried again in $pause s"; sleep $pause
done
"""
# Runs its arguments from the third on; what passes by itself (the pattern is bringup.index.PASSING's) is tried again, three times.
# $1: packages to settle, $2: the way out, where a kernel module does not compile.
RETRYING = (
    DKMS_FAILURE
    + SETTLE
    + rf"""
export {ENVIRONMENT}
fragile=$1 way_out=$2; shift 2
{TRIES}why=$(dkms_failure "$stamp")
if [ -n "$why" ]; then
    # shellcheck disable=SC2086 # a list of names
    [ -z "$fragile" ] || settle $fragile
    echo "gpu-bringup: $why${{way_out:+; $way_out}}" >&2
fi
exit $code
"""
)
# Finishes what was interrupted. Of the packages named, one whose module does not compile is removed, so that the driver's own step decides.
CONFIGURE = (
    DKMS_FAILURE
    + SETTLE
    + rf"""
export {ENVIRONMENT}
stamp=$(mktemp) || exit 1
trap 'rm -f "$stamp"' EXIT
# half installed by a loss of power: of no use, and apt would install it anew with whatever else it installs
for each; do
    [ "$(dpkg-query -W -f '${{db:Status-Status}}' "$each")" != half-installed ] || dpkg --force-remove-reinstreq --remove "$each"
done
configure() {{ dpkg --configure -a --force-confold --force-confdef; }}
configure && exit 0
why=$(dkms_failure "$stamp")
if [ -n "$why" ]; then
    [ $# = 0 ] || {{ settle "$@"; configure && exit 0; }}
    echo "gpu-bringup: $why" >&2
fi
exit 1
"""
)
