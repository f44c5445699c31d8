"""The user's choices: flat group-data keys that begin with `gpu_`, read once into a frozen, validated Settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from bringup.catalog.images import Image
from bringup.daemon_json import wrong_type
from bringup.dockerd import KEYS as KEYS_OF_DOCKERD
from bringup.errors import UserError, nearest, wrong
from bringup.references import is_reference
from bringup.settings_images import Login, Prewarm, archives, insecure_registries, logins, mirrors, own_images

PREFIX = "gpu_"

DriverSource = Literal["auto", "nvidia", "distro", "preinstalled"]
KernelModule = Literal["auto", "open", "proprietary"]
Hold = Literal["driver", "driver+kernel", "none"]
Reboot = Literal["if-idle", "never", "always"]
DockerSource = Literal["auto", "docker", "distro", "existing"]
Runtime = Literal["nvidia", "runc"]
Injection = Literal["auto", "cdi", "runtime"]
Verify = Literal["auto", "quick", "standard", "full", "off"]

ACCEPTABLE = (
    "end-of-life",
    "below-security-floor",
    "container-host",
    "stop-containers",
    "change-source",
    "untried-distribution",
    "remove-runfile",
    "cluster-node",
)

BRANCH = re.compile(r"auto|lts|production|\d{3}|\d{3}\.\d{2,3}(\.\d{2})?")
FINGERPRINT = re.compile(r"[0-9A-F]{40}")
REPOSITORY_NAMES = ("nvidia-driver", "nvidia-toolkit", "docker")


@dataclass(frozen=True)
class RepositoryOverride:
    """Another base address for one of our package sources (mirror, air gap, lab).

    `url` and `key_url` may hold `{distro}` (debian12) and `{arch}` (x86_64); `fingerprint` is the signing key's, 40 hex digits.
    Without the last two, the key and the fingerprint of the original source are used.
    """

    url: str
    key_url: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True)
class Settings:
    """What the user chose, never what a host is. Design §3 has the table; README repeats what people need."""

    driver_source: DriverSource = "auto"
    driver_branch: str = "auto"
    kernel_module: KernelModule = "auto"
    hold_packages: Hold = "driver"
    clean_command_line: bool = False  # take old workarounds off the kernel's
    reboot: Reboot = "if-idle"
    reboot_timeout: int = 1800  # seconds; 8-GPU machines POST for 10-20 minutes
    lock_timeout: int = 600  # seconds
    docker_source: DockerSource = "auto"
    docker_options: Mapping[str, Any] = field(default_factory=dict)
    docker_users: tuple[str, ...] = ()
    default_runtime: Runtime = "nvidia"
    injection: Injection = "auto"
    memlock: int | Literal["unlimited"] = "unlimited"  # bytes
    open_files: int | None = None  # in containers; None: Docker's own, but for those that give too few
    shm_size: str = "8g"
    images: tuple[str, ...] = ("auto",)
    images_own: Mapping[str, Image] = field(default_factory=dict)
    images_lock: str = "images.lock.yml"  # relative to the working directory
    images_refresh: bool = False
    images_archive: Mapping[str, str] = field(default_factory=dict)
    images_prune: bool = False
    image_prewarm: Prewarm = "report"
    pull_parallel: int = 8  # hosts
    registry_login: Mapping[str, Login] = field(default_factory=dict)
    insecure_registries: tuple[str, ...] = ()
    registry_mirrors: tuple[str, ...] = ()
    repositories: Mapping[str, RepositoryOverride] = field(default_factory=dict)
    expected_count: int | None = None
    expected_model: str | None = None
    verify: Verify = "auto"
    require_floors: bool = False
    accept: frozenset[str] = frozenset()
    reports: str = "reports"
    textfile: str | None = None  # folder on the host for node_exporter's textfile collector; None: no metrics are written


KEYS = tuple(PREFIX + each.name for each in fields(Settings))


def read_settings(data: Mapping[str, object]) -> Settings:
    """Group data of one host (all of it; only keys that begin with `gpu_` are looked at) -> Settings.

    Raises UserError for an unknown key, a wrong type and a value that is not one of the choices.
    """
    ours = {key: value for key, value in data.items() if key.startswith(PREFIX)}
    for key in ours:
        if key not in KEYS:
            raise UserError(f"unknown setting {key}{nearest(key, KEYS)} (all settings: {', '.join(KEYS)})")
    values: dict[str, Any] = {}
    for key, value in ours.items():
        values[key.removeprefix(PREFIX)] = READERS[key.removeprefix(PREFIX)](key, value)
    return Settings(**values)


def _choice(*choices: str) -> Any:
    def read(key: str, value: object) -> str:
        if value not in choices:
            hint = nearest(str(value), choices)
            raise wrong(key, value, f"it must be one of {', '.join(choices)}{hint}")
        return str(value)

    return read


def _branch(key: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong(key, value, "it must be auto, lts, production, a branch such as 580 or a version such as 580.159.04")
    if isinstance(value, float):  # --data gpu_driver_branch=580.10 arrives as 580.1
        raise wrong(key, value, "a version must be given as text: put quotes around it in the inventory")
    if not BRANCH.fullmatch(str(value)):
        raise wrong(key, value, "it must be auto, lts, production, a branch such as 580 or a version such as 580.159.04")
    return str(value)


def _seconds(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong(key, value, "it must be a whole number of seconds, 1 or more")
    return value


def _count(key: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong(key, value, "it must be a whole number of GPUs, 0 or more")
    return value


def _parallel(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong(key, value, "it must be a whole number of hosts, 1 or more")
    return value


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong(key, value, "it must be true or false")
    return value


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(key, value, "it must be a text")
    return value


def _optional_text(key: str, value: object) -> str | None:
    return None if value is None else _text(key, value)


def _folder(key: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"/[^\0\n]+", value):
        raise wrong(key, value, "it must be the absolute path of a folder on the host")
    return value


def _size(key: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[1-9]\d*[kmg]?", value):
        raise wrong(key, value, "it must be a size such as 8g or 512m")
    return value


def _memlock(key: str, value: object) -> int | str:
    if value == "unlimited":
        return "unlimited"
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong(key, value, "it must be unlimited or a whole number of bytes")
    return value


def _open_files(key: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1024 <= value <= 1 << 30:
        raise wrong(key, value, "it must be a whole number of files, from 1024 to 1073741824")
    return value


def _texts(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise wrong(key, value, 'it must be a list of texts, such as ["a", "b"]')
    return tuple(value)


def _images(key: str, value: object) -> tuple[str, ...]:
    found = _texts(key, value)
    if not found:
        raise wrong(key, value, "it must name at least one image, such as auto")
    for each in found:
        if not is_reference(each):
            raise wrong(key, each, "it is no name of an image: auto, a name of the catalog, or host/path:tag in lower case")
    return found


def _accept(key: str, value: object) -> frozenset[str]:
    for each in _texts(key, value):
        if each not in ACCEPTABLE:
            raise wrong(key, each, f"it must be one of {', '.join(ACCEPTABLE)}{nearest(each, ACCEPTABLE)}")
    return frozenset(_texts(key, value))


def _mapping(key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise wrong(key, value, "it must be a mapping from names to values")
    return dict(value)


def _options(key: str, value: object) -> Mapping[str, Any]:
    found = _mapping(key, value)
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise wrong(key, value, f"it must hold what JSON can hold ({error})") from None
    for each in found:
        if each not in KEYS_OF_DOCKERD:
            raise wrong(key, each, f"dockerd has no such option{nearest(each, KEYS_OF_DOCKERD)}")
    refused = wrong_type(found, key)
    if refused:
        raise UserError(str(refused))
    return found


def _repositories(key: str, value: object) -> Mapping[str, RepositoryOverride]:
    found: dict[str, RepositoryOverride] = {}
    for name, fields_ in _mapping(key, value).items():
        if name not in REPOSITORY_NAMES:
            raise wrong(key, name, f"the sources are {', '.join(REPOSITORY_NAMES)}{nearest(name, REPOSITORY_NAMES)}")
        where = f"{key}[{name!r}]"
        given = _mapping(where, fields_)
        for each in given:
            if each not in ("url", "key_url", "fingerprint"):
                raise wrong(where, each, "it may hold url, key_url and fingerprint")
        if "url" not in given:
            raise wrong(where, fields_, "it needs a url")
        for each in ("url", "key_url"):
            if each in given and not re.fullmatch(r"(https?|file)://\S+", str(given[each])):
                raise wrong(f"{where}[{each!r}]", given[each], "it must begin with http://, https:// or file://, without spaces")
            if each in given and re.match(r"\w+://[^/]*@", str(given[each])):  # it would end up in reports, and in a file for all
                secret = re.sub(r"//[^/]*@", "//***@", str(given[each]))
                raise wrong(
                    f"{where}[{each!r}]", secret, "it must be without user and password: apt has them in /etc/apt/auth.conf.d"
                )
        fingerprint = given.get("fingerprint")
        if fingerprint is not None and not FINGERPRINT.fullmatch(str(fingerprint)):
            raise wrong(f"{where}['fingerprint']", fingerprint, "it must be 40 hexadecimal digits, in upper case")
        found[name] = RepositoryOverride(str(given["url"]), given.get("key_url"), fingerprint)
    return found


READERS: Mapping[str, Any] = {
    "driver_source": _choice(*get_args(DriverSource)),
    "driver_branch": _branch,
    "kernel_module": _choice(*get_args(KernelModule)),
    "hold_packages": _choice(*get_args(Hold)),
    "clean_command_line": _flag,
    "reboot": _choice(*get_args(Reboot)),
    "reboot_timeout": _seconds,
    "lock_timeout": _seconds,
    "docker_source": _choice(*get_args(DockerSource)),
    "docker_options": _options,
    "docker_users": _texts,
    "default_runtime": _choice(*get_args(Runtime)),
    "injection": _choice(*get_args(Injection)),
    "memlock": _memlock,
    "open_files": _open_files,
    "shm_size": _size,
    "images": _images,
    "images_own": own_images,
    "images_lock": _text,
    "images_refresh": _flag,
    "images_archive": archives,
    "images_prune": _flag,
    "image_prewarm": _choice(*get_args(Prewarm)),
    "pull_parallel": _parallel,
    "registry_login": logins,
    "insecure_registries": insecure_registries,
    "registry_mirrors": mirrors,
    "repositories": _repositories,
    "expected_count": _count,
    "expected_model": _optional_text,
    "verify": _choice(*get_args(Verify)),
    "require_floors": _flag,
    "accept": _accept,
    "reports": _text,
    "textfile": _folder,
}
