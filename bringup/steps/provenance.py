"""What this project did to a host, kept on the host: /etc/gpu-bringup/provenance.json."""

from __future__ import annotations

import json
from typing import Any

from bringup import __version__
from bringup.references import familiar
from bringup.steps import Change, edited
from bringup.steps.images import present, warm_name
from bringup.steps.packages import PREDICTED
from bringup.survey import Survey, installed, known, loaded_version
from bringup.target import Target

PATH = "/etc/gpu-bringup/provenance.json"
INSTALLED = (
    "/etc/gpu-bringup/installed"  # names of packages that were not there before us, one a line, written before they are installed
)
HELD = "/etc/gpu-bringup/held"  # packages that we held, likewise
PULLED = "/etc/gpu-bringup/pulled"  # references of images, likewise
DISABLED = "/etc/gpu-bringup/disabled"  # source files that we disabled, likewise
SCHEMA = 1


def current(survey: Survey) -> dict[str, Any]:
    """What the host's file says; {} where there is none, or none that can be read."""
    try:
        value = json.loads(known(survey["provenance"]) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def wanted(survey: Survey, target: Target) -> dict[str, Any]:
    """The file's content but for its time. `proof_image` and `injection` are what facts.verification takes when asked alone."""
    ours = [*(target.driver.packages if target.driver else ()), *(target.toolkit.packages if target.toolkit else ())]
    repositories = [
        each for each in (target.driver and target.driver.repository, target.toolkit and target.toolkit.repository) if each
    ]
    return {
        "schema": SCHEMA,
        "version": __version__,
        "packages": {each: installed(survey, each) for each in sorted(ours)},
        "installed": sorted(set(survey["packages"]["ours"])),
        "disabled": sorted(set(survey["packages"]["disabled"])),
        "repositories": {each.sources_file: each.url for each in repositories},
        "keyrings": sorted(each.keyring for each in repositories),
        **({"stream": target.driver.stream} if target.driver and target.driver.stream else {}),
        "driver": loaded_version(survey),
        "docker_options": dict(target.docker.options),
        "injection": target.docker.injection,
        "images": list(target.images),
        "pulled": sorted(each for each in survey["docker"]["pulled"] if familiar(each) in present(survey)),
        "warm_images": {each: warm_name(each) for each in target.images if target.pulling.prewarm == "image"},
        "proof_image": target.images[0] if target.images else None,
        "gpus": target.expected_gpus,
        "settings": dict(target.settings),
    }


def provenance(survey: Survey, target: Target) -> Change | None:
    """Rewritten only when something but its time (and the revision that wrote it) differs."""
    now = {key: value for key, value in current(survey).items() if key not in ("time", "revision")}
    new = json.loads(json.dumps(wanted(survey, target)))
    if now == new:
        return None
    after = edited(survey)
    text_ = json.dumps(new)
    after["provenance"] = text_
    differing = sorted(key for key in {*now, *new} if now.get(key) != new.get(key))
    why = f"{PATH} is not there" if not now else f"{PATH} differs in {', '.join(differing)}"
    if PREDICTED in text_:
        why += " (versions: from the repository's index)"
    return Change(why, "write it", after)


def text(content: dict[str, Any], time: str, revision: str) -> str:
    """One key a line at the top level, so that sh can read single values of it."""
    return json.dumps({**content, "time": time, "revision": revision}, indent=2, sort_keys=True) + "\n"
