"""Which driver branch. The policy is design §3's: keep what works, else the newest long-term branch that is not brand-new."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from bringup import versions
from bringup.catalog import Branch, Catalog, Distro, Gpu
from bringup.policy import Refused
from bringup.policy.fit import Loaded
from bringup.policy.gpus import is_driver_unknown, lowest_version, named, refuse_unlike, unusable
from bringup.policy.images import named_problem
from bringup.policy.source import Source, present_branch
from bringup.settings import Settings
from bringup.survey import Survey

MATURE = timedelta(days=90)  # a long-term branch is chosen once its first release is this old


@dataclass(frozen=True)
class Choice:
    """What a branch is chosen by."""

    settings: Settings
    catalog: Catalog
    distro: Distro
    boards: tuple[Gpu, ...]
    source: Source
    arch: str
    today: date

    @property
    def where(self) -> str:
        return f"{self.distro.name}'s own archive" if self.source == "distro" else f"NVIDIA's repository for {self.distro.name}"

    def has(self, branch: Branch) -> bool:
        """Does the source have the branch, as far as is known?"""
        if self.source == "distro":
            return self.distro.own_driver(branch.number) is not None
        first = self.distro.first_branch
        return (first is None or branch.number >= first) and any(each.covers(branch.number) for each in self.distro.package_sets)

    def is_alive(self, branch: Branch) -> bool:
        return branch.is_supported(self.today) is not False

    def drives(self, branch: Branch) -> bool:
        return unusable(branch, self.boards, self.catalog) is None

    def image_problem(self, branch: Branch, version: str | None = None) -> str | None:
        """Why one of the images that are named cannot run with it, or with one version of it."""
        loaded = Loaded(branch, version or branch.newest)
        return named_problem(self.settings, self.catalog, loaded, self.boards, self.arch)

    def has_kind(self, branch: Branch) -> bool:
        kind = self.settings.kernel_module
        return kind == "auto" or self.catalog.module_rules.offers(branch.number, kind)

    @property
    def fitting(self) -> list[Branch]:
        """In support, in the source, and fit for GPUs, images and the kind of module that is asked for."""
        found = [each for each in self.catalog.branches if self.has(each) and self.drives(each) and self.is_alive(each)]
        return [each for each in found if self.image_problem(each) is None and self.has_kind(each)]

    @property
    def numbers(self) -> str:
        """The branches that fit, for people."""
        return ", ".join(f"{each.number} ({each.kind})" for each in self.fitting) or "none"


def choose_branch(survey: Survey, choice: Choice) -> tuple[int, str]:
    """(branch, what to ask for: the branch or an exact version). Raises Refused."""
    catalog, asked = choice.catalog, choice.settings.driver_branch
    if asked[0].isdigit():
        return named_branch(choice)
    unheard = [each for each in choice.boards if is_driver_unknown(each, catalog)]
    if unheard:
        reason = f"it is not known which driver is the first for {named(unheard)}"
        raise Refused("no-driver-for-gpu", reason, "set gpu_driver_branch to the one that its vendor names")
    fit = choice.fitting
    if not fit:
        raise nothing_fits(choice)
    present = present_branch(survey)
    if asked == "auto" and present:
        kept = next((each for each in fit if each.number == versions.branch_or_none(present)), None)
        if kept is not None:
            return kept.number, str(kept.number)
    kind = "production" if asked == "production" else "lts"
    age = MATURE if asked == "auto" else timedelta(0)
    old_enough = [each for each in fit if each.first and each.first + age <= choice.today]
    of_kind = [each for each in old_enough if each.kind == kind]
    if not of_kind and asked != "auto":
        raise Refused(
            "no-such-branch-kind", f"no {asked} branch fits this host", f"set gpu_driver_branch to one of {choice.numbers}"
        )
    best = max(of_kind or old_enough or fit, key=lambda each: (each.kind == "lts", each.kind == "production", each.number))
    return best.number, str(best.number)


def named_branch(choice: Choice) -> tuple[int, str]:
    """The branch or version that the user names, where it can be had and should. Raises Refused."""
    catalog, boards, asked = choice.catalog, choice.boards, choice.settings.driver_branch
    number = int(asked.split(".")[0])
    branch = catalog.branch(number)
    way = f"use one of {choice.numbers}" if choice.fitting else "set gpu_driver_branch to auto, which says what stands in the way"
    if branch is None:
        raise Refused("unknown-branch", f"there is no driver branch {number} ({asked} was asked for)", way)
    refuse_unlike(choice.settings, boards)
    problem = unusable(branch, boards, catalog)
    if problem:
        raise Refused("branch-not-for-gpu", f"{problem}, and {asked} was asked for", way)
    if not choice.has(branch):
        raise Refused("branch-not-in-source", f"{choice.where} has no branch {number}, and {asked} was asked for", way)
    if branch.is_supported(choice.today) is False and "end-of-life" not in choice.settings.accept:
        ended = f" since {branch.eol}" if branch.eol else ""
        raise Refused("end-of-life", f"driver branch {number} is past its end of life{ended}", way, "end-of-life")
    if "." in asked:
        _refuse_version(choice, branch)
    return number, asked


def _refuse_version(choice: Choice, branch: Branch) -> None:
    """An exact version that does not know a GPU of the host, has known holes, or is beyond what is known. Raises Refused."""
    asked, floor = choice.settings.driver_branch, choice.catalog.security_floor(branch.number)
    low = lowest_version(branch.number, choice.boards)
    if low and not versions.at_least(asked, low):
        raise Refused("branch-not-for-gpu", f"driver {asked} does not know {named(choice.boards)}", f"use {low} or newer")
    if floor and not versions.at_least(asked, floor) and "below-security-floor" not in choice.settings.accept:
        reason = f"driver {asked} has known security holes, which {floor} closes"
        raise Refused("below-security-floor", reason, f"use {floor} or newer", "below-security-floor")


def nothing_fits(choice: Choice) -> Refused:
    """Why no branch fits: the GPUs together, the source, age, an image or the kind of module; tried in that order."""
    catalog, boards = choice.catalog, choice.boards
    driving = [each for each in catalog.branches if choice.drives(each)]
    try:
        refuse_unlike(choice.settings, boards)
    except Refused as refused:
        return refused
    if not driving:
        for board in boards:
            if all(unusable(each, (board,), catalog) is not None for each in catalog.branches):
                return Refused("no-driver-for-gpu", f"no driver branch that is known drives {board.name}", "use another GPU")
        reason = f"no driver branch drives {named(boards)} together ({unusable(catalog.branches[-1], boards, catalog)})"
        return Refused("no-common-branch", reason, "put them into different hosts")
    alive = [each for each in driving if choice.is_alive(each)]
    if not alive:
        old = max(driving, key=lambda each: each.number)
        way = "use a newer GPU"
        if choice.has(old):
            way += f", or set gpu_driver_branch to {old.number} and add end-of-life to gpu_accept"
        return Refused(
            "no-driver-for-gpu", f"{named(boards)} can use only branches past their end of life (the last is {old.number})", way
        )
    had = [each for each in alive if choice.has(each)]
    if not had:
        return _not_in_source(choice, alive)
    if all(choice.image_problem(each) is not None for each in had):
        return Refused("image-not-for-host", str(choice.image_problem(had[-1])), "name another image in gpu_images, or auto")
    reason = f"none of the branches {', '.join(str(each.number) for each in had)} has the {choice.settings.kernel_module} kernel module"
    return Refused("no-such-module", reason, "set gpu_kernel_module to auto")


def _not_in_source(choice: Choice, alive: list[Branch]) -> Refused:
    """Branches drive the GPUs and are in support, and this source has none of them."""
    drive = ", ".join(str(each.number) for each in alive)
    boards, own = (
        named(choice.boards),
        [each for each in choice.distro.own_drivers if each.branch in {one.number for one in alive}],
    )
    if choice.source == "distro":
        have = ", ".join(each.version for each in choice.distro.own_drivers) or "none"
        reason = f"{choice.where} has driver {have}, and {boards} needs one of the branches {drive}"
        return Refused("distro-driver-too-old", reason, "set gpu_driver_source to nvidia")
    way = f"set gpu_driver_source to distro (it has {own[-1].version})" if own else "use another distribution for this GPU"
    return Refused("no-driver-for-gpu", f"{boards} needs one of the branches {drive}, and {choice.where} has none of them", way)
