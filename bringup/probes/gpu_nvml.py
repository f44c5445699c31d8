"""What the driver says of a GPU while it works. A part of gpu_benchmark: it travels with it, under the name of this file."""

import ctypes


class Nvml:
    """What the driver says while a GPU works; None where it does not say. Never in the way of a measurement."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            self.library.nvmlInit_v2()
        except (OSError, AttributeError):
            self.library = None

    def look(self, pci_address):
        found = {}
        handle = ctypes.c_void_p()
        try:
            if self.library.nvmlDeviceGetHandleByPciBusId_v2((pci_address or "").encode(), ctypes.byref(handle)) != 0:
                return found
        except AttributeError:
            return found
        for key, function, arguments, kind in (
            ("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", (), ctypes.c_uint),
            ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", (), ctypes.c_uint),
            ("sm_clock_mhz", "nvmlDeviceGetClockInfo", (1,), ctypes.c_uint),
            ("temperature_c", "nvmlDeviceGetTemperature", (0,), ctypes.c_uint),
            ("power_mw", "nvmlDeviceGetPowerUsage", (), ctypes.c_uint),
            ("event_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", (), ctypes.c_ulonglong),
        ):
            value = kind()
            try:
                if getattr(self.library, function)(handle, *arguments, ctypes.byref(value)) == 0:
                    found[key] = value.value
            except AttributeError:  # a library that does not know this one yet
                continue
        return found


def pci_address(index):
    """0000:00:06.0, of the driver's device of that number."""
    text = ctypes.create_string_buffer(32)
    try:
        if ctypes.CDLL("libcuda.so.1").cuDeviceGetPCIBusId(text, len(text), index) == 0:
            return text.value.decode().lower()
    except (OSError, AttributeError):
        pass
    return None
