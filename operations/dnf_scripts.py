"""The shell scripts around dnf: passing faults are tried again, failed builds named."""

from __future__ import annotations

from bringup.index import FINAL, PASSING
from facts.packages import DKMS_FAILURE
from operations.apt_scripts import RETRY_PAUSES_S

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
stamp=$(mktemp) && said=$(mktemp) || exit 1
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
why=$(dkms_failure "$stamp")
[ -z "$why" ] || echo "gpu-bringup: $why${{way_out:+; $way_out}}" >&2
exit $code
"""
)
