# shellcheck shell=sh
# dkms_failure [FILE]: what stopped the newest build of a kernel module that failed (since FILE was written), in one line; nothing where
# none did. DKMS leaves the log of a failed build in the module's build folder, and those of good ones elsewhere.
dkms_failure() {
    log=$(find /var/lib/dkms -path '*/build/make.log' ${1:+-newer "$1"} -exec ls -t {} + 2>/dev/null | head -n 1)
    [ -n "$log" ] || return 0
    module=${log#/var/lib/dkms/}
    # A compiler's own line tells most; then what else ends a build, and only then the make that was told so. A bare "error" is in
    # compiler options too (-Werror=...).
    awk -v module="${module%/build/make.log}" -v log_file="$log" '
        /make\.log for / && !kernel {kernel = $0; sub(/.* for kernel:? */, "", kernel); sub(/ .*/, "", kernel)}
        !compiler && /^[^ ]+:[0-9]+:([0-9]+:)? (fatal )?error: / {compiler = $0; sub(/^[^ ]*\/build\//, "", compiler)}
        !other && /(^|[^a-z_=-])error: |^ERROR: |No space left on device|: not found$|command not found|\*\*\* .*(check|Bailing out)/ {other = $0}
        !make && /No rule to make|Error [0-9]/ {make = $0}
        END {
            why = compiler ? compiler : other ? other : make ? make : "see " log_file
            gsub(/^[ \t]+|[ \t]+$/, "", why)
            printf "DKMS could not build %s%s: %s\n", module, kernel ? " for kernel " kernel : "", substr(why, 1, 200)
        }' "$log"
}
