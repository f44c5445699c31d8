"""The evidence script: whole, parsed, run by a real shell, and without secrets."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pyinfra.api.exceptions import FactProcessError

from facts.evidence import HostEvidence

SECRETS = (
    'https_proxy=http://user:CANARY@proxy.test:3128',
    '{"auths": {"nvcr.io": {"auth": "CANARY=="}}}',
    "export NGC_API_KEY=nvapi-CANARY",
    "HF_TOKEN=hf_CANARY",
    'password: "CANARY"',
    "Authorization: Bearer CANARY.x.y",
    "/home/CANARY/data",
    "docker login -p glpat-CANARY",
)  # fmt: skip


def test_no_secret_leaves_the_host() -> None:
    script = HostEvidence().command()
    masked = re.search(r"^masked\(\) \{.*?^\}", script, re.M | re.S)
    assert masked
    done = subprocess.run(
        ["sh", "-c", f"{masked[0]}\nmasked"], input="\n".join(SECRETS), capture_output=True, text=True, check=True
    )
    assert done.stdout.count("***") >= len(SECRETS)
    assert "CANARY" not in done.stdout


def test_a_real_shell_gives_evidence_that_can_be_read(tmp_path: Path) -> None:
    done = subprocess.run(["sh", "-c", HostEvidence().command()], capture_output=True, text=True, timeout=110)
    found = HostEvidence().process(done.stdout.splitlines())
    assert re.match(r"\d+\.\d+", found["$ uname -r"])
    assert "ID=" in found["/etc/os-release"]


def test_what_was_cut_off_is_no_evidence() -> None:
    with pytest.raises(FactProcessError, match="not whole"):
        HostEvidence().process(["@@gpu-bringup-evidence 1", "@@$ uname -r", "|6.8.0"])
