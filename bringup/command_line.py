"""The kernel's command line: what keeps a host from cgroup v2, what old guides left, and how a boot loader's own tool changes it."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNIFIED = "systemd.unified_cgroup_hierarchy=1"
# words that old guides tell people to add, each with what it does
KEEPS_V1 = re.compile(r"systemd\.unified_cgroup_hierarchy(=(0|no|false|off|n))|systemd\.legacy_systemd_cgroup_controller(=\w+)?")
WITHOUT_EFFECT = re.compile(r"cgroup_enable=memory|swapaccount(=\w+)?")
GRUB_FILE = "/etc/default/grub.d/zz-gpu-bringup.cfg"  # the last of its folder, which update-grub reads after /etc/default/grub


def keeps_v1(words: Iterable[str]) -> list[str]:
    return [each for each in words if KEEPS_V1.fullmatch(each)]


def workarounds(words: Iterable[str]) -> list[str]:
    """Words of old guides, those that keep cgroup v1 among them."""
    return [each for each in words if KEEPS_V1.fullmatch(each) or WITHOUT_EFFECT.fullmatch(each)]


def grub_text(add: Iterable[str], remove: Iterable[str]) -> str:
    """A file that changes what others have set when grub's configuration is made: theirs stay as they are."""
    added = "".join(f" {each}" for each in add)
    return f"""\
# written by gpu-bringup: words of the kernel's command line
gpu_bringup_without() {{
    (set -f; out=
    for word in $1; do case " {" ".join(remove)} " in *" $word "*) ;; *) out="$out $word" ;; esac; done
    printf '%s' "${{out# }}")
}}
GRUB_CMDLINE_LINUX="$(gpu_bringup_without "$GRUB_CMDLINE_LINUX"){added}"
GRUB_CMDLINE_LINUX_DEFAULT="$(gpu_bringup_without "$GRUB_CMDLINE_LINUX_DEFAULT")"
"""
