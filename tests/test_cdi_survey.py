"""CDI specs as facts/survey.sh reads them, from files as nvidia-ctk writes them: YAML, JSON in many lines and in one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bringup.steps import Change, Skip
from bringup.steps.cdi import cdi_spec
from bringup.survey import CdiSpec
from facts.survey import HostSurvey
from tests.surveys import BASES, target_of
from tests.test_survey_script import shell as shell

LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.570.211.01"
HOOK = ["nvidia-cdi-hook", "--link", "libcuda.so.1::/usr/lib/libcuda.so"]
SPEC = {
    "cdiVersion": "0.7.0",
    "kind": "nvidia.com/gpu",
    "devices": [
        {"name": name, "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0", "major": 195, "fileMode": 438, "permissions": "rwm"}]}}
        for name in ("0", "all")
    ],
    "containerEdits": {
        "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [
            {"path": "/dev/nvidia-uvm", "major": 510}, {"path": "/dev/nvidia-uvm-tools", "major": 510, "minor": 1},
            {"path": "/dev/nvidiactl"},
        ],
        "hooks": [
            {"hookName": "createContainer", "path": "/usr/bin/gone-hook", "args": HOOK}
        ],
        "mounts": [
            {"hostPath": LIBCUDA, "containerPath": LIBCUDA},
            {"hostPath": "/etc/passwd", "containerPath": "/etc/passwd", "options": ["ro", "nosuid"]},
        ],
    },
}  # fmt: skip
YAML = """\
---
cdiVersion: 0.7.0
kind: "nvidia.com/gpu"
devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
              major: 195
              fileMode: 438
              permissions: rwm
    - name: all
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
              major: 195
containerEdits:
    deviceNodes:
        - path: /dev/nvidia-uvm
          major: 510
        - path: /dev/nvidia-uvm-tools
          major: 510
          minor: 1
        - path: /dev/nvidiactl
    hooks:
        - hookName: createContainer
          path: /usr/bin/gone-hook
          args:
            - nvidia-cdi-hook
            - --link
            - libcuda.so.1::/usr/lib/libcuda.so
    mounts:
        - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.570.211.01
          containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.570.211.01
        - hostPath: /etc/passwd
          containerPath: /etc/passwd"""
WAYS = {"nvidia.yaml": YAML, "lines.json": json.dumps(SPEC, indent=2), "one.json": json.dumps(SPEC, separators=(",", ":"))}


def read(shell: list[str], folder: Path) -> list[CdiSpec]:
    script = HostSurvey().command().replace("/etc/cdi/", f"{folder}/").replace("/var/run/cdi/", f"{folder}/run/")
    done = subprocess.run([*shell, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return HostSurvey().process(done.stdout.splitlines())["cdi"]


@pytest.mark.parametrize("name", WAYS)
def test_what_matters_of_a_spec_is_read(shell: list[str], tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(WAYS[name])
    (tmp_path / name).chmod(0o640)
    (spec,) = read(shell, tmp_path)
    assert (spec["kind"], spec["version"], spec["mode"]) == ("nvidia.com/gpu", "0.7.0", "640")
    assert spec["devices"] == ["0", "all"] and spec["library_versions"] == ["570.211.01"]
    assert set(spec["device_nodes"]) == {"/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl"}
    assert spec["numbers"] == {"/dev/nvidia0": "195:0", "/dev/nvidia-uvm": "510:0", "/dev/nvidia-uvm-tools": "510:1"}
    assert sorted(spec["missing"]) == ["/usr/bin/gone-hook", LIBCUDA]


@pytest.mark.parametrize(
    "text", ["", "{", "kind", "kind: x\nname: ': : -\n", '{"kind": {"a": ["path", "/dev/x"]}}', "\x00\xff: path: /dev/a b c d"]
)
def test_a_file_that_is_no_spec_breaks_nothing(shell: list[str], tmp_path: Path, text: str) -> None:
    (tmp_path / "other.yaml").write_text(text, encoding="latin-1")
    assert [each["path"] for each in read(shell, tmp_path)] == [f"{tmp_path}/other.yaml"]


def test_no_spec_is_written_while_what_is_installed_is_not_what_is_loaded() -> None:
    """nvidia-ctk cannot ask that driver; where a reboot was not allowed, the spec waits for it."""
    host = BASES["converged debian13 8 x h200"]()
    target = target_of(host).target
    assert isinstance(cdi_spec(host.set("cdi", "").survey, target), Change)
    found = cdi_spec(host.set("cdi", "").set("module_version", "580.178.04").survey, target)
    assert isinstance(found, Skip) and "580.178.04 installed" in found.why
    assert cdi_spec(host.set("module_version", "580.178.04").survey, target) is None
