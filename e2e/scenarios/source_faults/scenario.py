from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.host_state import changes, host_state
from e2e.lab import faults, repository, repository_faults
from e2e.lab.distros import DISTROS
from e2e.lab.host import Host
from e2e.scenario import Scenario

LISTS = "/etc/apt/sources.list.d"
LEFTOVER = "nvidia-docker.list"
PAGE = "<!DOCTYPE html>\n<html><body>Moved to another place</body></html>\n"
DROPPED, HALF_SYNCED = 6, 4
"""Requests of both hosts: what apt tries anew by itself is not enough for them."""


class SourceFaults(Scenario):
    """Clashing, left-over, broken and unsteady package sources: named, and converged; unusable ones of ours: named, nothing changed."""

    tier = "all"

    @override
    def prepare(self) -> None:
        """Nothing may be changed by these, so that they can have the same hosts."""
        network = self.lab.network
        key = repository.repositories(network)["nvidia-driver"].fingerprint
        with self.case("our key has expired"):
            repository_faults.offer(network, signed_by="expired")
            sentence = f"its key {key} has expired"
            self._unusable("expired key", sentence, words={"lab-1": "EXPKEYSIG", "lab-2": "binding signature"})
        with self.case("a page of a proxy in the place of our key"):
            repository_faults.answer(repository_faults.key_is_html())
            self._unusable("html key", "3bf863cc.pub is", "not the key", key)
        with self.case("another key in the place of ours"):
            repository_faults.answer(repository_faults.key_is_another(network))
            self._unusable("another key", "has the fingerprint", key)
        with self.case("no packages of the driver in our repository"):
            repository_faults.offer(network, drivers=())
            self._unusable("no packages", "has no", "nvidia-driver-cuda")
        with self.case("nothing at the address of our repository"):
            repository_faults.answer(repository_faults.status(404))
            self._unusable("not found", "404", repository.address(network))

    @override
    def converge(self) -> None:
        """All at once: what others left and broke on the hosts, and a repository of ours that is unsteady."""
        one, two = self.lab.hosts
        url = self._url(one)
        faults.clashing_source(one)
        one.run(f"printf '# by hand\\ndeb [trusted=yes] {self._other} /\\n' >>{self._clashing(one)}", sudo=True)
        faults.write_source(one, LEFTOVER, PAGE)
        faults.broken_source(one, "dead")
        faults.broken_source(two, "malformed")
        stanza = "Types: deb\nURIs: {}\nSuites: /\n{}\n"
        other = stanza.format(self._other, "Trusted: yes\n")
        faults.write_source(two, "old-cuda.sources", other + stanza.format(self._url(two), "Signed-By: /etc/apt/old.gpg\n"))
        repository_faults.answer(repository_faults.dead(times=DROPPED), repository_faults.half_synced(times=HALF_SYNCED))
        run = expect_converged(self.deploy("all at once"), self.hosts)
        expect.equal("answers that went wrong", repository_faults.used(), {0: DROPPED, 1: HALF_SYNCED}, run.log)
        expect.contains("what a person sees of the unsteady repository", run.output, "asked again in", where=run.log)

        clashes = self._why(run.result("lab-1"), "clashing-sources")
        expect.contains(
            "why clashing-sources is planned for lab-1", clashes, self._clashing(one), "nvidia-old.gpg", LEFTOVER, url
        )
        clashes = self._why(run.result("lab-2"), "clashing-sources")
        expect.contains("why clashing-sources is planned for lab-2", clashes, "old-cuda.sources", "/etc/apt/old.gpg")
        notes = " | ".join(run.result("lab-1")["notes"])
        expect.contains("the notes on lab-1", notes, "packages.example.invalid", where=run.log)
        notes = " | ".join(run.result("lab-2")["notes"])
        expect.contains("the notes on lab-2", notes, "third-party-malformed.list", "line 1", where=run.log)

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("again"), self.hosts)

    @override
    def verify(self) -> None:
        one, two = self.lab.hosts
        with self.case("what clashed is kept beside, and the other entries of its file are there"):
            for host, path, mine in ((one, self._clashing(one), "nvidia-old.gpg"), (two, f"{LISTS}/old-cuda.sources", "old.gpg")):
                kept, now = self._read(host, f"{path}.disabled"), self._read(host, path)
                expect.contains(f"{path}.disabled on {host.name}", kept, mine, self._other)
                live = [line for line in now.splitlines() if line.strip() and not line.startswith("#")]
                expect.nothing(
                    f"live line of the clashing entry in {path} on {host.name}", (each for each in live if mine in each)
                )
                expect.contains(f"what is left in {path} on {host.name}", "\n".join(live), self._other)
            expect.equal("the kept page", self._read(one, f"{LISTS}/{LEFTOVER}.disabled"), PAGE)
            expect.true(one.run(f"[ ! -e {LISTS}/{LEFTOVER} ]", check=False).returncode == 0, f"no {LEFTOVER}", "it is there")
        with self.case("sources of third parties are as they were"):
            expect.contains(
                "the dead source", self._read(one, f"{LISTS}/third-party-dead.list"), "deb http://packages.example.invalid"
            )
            expect.contains(
                "the malformed one", self._read(two, f"{LISTS}/third-party-malformed.list"), "packages.example.invalid"
            )

    @override
    def destroy(self) -> None:
        repository_faults.heal(self.lab.network)

    @property
    def _other(self) -> str:
        """A repository that is not ours, and works."""
        return f"{repository.address(self.lab.network)}/unsigned/"

    def _url(self, host: Host) -> str:
        return repository.repositories(self.lab.network)["nvidia-driver"].url.format(distro=DISTROS[host.spec.distro].product)

    @staticmethod
    def _clashing(host: Host) -> str:
        return f"{LISTS}/cuda-{DISTROS[host.spec.distro].product}-x86_64.list"

    @staticmethod
    def _read(host: Host, path: str) -> str:
        return host.run(f"cat {path}", sudo=True).stdout

    @staticmethod
    def _why(result: dict[str, object], step: str) -> str:
        steps = result["planned"]
        assert isinstance(steps, list)
        return next((str(each["why"]) for each in steps if each["step"] == step), "it is not planned")

    def _unusable(self, what: str, *all_words: str, words: Mapping[str, str] | None = None) -> None:
        before = {host.name: host_state(host) for host in self.lab.hosts}
        try:
            run = self.deploy(what, timeout_s=150).expect_exit(1)
        finally:
            repository_faults.heal(self.lab.network)
        for host in self.lab.hosts:
            result = run.expect_problem(host.name, "failed", *all_words, *([words[host.name]] if words else []))
            expect.equal(f"the number of problems of {host.name}", len(result["problems"]), 1, run.log)
            expect.nothing(f"step done on {host.name}", result["changed"], run.log)
            expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)
