"""Random daemon.json files that dockerd takes, for hypothesis; and the dockerd of this machine, where it has one."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bringup.dockerd import KEYS

names = st.sampled_from(["nvidia", "kata", "runsc", "mine", "ä"])
sizes = st.sampled_from(["64m", "8g", "1.5GB", "512MiB", "67108864"])
texts = st.sampled_from(["", "a", "x y", "ä", '"', "\\", "\u2028"])
lists = st.lists(texts, max_size=3)
runtimes = st.dictionaries(
    names,
    st.fixed_dictionaries({"path": st.sampled_from(["/usr/bin/x", "nvidia-container-runtime", "/usr/bin/nvidia-container-runtime"])},
                          optional={"runtimeArgs": lists})
    | st.just({"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/opt/x"}}),
    max_size=3,
)  # fmt: skip
limits = st.integers(-1, 2**40)
ulimits = st.sampled_from(["memlock", "nofile"]).flatmap(
    lambda name: limits.map(lambda limit: {name: {"Name": name, "Soft": limit, "Hard": limit}})
)
values = {
    "data-root": st.sampled_from(["/var/lib/docker", "/mnt/docker"]), "debug": st.booleans(), "live-restore": st.booleans(),
    "iptables": st.booleans(), "icc": st.booleans(), "no-new-privileges": st.booleans(), "mtu": st.integers(0, 9000),
    "max-concurrent-downloads": st.integers(1, 9), "shutdown-timeout": st.integers(0, 99), "default-shm-size": sizes,
    "log-driver": st.sampled_from(["local", "json-file", "journald"]), "log-level": st.sampled_from(["info", "debug", ""]),
    "log-opts": st.dictionaries(texts, texts, max_size=3), "dns": st.lists(st.sampled_from(["1.1.1.1", "::1"]), max_size=2),
    "insecure-registries": st.lists(st.sampled_from(["a:5000", "10.0.0.0/8"]), max_size=2, unique=True),
    "registry-mirrors": st.lists(st.sampled_from(["https://m.example", "http://n.example/"]), max_size=2, unique=True),
    "exec-opts": st.lists(st.sampled_from(["native.cgroupdriver=cgroupfs", "native.cgroupdriver=systemd"]), max_size=1),
    "labels": st.lists(st.sampled_from(["a=1", "b=2"]), max_size=2, unique=True), "runtimes": st.none() | runtimes,
    "features": st.none() | st.dictionaries(st.sampled_from(["cdi", "buildkit", "containerd-snapshotter"]), st.booleans()),
    "default-ulimits": st.none() | ulimits, "cgroup-parent": texts, "storage-driver": st.sampled_from(["overlay2", ""]),
    "default-address-pools": st.just([{"base": "10.10.0.0/16", "size": 24}]), "bip": st.just("10.9.0.1/24"),
    "proxies": st.just({"http-proxy": "http://user:secret@proxy.example:3128"}), "builder": st.just({"gc": {"enabled": True}}),
}  # fmt: skip
assert set(values) <= set(KEYS)


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    """What a daemon.json may hold, in any order, with a default runtime only where it is one."""
    chosen = draw(st.lists(st.sampled_from(sorted(values)), unique=True, max_size=9))
    content: dict[str, Any] = {key: draw(values[key]) for key in chosen}
    defaults = sorted(["runc", *(content.get("runtimes") or ())])
    return {**content, "default-runtime": draw(st.sampled_from(defaults))} if draw(st.booleans()) else content


@cache
def dockerd() -> str | None:
    """One that can validate a file: Docker 23 and later."""
    found = shutil.which("dockerd")
    return found if found and "--validate" in _said(found, "--help") else None


def refused(text: str, folder: Path, *flags: str) -> str | None:
    """What the real dockerd says against a file, or None where it takes it."""
    file = folder / "daemon.json"
    file.write_text(text)
    said = _said(str(dockerd()), "--validate", f"--config-file={file}", *flags)
    return None if said.strip().endswith("configuration OK") else said


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.stdout + done.stderr
