"""NCCL's all-reduce over all GPUs of the host: bus bandwidth and a checked result, one process a GPU.

Prints one line of JSON. Needs torch with NCCL and nothing else, runs under Python 3.8 and newer. What fails or does not end in time is
tried once more without peer-to-peer, so that the cause has a name. Bus bandwidth as in nccl-tests: bytes / seconds * 2 (n - 1) / n, in
GB/s of 10^9.
"""

import json
import os
import statistics
import sys
import time

SIZES = {"all_reduce_64mib": 64 << 20, "all_reduce_1gib": 1 << 30, "all_reduce_4gib": 4 << 30}
LIMIT_S = 90  # for all of one try; without a limit a broken link hangs for ever
REPEATS = 10


def rank_(rank, count, meeting, out):
    """One process: writes what it measured, if it is the first."""
    import datetime

    import torch
    import torch.distributed as dist

    began = time.monotonic()
    torch.cuda.set_device(rank)
    limit = datetime.timedelta(seconds=LIMIT_S)
    dist.init_process_group("nccl", init_method="file://" + meeting, rank=rank, world_size=count, timeout=limit)
    one = torch.ones(1024, device="cuda")
    dist.all_reduce(one)
    torch.cuda.synchronize()
    found = {"first_ms": round((time.monotonic() - began) * 1000, 3), "bus_gb_per_s": {}, "wrong": None, "not_measured": {}}
    if not bool((one == count).all()):
        found["wrong"] = "the first all-reduce over %d GPUs gave %r" % (count, one[0].item())
    for name, size in SIZES.items():
        enough = torch.tensor([1 if torch.cuda.mem_get_info()[0] > 2 * size else 0], device="cuda")
        dist.all_reduce(enough, op=dist.ReduceOp.MIN)
        if not enough.item():
            found["not_measured"][name] = "too little free memory on a GPU"
            continue
        data = torch.full((size // 4,), float(rank + 1), device="cuda")
        dist.all_reduce(data)
        wanted = count * (count + 1) / 2
        if not bool((data == wanted).all()):  # a NaN is not equal either
            found["wrong"] = "%s gave a wrong sum on GPU %d" % (name, rank)
        data.zero_()  # sums stay finite however often they are taken
        took = []
        for _ in range(REPEATS):
            dist.barrier()
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            dist.all_reduce(data)
            end.record()
            end.synchronize()
            took.append(begin.elapsed_time(end) / 1000)
        found["bus_gb_per_s"][name] = round(size / statistics.median(took) * 2 * (count - 1) / count / 1e9, 3)
        del data
        torch.cuda.empty_cache()
    every = [None] * count
    dist.all_gather_object(every, found["wrong"])
    found["wrong"] = next((each for each in every if each), None)
    found["nccl"] = ".".join(str(each) for each in torch.cuda.nccl.version())
    if rank == 0:
        out.write(json.dumps(found))
        out.flush()
    dist.destroy_process_group()


def attempt(count, environment):
    """All ranks as children, ended together. Forked before CUDA is touched: a parent that has used it cannot fork."""
    import signal
    import tempfile

    children = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as words:
        for rank in range(count):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.environ.update(environment)
                    os.dup2(words.fileno(), 1)
                    os.dup2(words.fileno(), 2)
                    rank_(rank, count, os.path.join(folder, "meeting"), out)
                    code = 0
                except BaseException as error:
                    words.write("%s: %s\n" % (type(error).__name__, error))
                    words.flush()
                os._exit(code)
            children.append(child)
        until, failed, left = time.monotonic() + LIMIT_S, None, set(children)
        while left and failed is None:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended:
                left.discard(ended)
                failed = None if status == 0 else "a process of GPU %d ended with status %d" % (children.index(ended), status)
            elif time.monotonic() > until:
                failed = "no end after %d s" % LIMIT_S
            else:
                time.sleep(0.05)
        for child in left:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        out.seek(0)
        words.seek(0)
        said = [line.strip() for line in words.read().splitlines() if line.strip()]
        # the line that tells why: NCCL's own warnings before what Python says of them
        why = [line for line in said if "NCCL WARN" in line] or [line for line in said if "Error" in line] or said[-1:]
        text = out.read()
        if failed is None and text:
            return dict(json.loads(text), failed=None)
        return {"failed": (failed or "nothing was measured") + "".join(": " + each[:400] for each in why[:1])}


def interface(there="/sys/class/net"):
    """The one that NCCL begins on. The image's choice counts where it is there; a name of another host's would end in a hang."""
    asked = os.environ.get("NCCL_SOCKET_IFNAME", "")
    have = sorted(os.listdir(there)) if os.path.isdir(there) else []
    wanted = asked.lstrip("^=").split(",")
    if asked.startswith("^"):
        found = any(each not in wanted for each in have)
    elif asked.startswith("="):
        found = any(each in wanted for each in have)
    else:
        found = any(each.startswith(prefix) for each in have for prefix in wanted if prefix)
    # one host, and a container without network has no other than lo
    return {"asked": asked or None, "used": asked if asked and found else "lo", "there": have}


def devices():
    """Counted in a child: the parent must not touch CUDA."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            import torch

            os.write(writing, json.dumps([torch.cuda.device_count(), torch.__version__, None]).encode())
        except BaseException as error:
            os.write(writing, json.dumps([0, None, "%s: %s" % (type(error).__name__, error)]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as text:
        return json.loads(text.read() or '[0, null, "the GPUs could not be counted: the process died"]')


def main():
    began = time.monotonic()
    report = {"failed": None, "skipped": None}
    try:
        os.environ.setdefault("NCCL_DEBUG", "WARN")
        report["interface"] = interface()
        os.environ["NCCL_SOCKET_IFNAME"] = report["interface"]["used"]
        count, version, failed = devices()
        report.update(gpus=count, torch=version, failed=failed)
        if failed:
            pass
        elif count < 2:
            report["skipped"] = "%d GPU: there is nothing to reduce over" % count
        else:
            report.update(attempt(count, {}))
            if report["failed"]:
                again = attempt(count, {"NCCL_P2P_DISABLE": "1"})
                report["without_peer_to_peer"] = again
    except Exception as error:
        report["failed"] = "%s: %s" % (type(error).__name__, error)
    report["seconds"] = round(time.monotonic() - began, 3)
    print("\n" + json.dumps(report))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
