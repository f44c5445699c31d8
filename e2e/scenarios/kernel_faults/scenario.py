from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.lab import faults, repository_faults
from e2e.lab.gpu import PROFILES
from e2e.scenario import GPU_HOST, Scenario
from e2e.shared_lab import change_gpu, wait_for_boot

REBOOT_S = 20
NEXT = "7.99.0-1-cloud-amd64"
FIRST_ERROR = "nv-pci.c:237:9: error: too few arguments to function 'pci_resize_resource'"


class KernelFaults(Scenario):
    """Headers, builds, the initramfs, a reboot without return: each is named, and healed once it can be."""

    tier = "all"

    @override
    def prepare(self) -> None:
        """Failures that are named: with the same hosts, since each is healed before the next."""
        one = self.host("lab-1")
        kernel = one.run("uname -r").stdout.strip()
        with self.case("the index has no headers of the running kernel"):
            repository_faults.offer(self.lab.network, headers=False)
            run = self.deploy("no headers", timeout_s=200).expect_exit(1)
            repository_faults.heal(self.lab.network)
            for host in self.lab.hosts:
                run.expect_problem(host.name, "failed", "kernel-headers", f"linux-headers-{kernel}")
        self.lab = self.labs.fresh()  # apt keeps an index that is newer than the one that comes back
        one = self.host("lab-1")
        with self.case("a build that fails while apt is content"):
            faults.dkms(one, "no-module")
            run = self.deploy("no-module", GPU_HOST, "--limit", "lab-1", timeout_s=200).expect_exit(1)
            run.expect_problem("lab-1", "failed", "kernel-modules", FIRST_ERROR, kernel)
        with self.case(f"the build works now, and the host does not come back from its reboot within {REBOOT_S} s"):
            faults.dkms(one, "works")
            faults.stays_off(one)
            short = self.inventory("short", {"lab-1": {"gpu_reboot_timeout": REBOOT_S}, "lab-2": {}})
            run = self.deploy("stays off", inventory=short, timeout_s=200).expect_exit(1)
            run.expect_problem("lab-1", "failed", "reboot", "did not come back", f"{REBOOT_S} s", "console")
            run.expect_proven("lab-2")
        with self.case("it is switched on: the next run finishes"):
            if not one.is_on():
                one.power_on()
            wait_for_boot(one)
            expect_converged(self.deploy("switched on", GPU_HOST, "--limit", "lab-1"), ["lab-1"], reboots=0)

    @override
    def converge(self) -> None:
        """lab-1 boots from an initramfs that holds nouveau; on lab-2 the build fails, and apt with it."""
        self.lab = self.labs.fresh()
        one, two = self.lab.hosts
        change_gpu(one, PROFILES["h200-initramfs"])
        expect.contains(
            "what the initramfs holds", one.run("lsinitramfs /boot/initrd.img-$(uname -r)", sudo=True).stdout, "nouveau.ko"
        )
        faults.dkms(two, "fails")
        run = self.deploy("initramfs, build fails").expect_exit(1).expect_proven("lab-1")
        expect.true(
            "nouveau-out" in run.result("lab-1")["changed"], "nouveau-out on lab-1", run.result("lab-1")["changed"], run.log
        )
        expect.equal("reboots of lab-1", run.result("lab-1")["reboots"], 1, run.log)
        run.expect_problem("lab-2", "failed", "driver-packages", FIRST_ERROR)
        expect.contains("what a person sees", run.output, FIRST_ERROR, where=run.log)
        faults.dkms(two, "works")
        expect_converged(self.deploy("build works", GPU_HOST, "--limit", "lab-2"), ["lab-2"])

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("again"), self.hosts)

    @override
    def verify(self) -> None:
        one = self.host("lab-1")
        with self.case("nouveau is blocked in the initramfs and stays out after one more boot"):
            files = one.run("lsinitramfs /boot/initrd.img-$(uname -r)", sudo=True).stdout
            expect.contains("the initramfs", files, "modprobe.d/gpu-bringup-nouveau.conf")
            one.reboot()
            wait_for_boot(one)
            bound = one.run("readlink /sys/bus/pci/devices/0000:00:06.0/driver").stdout
            expect.true(bound.strip().endswith("/nvidia"), "the GPU of lab-1 bound to nvidia", bound)
            expect.true(
                one.run("[ ! -d /sys/module/nouveau ]", check=False).returncode == 0, "no nouveau on lab-1", "it is loaded"
            )

        with self.case(f"{NEXT} is installed with its headers, and no module came with it: built before it is booted"):
            one.run(
                f"mkdir -p /lib/modules/{NEXT}/build && touch /lib/modules/{NEXT}/build/Makefile /boot/vmlinuz-{NEXT}", sudo=True
            )
            run = self.deploy("next kernel", GPU_HOST, "--limit", "lab-1")
            expect_converged(run, ["lab-1"], reboots=0)
            expect.equal("what changed lab-1", run.result("lab-1")["changed"], ["kernel-modules"], run.log)
            one.run(f"modinfo -k {NEXT} nvidia", sudo=True)
            expect_no_changes(self.deploy("next kernel again", GPU_HOST, "--limit", "lab-1"), ["lab-1"])

    @override
    def destroy(self) -> None:
        repository_faults.heal(self.lab.network)
        change_gpu(self.host("lab-1"), PROFILES["h200"])
