"""The shell scripts around apt and dpkg: questions are never asked, passing faults tried again, failed builds named."""

from __future__ import annotations

from bringup.index import FINAL, PASSING

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
# The first error of the newest DKMS build that was made since $stamp, so that it is the last line and the reason.
NAME_BUILD = r"""
name_build() {
    log=$(find /var/lib/dkms -name make.log -newer "$stamp" 2>/dev/null | head -n 1)
    [ -n "$log" ] || return 0
    # a compiler's own line first: a bare "error" is in its options too (-Werror=...)
    error=$(grep -m 1 -E '^[^ ]+:[0-9]+:([0-9]+:)? (fatal )?error:' "$log" ||
        grep -m 1 -E '(^|[^a-z_=-])error: |Error [0-9]|No rule to make' "$log")
    module=${log#/var/lib/dkms/}; kernel=$(sed -n 's/.*for kernel[: ]*\([^ ]*\).*/\1/p' "$log" | head -n 1)
    echo "gpu-bringup: DKMS could not build ${module%%/build*}${kernel:+ for kernel $kernel}: ${error:-see $log}" >&2
}
"""
# Runs its arguments; what passes by itself (the pattern is bringup.index.PASSING's) is tried again, three times.
RETRYING = (
    NAME_BUILD
    + rf"""
export {ENVIRONMENT}
stamp=$(mktemp) && said=$(mktemp) || exit 1
trap 'rm -f "$stamp" "$said"' EXIT
for pause in {" ".join(str(each) for each in RETRY_PAUSES_S)} 0; do
    "$@" >"$said" 2>&1; code=$?
    cat "$said"
    [ $code = 0 ] && exit 0
    [ $pause = 0 ] && break
    grep -qiE '{FINAL.pattern}' "$said" && break
    grep -qiE '{PASSING.pattern}' "$said" || break
    echo "tried again in $pause s" >&2; sleep $pause
done
name_build
exit $code
"""
)
CONFIGURE = (
    NAME_BUILD
    + rf"""
export {ENVIRONMENT}
stamp=$(mktemp) || exit 1
trap 'rm -f "$stamp"' EXIT
dpkg --configure -a --force-confold --force-confdef && exit 0
name_build
exit 1
"""
)
