"""Which driver, from where. The policy is design §3's: keep what works, else the newest long-term branch that is not brand-new."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Literal

from bringup import versions
from bringup.catalog import Branch, Catalog, Distro, Gpu
from bringup.policy import Refused
from bringup.policy.gpus import choose_kind, unusable
from bringup.policy.images import image_problem, named_images
from bringup.policy.repositories import repository
from bringup.settings import Settings
from bringup.survey import Survey, known, loaded_version, module_kind, nvswitches
from bringup.target import Driver

MATURE = timedelta(days=90)  # a long-term branch is chosen once its first release is this old
Source = Literal["nvidia", "distro"]


def choose_driver(
    survey: Survey, settings: Settings, catalog: Catalog, distro: Distro, boards: tuple[Gpu, ...], today: date
) -> Driver:
    """Raises Refused."""
    loaded = loaded_version(survey)
    present = present_source(survey, distro)
    named = settings.driver_branch != "auto"
    if settings.driver_source == "preinstalled" or (
        settings.driver_source == "auto" and loaded and present is None and not named
    ):
        if loaded is None:
            raise Refused("no-driver", "gpu_driver_source is preinstalled and no driver is loaded", "load it, or use auto")
        return Driver("preinstalled", loaded, module_kind(survey) or "open", (), (), None, (), hold=False)
    if survey["driver"]["runfile"]:
        reason = "the driver was installed by a .run file (/usr/bin/nvidia-uninstall is there): packages would land beside it"
        raise Refused("runfile", reason, "run nvidia-uninstall first, or set gpu_driver_source to preinstalled")
    source = choose_source(survey, settings, distro, present)
    branch, wanted = choose_branch(survey, settings, catalog, distro, boards, source, today)
    kind = choose_kind(settings, catalog, boards, branch)
    _refuse_secure_boot(survey, distro, source, branch)
    headers = distro.headers(survey["kernel"])
    has_headers = any(each["release"] == survey["kernel"] and each["headers"] for each in survey["kernels"])
    if headers is None and not has_headers:
        reason = f"kernel {survey['kernel']} is none of {distro.name}'s, and its headers are not there"
        raise Refused("no-headers", reason, "install its headers, or boot the distribution's own kernel")
    packages, fabric = _packages(survey, distro, boards, source, branch, kind)
    return Driver(
        source=source,
        wanted=wanted,
        kind=kind,
        packages=packages,
        headers=(headers.running, *((headers.meta,) if headers.meta else ())) if headers else (),
        repository=repository(settings, catalog, "nvidia-driver", distro, survey["arch"]) if source == "nvidia" else None,
        services=("nvidia-persistenced.service", *(("nvidia-fabricmanager.service",) if fabric else ())),
        hold=settings.hold_packages != "none",
        hold_kernel=settings.hold_packages == "driver+kernel",
    )


def _packages(
    survey: Survey, distro: Distro, boards: tuple[Gpu, ...], source: Source, branch: int, kind: Literal["open", "proprietary"]
) -> tuple[tuple[str, ...], bool]:
    """(all packages, whether a fabric manager is among them). A fabric is this host's to manage where it sees the switches."""
    has_fabric = bool(nvswitches(survey)) and any(each.needs_fabric_manager for each in boards)
    if source == "distro":
        own = distro.own_driver(branch)
        names = own.packages(kind, survey["kernel"]) if own else ()
        if not own or not names:
            raise Refused(
                "no-packages",
                f"{distro.name}'s archive has no {kind} module of branch {branch}",
                "set gpu_driver_source to nvidia",
            )
        if has_fabric and not own.fabric_manager:
            raise Refused(
                "no-fabric-manager", f"{distro.name}'s archive has no fabric manager", "set gpu_driver_source to nvidia"
            )
        return (*names, *own.persistence, *(own.fabric_manager if has_fabric else ())), has_fabric
    ours = distro.packages(branch, kind)
    if ours is None:
        raise Refused("no-packages", f"NVIDIA has no {kind} packages of branch {branch} for {distro.name}", "name another branch")
    fabric = ours.fabric_manager if has_fabric else ()
    nvlsm = ours.nvlsm if has_fabric and any(each.fabric_manager == "with-nvlink5" for each in boards) else ()
    imex = ours.imex if any("Grace" in each.architecture and "Blackwell" in each.architecture for each in boards) else ()
    return tuple(dict.fromkeys((*ours.driver, *ours.persistence, *fabric, *nvlsm, *imex))), has_fabric


def present_source(survey: Survey, distro: Distro) -> Source | None:
    """Where the packages that are installed came from; None where no package of either is (none, .run file, image)."""
    own = {
        name for each in distro.own_drivers for kind in ("open", "proprietary") for name in each.packages(kind, survey["kernel"])
    }
    nvidia = {name for branch in (470, 535, 570, 580, 590, 595, 620) for kind in ("open", "proprietary")
              if (names := distro.packages(branch, kind)) for name in names.driver}  # fmt: skip
    packages = survey["packages"]["installed"]
    there = {name for name, found in packages.items() if found["state"] != "config-files"}  # one half installed is to be finished
    return "nvidia" if there & (nvidia - own) else "distro" if there & own else None


def choose_source(survey: Survey, settings: Settings, distro: Distro, present: Source | None) -> Source:
    """Raises Refused for a change of source that the user did not accept: files of the two overwrite each other."""
    signed = any(each.signed for each in distro.own_drivers)
    if settings.driver_source == "auto":
        return present or ("distro" if known(survey["secure_boot"]) and signed else "nvidia")
    wanted: Source = "distro" if settings.driver_source == "distro" else "nvidia"
    if present not in (None, wanted) and "change-source" not in settings.accept:
        there = "the distribution" if present == "distro" else "NVIDIA's repository"
        reason = f"the driver on this host comes from {there}, and gpu_driver_source is {wanted}"
        raise Refused("change-source", reason, "set gpu_driver_source to auto", "change-source")
    return wanted


