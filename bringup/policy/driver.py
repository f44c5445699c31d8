"""Which driver: its source, branch, kind of module and packages, put together; or one that is there, adopted as it is."""

from __future__ import annotations

import re
from datetime import date

from bringup import versions
from bringup.catalog import Catalog, Distro, Gpu
from bringup.catalog.distros import Packages
from bringup.policy import Refused
from bringup.policy.branch import Choice, choose_branch
from bringup.policy.gpus import Kind, choose_kind, lowest_version, unusable
from bringup.policy.repositories import repository
from bringup.policy.source import Present, Source, choose_source, is_adopted, present_source
from bringup.settings import Settings
from bringup.survey import Survey, gpus, installed_kind, known, loaded_version, module_kind, nvswitches
from bringup.target import Driver

TOOLS = ("nvidia-modprobe", "nvidia-persistenced")
HGX_GPUS = 8  # the switches of NVLink 5 are no PCI functions: a host that sees a whole board is taken for the one that manages it


def choose_driver(
    survey: Survey, settings: Settings, catalog: Catalog, distro: Distro, boards: tuple[Gpu, ...], today: date
) -> Driver:
    """Raises Refused."""
    present = present_source(survey, catalog, distro)
    if is_adopted(survey, settings, present):
        return adopted(survey, settings, catalog, distro, boards, today)
    source = choose_source(survey, settings, distro, present)
    choice = Choice(settings, catalog, distro, boards, source, survey["arch"], today)
    branch, wanted = choose_branch(survey, choice)
    stays = versions.branch_or_none(loaded_version(survey)) == branch
    runs = (installed_kind(survey) or module_kind(survey)) if stays else None
    kind = choose_kind(settings, catalog, boards, branch, runs)
    other: Kind = "proprietary" if kind == "open" else "open"
    has_other = _offers_kind(choice, branch, other, survey["kernel"])
    if settings.kernel_module == "auto" and has_other and not _offers_kind(choice, branch, kind, survey["kernel"]):
        kind, other, has_other = other, kind, False
    signed = is_signed(distro, source, branch)
    _refuse_secure_boot(survey, distro, present, signed=signed)
    packages, services = _packages(survey, distro, boards, source, branch, kind)
    ours = distro.packages(branch, kind) if source == "nvidia" else None
    return Driver(
        source=source,
        wanted=wanted,
        kind=kind,
        packages=packages,
        headers=() if signed else _headers(survey, distro),
        repository=repository(settings, catalog, "nvidia-driver", distro, survey["arch"]) if source == "nvidia" else None,
        services=services,
        hold=settings.hold_packages != "none",
        hold_kernel=settings.hold_packages == "driver+kernel",
        lowest=lowest_version(branch, boards),
        floor=catalog.security_floor(branch) if "." not in wanted else None,
        origin=distro.name.split(" ")[0] if source == "distro" and distro.family == "apt" else None,
        unwanted=_unwanted(distro, source, branch, other, survey["kernel"], packages),
        way_out=_way_out(choice, branch, other if has_other else None),
        stream=ours.module_stream if ours else None,
        others=_others(distro, source, packages, ours),
        extra_repositories=distro.extra_repositories,
    )


def adopted(survey: Survey, settings: Settings, catalog: Catalog, distro: Distro, boards: tuple[Gpu, ...], today: date) -> Driver:
    """The driver that runs, as it is; refused where it does not serve. Only a wish keeps one past its end of life. Raises Refused."""
    loaded, wish = loaded_version(survey), settings.driver_source == "preinstalled"
    if loaded is None:
        raise Refused("no-driver", "gpu_driver_source is preinstalled and no driver is loaded", "load it, or set it to auto")
    number, asked = versions.branch_or_none(loaded), settings.driver_branch
    if asked[0].isdigit() and not versions.matches(loaded, asked):
        reason = f"gpu_driver_source is preinstalled with driver {loaded}, and gpu_driver_branch is {asked}"
        raise Refused("other-branch", reason, "set gpu_driver_branch to auto, or gpu_driver_source to nvidia")
    branch = catalog.branch(number) if number is not None else None
    if branch is not None:
        problem = unusable(branch, boards, catalog)
        if problem is not None:
            raise Refused("branch-not-for-gpu", f"{problem}, and {loaded} is loaded", "set gpu_driver_source to nvidia")
        if branch.is_supported(today) is False and not wish:
            reason = f"driver {loaded}, which is not ours to change, is past its end of life"
            way = "set gpu_driver_source to preinstalled to keep it, or to nvidia to replace it"
            raise Refused("end-of-life", reason, way)
        choice = Choice(settings, catalog, distro, boards, "nvidia", survey["arch"], today)
        image = choice.image_problem(branch, loaded)
        if image is not None:
            raise Refused("image-not-for-host", f"{image}, and {loaded} is loaded", "name another image in gpu_images, or auto")
    return Driver("preinstalled", loaded, module_kind(survey) or "open", (), (), None, (), hold=False)


def _others(distro: Distro, source: Source, packages: tuple[str, ...], ours: Packages | None) -> tuple[str, ...]:
    """Those of the packages that have a version of their own. A distribution builds the tools apart: Debian 13 has nvidia-modprobe 570
    beside 550."""
    apart = {*(ours.nvlsm if ours else ()), *distro.extra_packages, *(TOOLS if source == "distro" else ())}
    return tuple(each for each in packages if each in apart)


