from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.host_state import changes, host_state
from e2e.lab import keys as keys_of_lab
from e2e.lab.host import Host
from e2e.pyinfra_run import LAB_INVENTORY, Run
from e2e.scenario import PLAN, Scenario

UNDO = "deploys/undo.py"
LOCKS = "/etc/dnf/plugins/versionlock.list"
OLDER = "580.159.04"
ACCEPT = ["container-host", "below-security-floor"]  # that of the older version
OF_USER = "# kept by hand\nrocky-release-0:9.6-1.el9.*\n"
OUR_KEYS = ("driver", "toolkit", "docker")  # rpm has one of the distribution's too
DRIVER = "^(nvidia|kmod-nvidia|libnvidia|libcuda|cuda-drivers)"
# everything that we write has our name in its own, or is one of these
FILES = "find /etc -xdev -name '*gpu-bringup*'; ls -d /etc/cdi/nvidia.yaml 2>/dev/null || :"


class RpmHost(Scenario):
    """Hosts dressed as Rocky Linux 9 (Debian's user land, real dnf and rpm): fresh to proven, another branch, version locks, undo."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.dressed("rocky9")

    @override
    def prepare(self) -> None:
        """A version lock of the user's, which has nothing to do with GPUs."""
        for host in self.lab.hosts:
            self._lock(host, OF_USER)

    @override
    def converge(self) -> None:
        """nouveau holds the GPU of lab-1 alone: one reboot there."""
        run = expect_converged(self.deploy("converge"), self.hosts)
        reboots = {name: run.result(name)["reboots"] for name in self.hosts}
        expect.equal("reboots", reboots, {"lab-1": 1, "lab-2": 0}, run.log)
        for host in self.lab.hosts:
            self._expect_driver(host, "580")

    @override
    def idempotence(self) -> None:
        before = self._states()
        run = expect_no_changes(self.deploy("idempotence"), self.hosts)
        self._expect_same(before, run)

    @override
    def side_effect(self) -> None:
        """580 -> 620 -> an older 580, each by its module stream, without a reboot."""
        for branch in ("620", OLDER):
            expect_converged(self._change_to(branch), self.hosts, reboots=0)
            for host in self.lab.hosts:
                self._expect_driver(host, branch)
            expect_no_changes(self._change_to(branch, "again"), self.hosts)

    @override
    def verify(self) -> None:
        with self.case(f"an upgrade by hand leaves the driver, which is locked, at {OLDER}"):
            for host in self.lab.hosts:
                host.run("dnf -q -y upgrade", sudo=True, timeout_s=200)
                self._expect_driver(host, OLDER)
        with self.case("undo takes back what is ours, and leaves the user's lock"):
            self._undo()
        with self.case("a second undo finds nothing"):
            before = self._states()
            run = self.deploy("second undo", UNDO).expect_exit(0)
            self._expect_same(before, run)
        one, two = self.lab.hosts
        self._lock(one, f"{OF_USER}nvidia-driver-cuda-3:{OLDER}-1.el9.*\n")
        self._lock(two, f"{OF_USER}nvidia-driver-cuda-3:620.70.06-1.el9.*\n")
        before_two = host_state(two)
        plan = self.pyinfra("plan with foreign locks", "-v", LAB_INVENTORY, PLAN, timeout_s=60).expect_exit(3)
        run = self.deploy("foreign locks").expect_exit(1)
        with self.case(f"a lock of the user's at {OLDER} is kept: that version is installed"):
            run.expect_proven("lab-1")
            said = f"dnf's version lock nvidia-driver-cuda-3:{OLDER}-1.el9.* is somebody else's, and stays"
            expect.contains("the plan", plan.output, said, where=plan.log)
            self._expect_driver(one, OLDER)
            text = one.run(f"cat {LOCKS}").stdout
            expect.contains("the list of locks of lab-1", text, f"{OF_USER}nvidia-driver-cuda-3:{OLDER}-1.el9.*\n")
            expect.equal("lines that lock nvidia-driver-cuda", text.count("\nnvidia-driver-cuda-3:"), 1, run.log)
            expect_no_changes(self.deploy("again", "deploys/gpu_host.py", "--limit", "lab-1"), ["lab-1"])
        with self.case("one at another branch is named, and nothing is changed"):
            run.expect_problem("lab-2", "refused", "nvidia-driver-cuda-3:620.70.06-1.el9.*", "580", "dnf versionlock delete")
            expect.nothing("change on lab-2", changes(before_two, host_state(two)), run.log)

    def _undo(self) -> None:
        run = self.deploy("undo", UNDO).expect_exit(0)
        for host in self.lab.hosts:
            result = run.result(host.name)
            expect.equal(f"how undo ended for {host.name} ({'; '.join(result['problems'])})", result["ended"], "done", run.log)
            keys = "|".join(f"^gpg-pubkey-{keys_of_lab.fingerprint(each)[-8:].lower()}" for each in OUR_KEYS)
            left = host.run(f"rpm -qa | grep -E '{DRIVER}|^docker|{keys}' || :", sudo=True).stdout
            expect.nothing(f"package of ours on {host.name}", left.splitlines())
            left = host.run(FILES, sudo=True).stdout
            expect.nothing(f"file of ours on {host.name}", [each for each in left.splitlines() if "backup" not in each])
            expect.equal(f"{LOCKS} of {host.name}", host.run(f"cat {LOCKS}").stdout, OF_USER, run.log)
            streams = host.run("dnf -q module list --enabled 2>/dev/null || :", sudo=True, timeout_s=60).stdout
            expect.equal(f"enabled module streams of {host.name}", streams, "", run.log)
            expect.nothing(f"module loaded on {host.name}", host.run("lsmod | grep ^nvidia || :").stdout.splitlines())

    def _change_to(self, branch: str, how: str = "") -> Run:
        more = {name: {"gpu_driver_branch": branch, "gpu_accept": ACCEPT} for name in self.hosts}
        return self.deploy(f"to {branch} {how}".strip(), inventory=self.inventory(f"branch {branch}", more))

    def _expect_driver(self, host: Host, version: str) -> None:
        """Loaded and installed are one version, and every package of it is locked at it."""
        loaded = host.run("cat /proc/driver/nvidia/version", sudo=True).stdout
        expect.contains(f"the loaded driver of {host.name}", loaded, f"  {version}")
        names = "%{NAME} %|EPOCH?{%{EPOCH}}:{0}|:%{VERSION}-%{RELEASE}"
        lines = host.run(f"rpm -qa --qf '{names}\\n' | grep -E '{DRIVER}'", sudo=True).stdout.splitlines()
        found = [line.split() for line in lines if "container" not in line]
        expect.true(len(found) >= 4, f"packages of the driver on {host.name}", lines)
        wrong = [" ".join(each) for each in found if not each[1].partition(":")[2].startswith(version)]
        expect.nothing(f"package of {host.name} that is not of {version}", wrong)
        locks = host.run(f"cat {LOCKS}").stdout.splitlines()
        expect.nothing(
            f"package of {host.name} that is not locked", ("-".join(e) for e in found if f"{e[0]}-{e[1]}.*" not in locks)
        )

    def _states(self) -> dict[str, dict[str, str]]:
        return {host.name: host_state(host) for host in self.lab.hosts}

    def _expect_same(self, before: dict[str, dict[str, str]], run: Run) -> None:
        for host in self.lab.hosts:
            expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)

    @staticmethod
    def _lock(host: Host, text: str) -> None:
        host.run(f"cat >{LOCKS}", sudo=True, stdin=text)
