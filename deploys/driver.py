"""The driver: its repository, headers, packages and modules, the reboot where one is needed, its services, links to its device nodes."""

from bringup.target import Target
from deploys.frame import stage
from operations import device_links, driver, runfile
from operations.reboot import reboot


def install(target: Target) -> None:
    driver.driver_repository(name="driver-repository", target=target)
    driver.kernel_headers(name="kernel-headers", target=target)
    runfile.runfile_out(name="runfile-out", target=target)
    driver.driver_packages(name="driver-packages", target=target)
    driver.kernel_modules(name="kernel-modules", target=target)
    driver.driver_loaded(name="driver-loaded", target=target)
    reboot(name="reboot", target=target)
    driver.wanted_driver_runs(name="driver-runs", target=target)
    driver.driver_services(name="driver-services", target=target)
    device_links.device_links(name="device-links", target=target)


stage(install)