def _refuse_secure_boot(survey: Survey, distro: Distro, source: Source, branch: int) -> None:
    own = distro.own_driver(branch)
    if known(survey["secure_boot"]) is not True or (source == "distro" and own is not None and own.signed):
        return
    signed = [str(each.branch) for each in distro.own_drivers if each.signed]
    way = f"set gpu_driver_source to distro (signed modules of {', '.join(signed)}), or " if signed else ""
    reason = "Secure Boot is on, and a module that is built on the host is not signed by a key that the firmware knows"
    raise Refused(
        "secure-boot", reason, f"{way}switch Secure Boot off in the machine's settings, or enrol the key at its console"
    )


def choose_branch(
    survey: Survey, settings: Settings, catalog: Catalog, distro: Distro, boards: tuple[Gpu, ...], source: Source, today: date
) -> tuple[int, str]:
    """(branch, what to ask for: the branch or an exact version). Raises Refused."""
    asked = settings.driver_branch
    offered = [each for each in catalog.branches if _has(distro, source, each)]
    usable = [each for each in offered if unusable(each, boards) is None]
    alive = [each for each in usable if each.is_supported(today) is not False]
    if asked[0].isdigit():
        return _named_branch(asked, settings, catalog, boards, alive or usable, today)
    if not alive:
        raise _no_branch(catalog, distro, boards, source, offered, usable)
    images = named_images(settings, catalog)
    fit = [each for each in alive if all(image_problem(image, each, boards, survey["arch"]) is None for image in images)]
    if not fit:
        problem = next(filter(None, (image_problem(image, alive[-1], boards, survey["arch"]) for image in images)))
        raise Refused("image-not-for-host", problem, "name another image, or `auto`")
    loaded = loaded_version(survey)
    if asked == "auto" and loaded:
        kept = catalog.branch(versions.branch_of(loaded))
        if kept is not None and kept in fit:
            return kept.number, str(kept.number)
    kinds = {"auto": ("lts",), "lts": ("lts",), "production": ("production",)}[asked]
    age = MATURE if asked == "auto" else timedelta(0)
    choice = [each for each in fit if each.kind in kinds and each.first and each.first + age <= today]
    if not choice and asked != "auto":
        have = ", ".join(f"{each.number} ({each.kind})" for each in fit)
        raise Refused("no-such-branch-kind", f"no {asked} branch fits this host", f"branches that do: {have}")
    best = max(choice or fit, key=lambda each: (each.kind == "lts", each.kind == "production", each.number))
    return best.number, str(best.number)


def _has(distro: Distro, source: Source, branch: Branch) -> bool:
    """Does this source have the branch for this distribution, as far as is known?"""
    if source == "distro":
        return distro.own_driver(branch.number) is not None
    return distro.first_branch is None or branch.number >= distro.first_branch


def _no_branch(
    catalog: Catalog, distro: Distro, boards: tuple[Gpu, ...], source: Source, offered: list[Branch], usable: list[Branch]
) -> Refused:
    """Why nothing fits: the GPUs, each other, the archive, or age."""
    where = f"{distro.name}'s archive" if source == "distro" else "NVIDIA's repository"
    if usable:
        numbers = ", ".join(str(each.number) for each in usable)
        way = f"name branch {usable[-1].number} and add end-of-life to gpu_accept, or use a newer GPU"
        return Refused("no-driver-for-gpu", f"only branches past their end of life ({numbers}) drive these GPUs", way)
    if source == "distro" and offered:
        return Refused(
            "distro-driver-too-old",
            f"{unusable(offered[-1], boards)}; {where} has {distro.own_drivers[-1].version}",
            "set gpu_driver_source to nvidia",
        )
    for board in boards:
        if all(unusable(each, (board,)) is not None for each in offered):
            return Refused(
                "no-driver-for-gpu", f"{unusable(offered[-1], (board,))}, and {where} has none of those", "use a newer GPU"
            )
    names = ", ".join(sorted(each.name for each in boards))
    return Refused("no-common-branch", f"no driver branch drives all of {names}", "put them into different hosts")


def _named_branch(
    asked: str, settings: Settings, catalog: Catalog, boards: tuple[Gpu, ...], fit: list[Branch], today: date
) -> tuple[int, str]:
    branch = catalog.branch(int(asked.split(".")[0]))
    nearest = ", ".join(str(each.number) for each in fit) or "none"
    if branch is None:
        raise Refused("unknown-branch", f"there is no driver branch {asked}", f"branches for this host: {nearest}")
    problem = unusable(branch, boards)
    if problem:
        raise Refused("branch-not-for-gpu", f"{problem}; {asked} was asked for", f"branches for this host: {nearest}")
    if branch.is_supported(today) is False and "end-of-life" not in settings.accept:
        ended = f" since {branch.eol}" if branch.eol else ""
        raise Refused(
            "end-of-life", f"driver branch {branch.number} is past its end of life{ended}", f"use one of {nearest}", "end-of-life"
        )
    floor = catalog.security_floor(branch.number)
    if "." in asked:
        too_low = next(
            (low for board in boards if (low := board.min_driver_in(branch.number)) and not versions.at_least(asked, low)), None
        )
        if too_low:
            raise Refused("branch-not-for-gpu", f"driver {asked} does not know a GPU of this host", f"use {too_low} or newer")
        if floor and not versions.at_least(asked, floor) and "below-security-floor" not in settings.accept:
            raise Refused(
                "below-security-floor",
                f"driver {asked} has known security holes",
                f"use {floor} or newer",
                "below-security-floor",
            )
    return branch.number, asked
