"""The shell scripts around dnf: passing faults are tried again, failed builds named."""

from __future__ import annotations

from facts.packages import DKMS_FAILURE
from operations.apt_scripts import TRIES

# Foreign repositories that cannot be read are passed over, ours are not. dnf itself would wait for its locks for ever.
OPTIONS = (
    "-y",
    "--setopt=exit_on_lock=1",
    "--setopt=*.skip_if_unavailable=1",
    "--setopt=gpu-bringup-*.skip_if_unavailable=0",
)
WITHOUT_REPOSITORIES = ("-q", *OPTIONS, "--disablerepo=*")  # what only concerns the host itself needs no network
# Runs its arguments from the second on ($1: the way out, where a kernel module does not compile); everything is printed on standard
# output, and the exit status is that of the last try.
RETRYING = (
    DKMS_FAILURE
    + rf"""
LC_ALL=C; export LC_ALL
way_out=$1; shift
{TRIES}why=$(dkms_failure "$stamp")
[ -z "$why" ] || echo "gpu-bringup: $why${{way_out:+; $way_out}}" >&2
exit $code
"""
)
# Takes its arguments, whole lines, out of the list of version locks, each with the comment that the plugin wrote above it.
LIFT = r"""
list=$(sed -n 's/^ *locklist *= *//p' /etc/dnf/plugins/versionlock.conf 2>/dev/null | tail -n 1)
[ -n "$list" ] && [ -e "$list" ] || exit 0
new=$(mktemp "$list.XXXXXX") || exit 1
trap 'rm -f "$new"' EXIT
printf '%s\n' "$@" | awk '
    NR == FNR {gone[$0]; next}
    /^$|^# Added lock on / {above = above $0 "\n"; next}
    {entry = $0; gsub(/^[ \t]+|[ \t]+$/, "", entry); if (!(entry in gone)) printf "%s%s\n", above, $0; above = ""}
    END {printf "%s", above}' - "$list" >"$new" || exit 1
chmod --reference="$list" "$new" && chown --reference="$list" "$new" && mv -f "$new" "$list"
"""