def _unwanted(
    distro: Distro, source: Source, branch: int, other: Kind, kernel: str, packages: tuple[str, ...]
) -> tuple[str, ...]:
    """Of the other kind of module. NVIDIA's conflict with each other, so that apt removes them itself."""
    own = distro.own_driver(branch) if source == "distro" else None
    return tuple(each for each in own.packages(other, kernel) if each not in packages) if own else ()


def _offers_kind(choice: Choice, branch: int, kind: Kind, kernel: str) -> bool:
    """Does the source have this kind of module, and can all GPUs use it?"""
    unfit = "proprietary-only" if kind == "open" else "open-only"
    if any(each.kernel_module == unfit for each in choice.boards) or not choice.catalog.module_rules.offers(branch, kind):
        return False
    if choice.source == "distro":
        own = choice.distro.own_driver(branch)
        return own is not None and bool(own.packages(kind, kernel))
    return choice.distro.packages(branch, kind) is not None


def _way_out(choice: Choice, branch: int, other: Kind | None) -> str:
    """What to set where the module does not compile for the host's kernel: mostly the kernel is newer than the driver."""
    ways = [f"set gpu_kernel_module to {other}"] if other and choice.settings.kernel_module != other else []
    newer = [str(each.number) for each in choice.fitting if each.number > branch]
    if newer:
        ways.append(f"set gpu_driver_branch to {' or '.join(newer)}, which may know the kernel")
    if choice.source == "distro":
        ways.append("set gpu_driver_source to nvidia")
    return ", or ".join(ways) or "boot an older kernel of the distribution"


def is_signed(distro: Distro, source: Source, branch: int) -> bool:
    """Do its modules come built and signed, so that nothing is compiled on the host?"""
    own = distro.own_driver(branch) if source == "distro" else None
    return own is not None and own.signed


def _refuse_secure_boot(survey: Survey, distro: Distro, present: Present | None, *, signed: bool) -> None:
    """A module that is loaded proves that the firmware knows its key."""
    proven = present == "nvidia" and loaded_version(survey) is not None
    if known(survey["secure_boot"]) is not True or signed or proven:
        return
    own = [str(each.branch) for each in distro.own_drivers if each.signed]
    way = f"set gpu_driver_source to distro (signed modules of {' and '.join(own)}), or " if own else ""
    reason = "Secure Boot is on, and a module that is built on the host is not signed by a key that the firmware knows"
    raise Refused(
        "secure-boot", reason, f"{way}switch Secure Boot off in the machine's settings, or enrol the key at its console"
    )


def _headers(survey: Survey, distro: Distro) -> tuple[str, ...]:
    """Packages with what the module is built against, for this kernel and the next, and the compiler that built it. Raises Refused."""
    kernel = survey["kernel"]
    headers = distro.headers(kernel)
    if headers is None:
        if any(each["release"] == kernel and each["headers"] for each in survey["kernels"]):
            return ()
        reason = f"kernel {kernel} is none of {distro.name}'s, and its headers are not there"
        raise Refused("no-headers", reason, "install its headers, or boot the distribution's own kernel")
    # Ubuntu's newer kernels for an older release are built by another gcc than its default one
    compiler = re.search(r"\b(?:x86_64|aarch64)-linux-gnu-(gcc-\d+) \(Ubuntu", known(survey["kernel_built"]) or "")
    return (headers.running, *((headers.meta,) if headers.meta else ()), *((compiler.group(1),) if compiler else ()))


def _packages(
    survey: Survey, distro: Distro, boards: tuple[Gpu, ...], source: Source, branch: int, kind: Kind
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(packages, services). A fabric is this host's to manage where it sees the switches, or a whole board of NVLink 5."""
    switched = any(each.fabric_manager == "with-nvswitch" for each in boards) and bool(nvswitches(survey))
    nvlink5 = any(each.fabric_manager == "with-nvlink5" for each in boards) and len(gpus(survey)) >= HGX_GPUS
    services = ("nvidia-persistenced.service", *(("nvidia-fabricmanager.service",) if switched or nvlink5 else ()))
    nvidia = "set gpu_driver_source to nvidia"
    if source == "distro":
        own = distro.own_driver(branch)
        names = own.packages(kind, survey["kernel"]) if own else ()
        if not own or not names:
            reason = f"{distro.name}'s own archive has no {kind} module of branch {branch} for kernel {survey['kernel']}"
            raise Refused("no-packages", reason, nvidia)
        if len(services) > 1 and not own.fabric_manager:
            raise Refused(
                "no-fabric-manager", f"{distro.name}'s own archive has no fabric manager, which these GPUs need", nvidia
            )
        if nvlink5:
            raise Refused("no-fabric-manager", f"{distro.name}'s own archive has no nvlsm, which these GPUs need", nvidia)
        fabric = own.fabric_manager if switched else ()
        return (*names, *own.persistence, *fabric, *distro.extra_packages), services
    ours = distro.packages(branch, kind)
    if ours is None:
        raise Refused("no-packages", f"NVIDIA has no {kind} packages of branch {branch} for {distro.name}", "name another branch")
    fabric = ours.fabric_manager if switched or nvlink5 else ()
    nvlsm = ours.nvlsm if nvlink5 else ()
    imex = (
        ours.imex if any(each.fabric_manager == "imex" for each in boards) else ()
    )  # its service needs the rack's list of nodes
    return tuple(dict.fromkeys((*ours.driver, *ours.persistence, *fabric, *nvlsm, *imex, *distro.extra_packages))), services
