"""The toolkit's own file: single keys that old guides and other distributions' copies leave behind. Everything else in it stays."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from bringup.errors import HostError
from bringup.steps import Change, edited
from bringup.survey import Survey, known
from bringup.target import Target

PATH = "/etc/nvidia-container-runtime/config.toml"
NO_CGROUPS = "nvidia-container-cli.no-cgroups"
LDCONFIG = "nvidia-container-cli.ldconfig"
MODE = "nvidia-container-runtime.mode"


def toolkit_config(survey: Survey, target: Target) -> Change | None:
    """Raises HostError where the file is no TOML: then no container gets a GPU."""
    if target.toolkit is None:
        return None
    found = wrong_keys(survey)
    if not found:
        return None
    after = edited(survey)
    text = known(survey["toolkit_config"]) or ""
    for key, (value, _) in found.items():
        text = _with(text, key, value)
    after["toolkit_config"] = text
    return Change("; ".join(why for _, why in found.values()), f"set {', '.join(found)} in {PATH}", after)


def wrong_keys(survey: Survey) -> dict[str, tuple[str, str]]:
    """key -> (the value that it shall have, as nvidia-ctk takes it; why). Raises HostError."""
    config = _parsed(known(survey["toolkit_config"]) or "")
    found: dict[str, tuple[str, str]] = {}
    if _at(config, NO_CGROUPS) is True and not survey["rootless"]:
        found[NO_CGROUPS] = (
            "false",
            "no-cgroups = true is left from a rootless guide: by the old hook, containers get no GPU device",
        )
    if _at(config, MODE) == "legacy":
        found[MODE] = ("auto", "mode legacy is the old hook: containers lose their GPUs at a daemon-reload")
    ldconfig = _at(config, LDCONFIG)
    there = survey["ldconfig"]
    if (
        isinstance(ldconfig, str)
        and there
        and re.fullmatch(r"@?/sbin/ldconfig(\.real)?", ldconfig)
        and ldconfig.lstrip("@") not in there
    ):
        best = next((each for each in there if each.endswith(".real")), there[0])
        found[LDCONFIG] = (f"@{best}", f"ldconfig is {ldconfig}, which is not there")
    return found


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HostError(f"{PATH} is not TOML ({error}): mend it, or move it away and run this again") from None


def _at(config: dict[str, Any], key: str) -> object:
    section, name = key.split(".")
    found = config.get(section)
    return found.get(name) if isinstance(found, dict) else None


def _with(text: str, key: str, value: str) -> str:
    """As a survey would show the file afterwards. The file itself is changed by nvidia-ctk alone."""
    section, name = key.split(".")
    shown = value if value in ("true", "false") else f'"{value}"'
    pattern = rf"(^\[{re.escape(section)}\][^\[]*?^\s*{re.escape(name)}\s*=\s*)[^\n]*"
    return re.sub(pattern, lambda match: match[1] + shown, text, count=1, flags=re.M | re.S)
