"""No secret is shown: not of what is pasted, not of what is collected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bringup.cli import main
from bringup.doctor import diagnose, read_evidence
from bringup.doctor.masking import masked

SECRETS = (
    "https_proxy=http://user:CANARY@proxy.test:3128",
    "HTTPS_PROXY=http://user:p@ss-CANARY@proxy.test:3128",
    '{"auths": {"nvcr.io": {"auth": "CANARYCANARY=="}}}',
    '{"identitytoken": "CANARY.x"}',
    "export NGC_API_KEY=nvapi-CANARY0",
    "HF_TOKEN=hf_CANARY0",
    'password: "CANARY"',
    "Authorization: Bearer CANARY.x.y",
    "/home/CANARY/data",
    "/media/CANARY/disk",
    "docker login -u '$oauthtoken' -p CANARY nvcr.io",
    "docker login --password CANARY nvcr.io",
    "curl -fsS -u name:CANARY https://x.test/v2/",
    "GET https://s3.test/layer?X-Amz-Signature=CANARY&x=1",
    "token eyJCANARY.eyJCANARY.CANARY",
    "AWS_SECRET_ACCESS_KEY=CANARY/x",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n-----END OPENSSH PRIVATE KEY-----",
)


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_masked(text: str) -> None:
    assert "***" in masked(text)
    assert "CANARY" not in masked(text)
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
        'Error response from daemon: Head "https://nvcr.io/v2/nvidia/pytorch/manifests/25.08-py3": unauthorized',
        "NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus.",
        "W: http://x.test/InRelease: Key is stored in legacy trusted.gpg keyring (/etc/apt/trusted.gpg)",
        'unauthorized: authentication required, token: {"code": 1}',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_the_doctor_shows_no_secret_of_a_pasted_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pasted = (
        "proxyconnect tcp: dial tcp: http://user:CANARY@proxy.test:3128 refused\n"
        "docker login -p CANARY nvcr.io: unauthorized: incorrect username or password, token=CANARY\n"
        "/home/CANARY/x.sh: line 3: nvidia-smi: command not found\n"
    )
    found = diagnose(read_evidence([pasted]))
    assert len(found.causes) >= 3
    lines = [line for each in found.causes for line in (*each.because, *each.against)]
    assert "CANARY" not in json.dumps(lines) and "***" in json.dumps(lines)
    file = tmp_path / "pasted.txt"
    file.write_text(pasted)
    assert main(["doctor", str(file)]) == 0 and main(["doctor", "--json", str(file)]) == 0
    assert "CANARY" not in capsys.readouterr().out
