"""The stand-in toolkit is Perl that reads /dev and the driver; here both are replaced, and no root is needed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from e2e.lab.packages import STANDINS

_BASE = STANDINS / "packages" / "toolkit" / "nvidia-container-toolkit-base" / "files" / "usr"
_REPLACED = """
no warnings "redefine";
*StandIn::gpus = sub { map { {index => $_, uuid => "GPU-$_", path => "/dev/nvidia$_"} } 0, 1 };
*StandIn::common = sub {
    return {nodes => ["/dev/nvidiactl"], files => ["/usr/bin/nvidia-smi"], links => [["libcuda.so.1", "/l/libcuda.so"]], folders => ["/l"]}
};
*StandIn::number = sub { $_[0] =~ /ctl/ ? (195, 255) : (195, $_[0] =~ /(\\d+)$/) };
my $program = shift;
eval $program;
die $@ if $@;
"""


def _run(program: str, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    # @VERSION@, which the build replaces, is no Perl
    text = (_BASE / "bin" / program).read_text().replace("@VERSION@", "1.20.0")
    return subprocess.run(
        ["perl", f"-I{_BASE / 'lib/nvidia-container-toolkit'}", "-MStandIn", "-e", _REPLACED, text, *arguments],
        capture_output=True, text=True, timeout=20, env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
    )  # fmt: skip


def _bundle(folder: Path, *env: str) -> Path:
    spec = {"ociVersion": "1.0.2", "process": {"env": ["PATH=/bin", *env], "args": ['say "x"']}, "mounts": [], "linux": {}}
    (folder / "config.json").write_text(json.dumps(spec))
    runc = folder / "runc"
    runc.write_text('#!/bin/sh\necho "runc $*"\n')
    runc.chmod(0o755)
    return folder / "config.json"


def _create(folder: Path) -> subprocess.CompletedProcess[str]:
    arguments = ["--log", str(folder / "log.json"), "create", "--bundle", str(folder), "name"]
    return _run("nvidia-container-runtime", *arguments, path=folder)


def test_a_cdi_spec_is_yaml_with_a_device_for_each_gpu_and_all() -> None:
    spec: dict[str, Any] = yaml.safe_load(_run("nvidia-ctk", "cdi", "generate").stdout)
    assert spec["kind"] == "nvidia.com/gpu"
    nodes = {device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]] for device in spec["devices"]}
    assert nodes == {
        "0": ["/dev/nvidia0"],
        "1": ["/dev/nvidia1"],
        "GPU-0": ["/dev/nvidia0"],
        "GPU-1": ["/dev/nvidia1"],
        "all": ["/dev/nvidia0", "/dev/nvidia1"],
    }
    edits = spec["containerEdits"]
    assert edits["deviceNodes"] == [{"path": "/dev/nvidiactl", "major": 195, "minor": 255, "fileMode": 438, "permissions": "rwm"}]
    assert [hook["args"][1] for hook in edits["hooks"]] == ["create-symlinks", "update-ldcache"]
    assert edits["env"] == ["NVIDIA_VISIBLE_DEVICES=void"]


def test_a_container_that_does_not_ask_for_gpus_goes_through_untouched(tmp_path: Path) -> None:
    for env in ([], ["NVIDIA_VISIBLE_DEVICES="], ["NVIDIA_VISIBLE_DEVICES=void"]):
        config = _bundle(tmp_path, *env)
        before = config.read_bytes()
        assert _create(tmp_path).stdout.startswith("runc --log")
        assert config.read_bytes() == before


def test_a_container_that_asks_for_a_gpu_gets_its_node_rule_mount_and_hooks(tmp_path: Path) -> None:
    config = _bundle(tmp_path, "NVIDIA_VISIBLE_DEVICES=1")
    assert _create(tmp_path).returncode == 0
    spec = json.loads(config.read_text())
    assert [device["path"] for device in spec["linux"]["devices"]] == ["/dev/nvidia1", "/dev/nvidiactl"]
    assert spec["linux"]["resources"]["devices"][0] == {"allow": True, "type": "c", "major": 195, "minor": 1, "access": "rwm"}
    assert [mount["destination"] for mount in spec["mounts"]] == ["/usr/bin/nvidia-smi"]
    assert len(spec["hooks"]["createContainer"]) == 2
    assert spec["process"]["args"] == ['say "x"']


def test_a_gpu_that_is_not_there_fails_with_a_reason_where_containerd_looks(tmp_path: Path) -> None:
    _bundle(tmp_path, "NVIDIA_VISIBLE_DEVICES=7")
    assert _create(tmp_path).returncode == 1
    reason = json.loads((tmp_path / "log.json").read_text())["msg"]
    assert reason.endswith("failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=7")


def test_runtime_configure_keeps_what_is_in_daemon_json(tmp_path: Path) -> None:
    config = tmp_path / "daemon.json"
    config.write_text('{"log-opts": {"max-size": "10m"}, "features": {"x": false}, "bip": "10.1.0.1/24"}')
    assert (
        _run("nvidia-ctk", "runtime", "configure", "--config", str(config), "--set-as-default", "--cdi.enabled").returncode == 0
    )
    assert json.loads(config.read_text()) == {
        "log-opts": {"max-size": "10m"},
        "features": {"x": False, "cdi": True},
        "bip": "10.1.0.1/24",
        "runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}},
        "default-runtime": "nvidia",
    }


def test_runtime_configure_refuses_a_daemon_json_that_is_none(tmp_path: Path) -> None:
    config = tmp_path / "daemon.json"
    config.write_text('{"bip": "10.1.0.1/24",\n')
    done = _run("nvidia-ctk", "runtime", "configure", "--config", str(config))
    assert done.returncode == 1
    assert "unexpected end of JSON input" in done.stderr
    assert config.read_text() == '{"bip": "10.1.0.1/24",\n'
