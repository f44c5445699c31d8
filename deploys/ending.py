"""The end of a run, on every way out: each host's result is completed and written, and the summary printed."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from pyinfra import logger
from pyinfra.api import BaseStateCallback, Host, State
from pyinfra.api.operation import OperationMeta
from typing_extensions import override

from bringup.doctor import explain
from bringup.performance import fleet_notes
from bringup.report.fleet import fleet_files
from bringup.report.text import summary_lines
from bringup.report.unreachable import unreachable
from facts.connection import give_up, is_lost, transport_of
from operations import lock, shell
from operations.record import RUN
from operations.revision import revision

ANSWER_S = 15


class _Watch(BaseStateCallback):
    """Built-in operations fail too, and --no-wait forgets that they did."""

    @override
    @staticmethod
    def operation_host_error(state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0) -> None:
        if state.get_op_data_for_host(host, op_hash).global_arguments["_ignore_errors"]:
            return
        state.failed_hosts.add(host)
        result = RUN.of(host.name)
        result.ended = "failed"
        if is_lost(host) and not result.problems:  # what a command said last is then not why it ended
            result.problems.append("the connection to the host was lost in the middle of it: is the host on? Then run this again")
        lock.release(host)
        if transport_of(host) and not shell.run(host, ":", timeout_s=ANSWER_S)[0]:
            give_up(host)  # else pyinfra waits for it without a limit when it disconnects

    @override
    @staticmethod
    def operation_host_success(state: State, host: Host, op_hash: str, retry_count: int = 0) -> None:
        if op_hash == host.op_hash_order[-1]:  # its own: the order of all hosts' is made anew at each asking, from every host
            lock.release(host)


def step_name(state: State, op_hash: str) -> str:
    """`daemon-json` of the operation's label `deploys/container_runtime.py | daemon-json`."""
    return ", ".join(sorted(state.get_op_meta(op_hash).names)).rsplit(" | ", 1)[-1]


def last_words(meta: OperationMeta) -> str:
    """What a failed operation said: its first error, else its last line, on standard error where it said something there."""
    ours = [each.partition("gpu-bringup: ")[2] for each in meta.stderr_lines if each.startswith("gpu-bringup: ")]
    if ours:  # a script of ours that knew the reason
        return ours[-1][:400]
    lines = [each.strip() for each in (meta.stderr_lines or meta.stdout_lines) if each.strip()]
    errors = [each for each in lines if re.match(r"(E: |error|fatal)", each, re.I)]
    return (errors[0] if errors else lines[-1] if lines else "no answer: is the host still there?")[:400]


_registered = False


def register(current: State) -> None:
    """Have the end of this run looked after; once a process."""
    global _registered
    if not _registered:
        _registered = True
        atexit.register(the_end, current)


def wrong_use(message: str) -> SystemExit:
    """What to raise when the user gave something wrong: one sentence, exit 2, and no results of a run that was none."""
    atexit.unregister(the_end)
    logger.error(f"--> {message}")
    return SystemExit(2)


def watch(current: State) -> None:
    """Hear of failed operations, and look after the end; called for every host and stage, done once."""
    register(current)
    if not any(isinstance(each, _Watch) for each in current.callback_handlers):
        current.add_callback_handler(_Watch())


def the_end(done: State) -> None:
    """After everything that pyinfra prints: its results, "No hosts remaining!", an exception, Ctrl-C."""
    exit_code = 0
    if not done.initialised:
        return  # pyinfra ended before there was an inventory, and said why
    try:
        for each in done.inventory:
            if done.is_host_in_limit(each):
                RUN.reports = Path(str(each.data.get("gpu_reports", "reports")))
                complete(done, each)
        if not RUN.results:
            return
        for name, notes in fleet_notes(benchmarks()).items():
            RUN.results[name].notes += notes
        where = write(done) if done.is_executing or not RUN.all_ok() else None
        for line in summary_lines(RUN.results.values(), executed=done.is_executing, where=str(where) if where else None):
            logger.info(line)
        if not RUN.all_ok() and not done.failed_hosts:  # Ctrl-C: pyinfra exits 0
            exit_code = 1
    except Exception as error:  # it would be swallowed, and the run exit 0
        logger.error(f"gpu-bringup: the results could not be written: {type(error).__name__}: {error}")
        exit_code = 1
    if exit_code:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)  # the one way left to set the exit code


