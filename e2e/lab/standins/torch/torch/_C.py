"""What the stand-in says that it is built for; an image's variable makes it another one."""

from __future__ import annotations

import os


def _cuda_getArchFlags() -> str:
    return os.environ.get("STANDIN_TORCH_CODE", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120")
