"""What all scenarios share: phases that do nothing unless a scenario says otherwise, runs of pyinfra, and cases."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from .expect import Failed
from .lab import machine
from .lab.errors import LabError
from .lab.host import Host
from .lab.lab import Lab
from .pyinfra_run import CHECKOUT, LAB_INVENTORY, Run, Started
from .shared_lab import CONVERGE_S, SharedLab

PHASES = ("create", "prepare", "converge", "idempotence", "side_effect", "verify", "destroy")
GPU_HOST = "deploys/gpu_host.py"
PLAN = "deploys/plan.py"
VERIFY = "deploys/verify.py"

# An inventory that is the lab's, with further data for single hosts.
_INVENTORY = """\
import runpy

_hosts, _all = runpy.run_path({lab!r})["lab"]
_more = {more!r}
lab = ([(name, {{**data, **_more[name]}}) for name, data in _hosts if name in _more], _all)
"""


_lab_impossible = cache(machine.impossible)


class Scenario:
    """One scenario; a subclass writes the phases that it needs, and its docstring says in one line what it shows.

    Phases run in the order of PHASES. When one raises Failed or LabError the others are left out, and the next scenario begins.
    """

    tier: ClassVar[Literal["short", "all", "hardware"]] = "short"

    def __init__(self, name: str, labs: SharedLab, folder: Path) -> None:
        """folder: where the transcripts of this scenario lie."""
        self.name, self.labs, self.folder = name, labs, folder
        self.failures: list[str] = []
        """Of cases, in the phase that is running."""
        self.lab: Lab
        self._runs = 0

    @staticmethod
    def impossible() -> str | None:
        """Why this machine cannot run the scenario, in words that follow "since"; None when it can."""
        why = _lab_impossible()
        return None if why is None else f"this machine cannot hold the lab: {why}"

    def create(self) -> None:
        """The hosts: fresh ones."""
        self.lab = self.labs.fresh()

    def prepare(self) -> None: ...

    def converge(self) -> None: ...

    def idempotence(self) -> None: ...

    def side_effect(self) -> None: ...

    def verify(self) -> None: ...

    def destroy(self) -> None:
        """What the scenario has made outside of the shared hosts; these are brought back for the next one anyway."""

    @property
    def hosts(self) -> list[str]:
        return [host.name for host in self.lab.hosts]

    def host(self, name: str) -> Host:
        return self.lab.host(name)

    def start(self, what: str, *arguments: str, cwd: Path = CHECKOUT, environment: Mapping[str, str] | None = None) -> Started:
        """pyinfra in the background; `what` names its transcript."""
        self._runs += 1
        log = self.folder / f"{self._runs:02}-{what.replace(' ', '-').replace('/', '-')}.log"
        return Started(arguments, log, cwd, environment)

    def pyinfra(
        self,
        what: str,
        *arguments: str,
        timeout_s: float = CONVERGE_S,
        cwd: Path = CHECKOUT,
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        """A whole run of pyinfra."""
        return self.start(what, *arguments, cwd=cwd, environment=environment).wait(timeout_s)

    def deploy(
        self, what: str, deploy: str = GPU_HOST, *more: str, inventory: str | Path = LAB_INVENTORY, timeout_s: float = CONVERGE_S
    ) -> Run:
        """A deploy on the lab's hosts, or on those of another inventory."""
        return self.pyinfra(what, "-y", *more, str(inventory), deploy, timeout_s=timeout_s)

    def inventory(self, name: str, more: Mapping[str, Mapping[str, Any]]) -> Path:
        """An inventory file outside the checkout's inventories: the lab's hosts that `more` names, each with these further data."""
        path = self.folder / f"{name.replace(' ', '-')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        more_data = json.loads(json.dumps(more))
        path.write_text(_INVENTORY.format(lab=str(CHECKOUT / LAB_INVENTORY), more=more_data))
        return path

    @contextmanager
    def case(self, title: str) -> Iterator[None]:
        """One of several cases: when it fails that is noted, the others go on, and the phase fails at its end."""
        began = time.monotonic()
        try:
            yield
        except (Failed, LabError) as problem:
            self.failures.append(f"{title}: {problem}")
            print(f"        failed  {title} ({time.monotonic() - began:.1f} s)", flush=True)
        else:
            print(f"        ok      {title} ({time.monotonic() - began:.1f} s)", flush=True)