def benchmarks() -> dict[str, dict[str, Any]]:
    """What was measured of the GPUs in this run, by host."""
    found = {name: (result.measured.get("gpu_benchmark") or {}).get("result") for name, result in RUN.results.items()}
    return {name: result for name, result in found.items() if result}


def complete(done: State, each: Host) -> None:
    """What can only be known at the end: how it ended, and what was changed."""
    result = RUN.of(each.name)
    result.revision = revision()
    own = done.ops[each]
    ran = [(op_hash, data.operation_meta) for op_hash, data in own.items() if data.operation_meta.is_complete()]
    result.changed = [step_name(done, op_hash) for op_hash, meta in ran if meta.did_change()]
    failed = [(step_name(done, op_hash), meta) for op_hash, meta in ran if meta.did_error()]
    said: list[str] = []
    if failed:
        step, meta = failed[0]
        said = [*meta.stdout_lines, *meta.stderr_lines]
        if not result.problems:
            result.problems.append(f"{step} failed: {last_words(meta)}")
        elif step != "proof":
            result.problems[0] = f"{step}: {result.problems[0]}"
    if result.problems and result.ended != "refused":  # a refusal names its way out itself
        # what several checks said stands in one line: to the doctor each is a message of its own
        result.notes += explain("\n".join([*(part for each in result.problems for part in each.split("; ")), *said]))
    if each not in done.activated_hosts:
        result.ended = "unreachable"
        result.problems = result.problems or [unreachable(RUN.unreached.get(each.name))]
    elif result.ended == "stopped" and not done.is_executing:
        result.ended = "planned"
    elif result.ended == "stopped":
        finished = all(data.operation_meta.is_complete() for data in own.values())
        result.ended = "done" if finished and not result.problems else "failed" if result.problems else "stopped"
        if result.ended == "stopped":
            result.problems.append("the run was ended before this host was finished: run it again")
    if result.function == "not asked" and done.is_executing and result.ended != "done":
        result.function = "not proven"  # a proof that ended without a word was not asked for: gpu_verify off, or no GPU expected


def transcript(done: State, each: Host) -> list[str]:
    """What every operation did on the host, and what its commands printed. The commands themselves are left out: they may hold secrets."""
    lines = [f"{RUN.id} {each.name}, gpu-bringup {revision()}"]
    for op_hash in done.get_op_order() if done.is_executing else []:
        data = done.ops[each].get(op_hash)
        if data is None or not data.operation_meta.is_complete():
            continue
        meta = data.operation_meta
        lines.append(
            f"{step_name(done, op_hash)}: {'failed' if meta.did_error() else 'changed' if meta.did_change() else 'no change'}"
        )
        lines += [f"    {line}" for line in (*meta.stdout_lines, *meta.stderr_lines)]
    return [*lines, *(f"problem: {problem}" for problem in RUN.of(each.name).problems)]


def file_name(host: str) -> str:
    """Safe for a file: host names may be `@docker/x` or a URL."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", host).strip("_.") or "host"


def write(done: State) -> Path:
    """One JSON file per host, and its transcript; then the fleet's files. `reports/latest` links to the newest run."""
    folder = RUN.reports / RUN.started
    folder.mkdir(parents=True, exist_ok=True)
    used: set[str] = set()
    for each in done.inventory:
        if done.is_host_in_limit(each):
            base = folder / file_name(each.name)
            if base.name in used:  # a/b and a_b
                base = base.with_name(f"{base.name}-{hashlib.sha256(each.name.encode()).hexdigest()[:6]}")
            used.add(base.name)
            base.with_name(f"{base.name}.json").write_text(json.dumps(RUN.of(each.name).as_json(), indent=2) + "\n")
            base.with_name(f"{base.name}.log").write_text("\n".join(transcript(done, each)) + "\n")
    for name, text in fleet_files([RUN.results[name] for name in sorted(RUN.results)]).items():
        (folder / name).write_text(text, encoding="utf-8")
    link = RUN.reports / "latest.new"
    link.unlink(missing_ok=True)
    link.symlink_to(RUN.started)
    link.replace(RUN.reports / "latest")
    return folder
