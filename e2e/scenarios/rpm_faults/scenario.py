from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.host_state import changes, host_state
from e2e.lab import repository, repository_faults
from e2e.lab.host import Host
from e2e.pyinfra_run import Run
from e2e.scenario import Scenario

REPOS = "/etc/yum.repos.d"
# the same place as ours, by another name, with a key that is not there; and one of a third party's that is dead
CLASHING = (
    "[cuda-rhel9-x86_64]\nname=cuda\nbaseurl={url}\nenabled=1\ngpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-NVIDIA\n"
)
DEAD = "[third-party]\nname=third party\nbaseurl=http://packages.example.invalid/el9\nenabled=1\ngpgcheck=0\n"
PACKAGES = {"open": "kmod-nvidia-open-dkms", "proprietary": "kmod-nvidia-latest-dkms"}


class RpmFaults(Scenario):
    """Hosts dressed as Rocky Linux 9: a wrong key, an old .repo file of the same place, a dead third party, the other kind of module."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.dressed("rocky9")

    @override
    def prepare(self) -> None:
        """Packages signed by another key than the one that the repository hands out; nothing may be changed by it."""
        before = {host.name: host_state(host) for host in self.lab.hosts}
        with self.case("the repository hands out another key than the known one"):
            repository_faults.answer(repository_faults.key_is_another(self.lab.network))
            self._unusable("another key", before, "has the fingerprint")
        with self.case("a page of a proxy in the place of the key"):
            repository_faults.answer(repository_faults.key_is_html())
            self._unusable("html key", before, "not the key")
        with self.case("nothing at the address of the repository"):
            repository_faults.answer(repository_faults.status(404))
            self._unusable("not found", before, "404")
        repository_faults.heal(self.lab.network)

    @override
    def converge(self) -> None:
        one, two = self.lab.hosts
        url = repository.repositories(self.lab.network, one.spec.distro)["nvidia-driver"].url.format(distro="rhel9")
        one.run(f"cat >{REPOS}/cuda-rhel9.repo", sudo=True, stdin=CLASHING.format(url=url))
        two.run(f"cat >{REPOS}/third-party.repo", sudo=True, stdin=DEAD)
        run = expect_converged(self.deploy("all at once"), self.hosts)
        (why,) = (step["why"] for step in run.result("lab-1")["planned"] if step["step"] == "clashing-sources")
        expect.contains("why clashing-sources is planned for lab-1", why, "cuda-rhel9.repo", "RPM-GPG-KEY-NVIDIA")
        notes = " | ".join(run.result("lab-2")["notes"])
        expect.contains("the notes on lab-2", notes, "third-party", "could not be read", where=run.log)

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("again"), self.hosts)

    @override
    def verify(self) -> None:
        one, two = self.lab.hosts
        with self.case("what clashed is kept beside, and the third party's file is as it was"):
            one.run(f"[ ! -e {REPOS}/cuda-rhel9.repo ] && grep -q RPM-GPG-KEY-NVIDIA {REPOS}/cuda-rhel9.repo.disabled")
            expect.equal("the third party's file", two.run(f"cat {REPOS}/third-party.repo").stdout, DEAD)
        for kind in ("proprietary", "open"):
            with self.case(f"the {kind} module in place of the other kind, from its own module stream"):
                more = {name: {"gpu_kernel_module": kind} for name in self.hosts}
                inventory = self.inventory(kind, more)
                expect_converged(self.deploy(f"to {kind}", inventory=inventory), self.hosts)
                for host in self.lab.hosts:
                    self._expect_kind(host, kind)
                expect_no_changes(self.deploy(f"to {kind} again", inventory=inventory), self.hosts)

    @override
    def destroy(self) -> None:
        repository_faults.heal(self.lab.network)

    def _unusable(self, what: str, before: dict[str, dict[str, str]], *words: str) -> None:
        run: Run = self.deploy(what, timeout_s=200).expect_exit(1)
        for host in self.lab.hosts:
            run.expect_problem(host.name, "failed", "package-sources", *words)
            expect.nothing(f"step done on {host.name}", run.result(host.name)["changed"], run.log)
            expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)

    @staticmethod
    def _expect_kind(host: Host, kind: str) -> None:
        there = host.run("rpm -qa --qf '%{NAME}\\n' | grep ^kmod-nvidia").stdout.split()
        expect.equal(f"packages of modules on {host.name}", there, [PACKAGES[kind]])
        said = host.run("cat /proc/driver/nvidia/version").stdout
        expect.true(("Open Kernel Module" in said) == (kind == "open"), f"the {kind} module loaded on {host.name}", said)
