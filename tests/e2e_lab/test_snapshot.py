from __future__ import annotations

from e2e.lab.snapshot import differences


def test_differences_say_what_has_come_and_what_has_gone() -> None:
    before = {"mounts": ["/proc proc", "/sys sysfs"], "links": ["lo"]}
    after = {"mounts": ["/proc proc"], "links": ["gbl8", "lo"]}
    assert differences(before, after) == ["mounts: gone: /sys sysfs", "links: new: gbl8"]
    assert differences(after, after) == []
