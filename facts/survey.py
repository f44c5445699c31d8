"""What a host is, in one exchange: everything that the plan needs."""

from __future__ import annotations

import time
from pathlib import Path

from pyinfra.api import FactBase
from pyinfra.api.exceptions import FactProcessError
from typing_extensions import override

from bringup.survey import Survey
from bringup.survey.parse import parse_survey
from bringup.survey.sections import SurveyError
from facts.as_text import as_text

HERE = Path(__file__).parent
LIMIT_S = 15  # for everything in the survey that may block, together: nvidia-smi without persistence takes seconds on 8 GPUs


class HostSurvey(FactBase[Survey]):
    """One survey (the shape: bringup.survey.Survey), taken by one POSIX sh script. Without root, what needs it is `unreadable`.

    + wait_s: seconds to wait for cloud-init and package locks before looking

    Fails that host alone when the output is not whole; never returns half a survey.
    """

    @override
    def command(self, wait_s: int = 0) -> str:
        script = (HERE / "survey.sh").read_text()
        script = script.replace("#@package_locks.sh@ is put here\n", (HERE / "package_locks.sh").read_text())
        return as_text(script.replace("@WAIT_S@", str(int(wait_s))).replace("@LIMIT_S@", str(LIMIT_S)))

    @override
    def process(self, output: list[str]) -> Survey:
        try:
            return parse_survey(output, time.time())
        except SurveyError as error:
            raise FactProcessError(str(error)) from None
