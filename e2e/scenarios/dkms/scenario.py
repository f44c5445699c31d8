from __future__ import annotations

from typing import Any

from typing_extensions import override

from e2e import expect
from e2e.lab.gpu import PROFILES
from e2e.pyinfra_run import Result, Run
from e2e.scenario import Scenario
from e2e.shared_lab import change_gpu

BUILD_S = 1500  # two real builds side by side: 3 to 7 minutes on two cores
KERNEL = "apt-get -q update && apt-get -q -y install --no-install-recommends linux-image-cloud-amd64 linux-headers-cloud-amd64"
FIRST_ERROR = "nv-pci.c:237:9: error: too few arguments to function 'pci_resize_resource'"
DISTRO = {"gpu_driver_source": "distro", "gpu_accept": ["container-host", "end-of-life"]}
WANTED: dict[str, dict[str, Any]] = {
    "lab-1": {**DISTRO, "gpu_driver_branch": "535"},
    "lab-2": {**DISTRO, "gpu_driver_branch": "550"},
}


class Dkms(Scenario):
    """Debian's own drivers, really built: a module lies where its kernel looks for it, one that does not compile is named, apt goes on.

    The kernel that runs is the machine's, for which no module can be built: that the driver is not loaded is said by name.
    """

    tier = "all"

    @override
    def prepare(self) -> None:
        """A kernel of Debian's with its headers, which would be booted next; GPUs that the drivers know."""
        change_gpu(self.host("lab-1"), PROFILES["t4"])
        change_gpu(self.host("lab-2"), PROFILES["h200"])
        self.kernels = {}
        for host in self.lab.hosts:
            host.run(f"export DEBIAN_FRONTEND=noninteractive; {KERNEL}", sudo=True, timeout_s=300)
            self.kernels[host.name] = host.run("cd /boot && ls vmlinuz-*").stdout.strip().removeprefix("vmlinuz-")

    @override
    def converge(self) -> None:
        """Debian 12: apt is content without a module, which is then built. Debian 13: the open module does not compile, and apt fails."""
        run = self._deploy("build", WANTED)
        with self.case("Debian 12: built for the kernel that is booted next"):
            result = self._expect_built("lab-1", run, "nvidia-current", "535")
            expect.true("kernel-modules" in result["changed"], "kernel-modules done on lab-1", result["changed"], run.log)
        with self.case("Debian 13: the compiler's first error and the way out; apt can be used again"):
            words = (FIRST_ERROR, "nvidia-current-open/550", self.kernels["lab-2"], "gpu_kernel_module to proprietary")
            run.expect_problem("lab-2", "failed", "driver-packages", *words)
            self._expect_settled("lab-2")

    @override
    def idempotence(self) -> None:
        """Debian 12: nothing is built or installed again. Debian 13: the way out works."""
        run = self._deploy("again", {**WANTED, "lab-2": {**WANTED["lab-2"], "gpu_kernel_module": "proprietary"}})
        with self.case("Debian 12: nothing is done again"):
            result = self._expect_built("lab-1", run, "nvidia-current", "535")
            expect.nothing(
                "pin, package or module made again",
                set(result["changed"]) & {"driver-repository", "driver-packages", "kernel-modules"},
                run.log,
            )
        with self.case("Debian 13: the proprietary module compiles"):
            self._expect_built("lab-2", run, "nvidia-current", "550")
            self._expect_settled("lab-2")

    @override
    def destroy(self) -> None:
        """Fresh hosts first: the real persistence daemon may hold up a boot for 90 s where there is no real driver."""
        self.lab = self.labs.fresh()
        change_gpu(self.host("lab-1"), PROFILES["h200"])
        change_gpu(self.host("lab-2"), PROFILES["h200x8"])

    def _deploy(self, what: str, wanted: dict[str, dict[str, Any]]) -> Run:
        return self.deploy(what, inventory=self.inventory(what, wanted), timeout_s=BUILD_S).expect_exit(1)

    def _expect_built(self, name: str, run: Run, module: str, branch: str) -> Result:
        """The next kernel has the module, and the problem is that another kernel runs."""
        host, kernel = self.host(name), self.kernels[name]
        running = host.run("uname -r").stdout.strip()
        result = run.expect_problem(name, "failed", "driver-runs", running, "no headers", f"boot {kernel}")
        said = host.run(f"modinfo -k {kernel} -F version {module}; modinfo -k {kernel} -n {module}", sudo=True).stdout.split()
        expect.true(said[0].startswith(branch), f"driver {branch} in the module of {kernel}", said[0], run.log)
        expect.equal("where it lies", said[1].rsplit("/", 1)[0], f"/lib/modules/{kernel}/updates/dkms", run.log)
        return result

    def _expect_settled(self, name: str) -> None:
        """Nothing is half configured, and another package is installed at once: nothing is built for it."""
        host = self.host(name)
        expect.equal("what dpkg finds fault with", host.run("dpkg --audit", sudo=True).stdout, "")
        host.run("apt-get -q -y install --reinstall --no-install-recommends netbase", sudo=True, timeout_s=60)
