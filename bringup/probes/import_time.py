"""How long an import takes in a fresh interpreter, and whether its compiled files (.pyc) are there and valid.

    python3 import_time.py                      # torch, three times; one line of JSON
    python3 import_time.py --module numpy --runs 10
    python3 import_time.py --compile            # compiles what was missing or stale, in place
    python3 import_time.py --cache /tmp/pyc --compile && python3 import_time.py --cache /tmp/pyc    # beside it, where that is read-only

A module without a valid .pyc is compiled anew at every start of a container, since what a container writes goes with it. Nothing is
written while measuring. Runs in an image, sent over standard input, or on any host; Python 3.8 and newer, standard library only.
"""

import argparse
import json
import os
import py_compile
import subprocess
import sys
import time

# In an interpreter of its own, which prints what it loaded: seconds of the import, and files of all modules.
CHILD = """
import sys, time
began = time.perf_counter()
__import__(sys.argv[1])
took = time.perf_counter() - began
import json
files = [getattr(getattr(each, "__spec__", None), "origin", None) or "" for each in list(sys.modules.values())]
print("\\n" + json.dumps([took, sorted({each for each in files if each.endswith(".py")})]))
"""


def imported(module, cache):
    """(seconds of the import, seconds of the whole interpreter, files); nothing is written."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    if cache:
        environment["PYTHONPYCACHEPREFIX"] = cache
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CHILD, module], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    whole = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
    took, files = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return took, whole, files


def state_of(file, cache):
    """`valid`, `stale`, `missing`, as importlib judges it (PEP 552)."""
    from importlib._bootstrap_external import SourceFileLoader
    from importlib.util import MAGIC_NUMBER

    try:
        with open(compiled(file, cache), "rb") as opened:
            head = opened.read(16)
    except OSError:
        return "missing"
    if len(head) < 16 or head[:4] != MAGIC_NUMBER:
        return "stale"
    flags = int.from_bytes(head[4:8], "little")
    if flags & 1:  # by a hash of the source, which is read only where flags say so
        if not flags & 2:
            return "valid"
        from importlib.util import source_hash

        return "valid" if head[8:16] == source_hash(SourceFileLoader("x", file).get_data(file)) else "stale"
    stat = os.stat(file)
    wanted = (int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF)
    return "valid" if (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")) == wanted else "stale"


def compiled(file, cache):
    from importlib.util import cache_from_source

    sys.pycache_prefix = cache or None
    return cache_from_source(file, optimization="")


def write(files, cache):
    """By hash, and unchecked: a later layer or a copy that changes times makes them stale no more. How many could not be written."""
    failed = 0
    for file in files:
        try:
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(file, compiled(file, cache), doraise=True, invalidation_mode=mode)
        except (OSError, py_compile.PyCompileError):
            failed += 1
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--module", default="torch")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--cache", default=os.environ.get("PYTHONPYCACHEPREFIX", ""), help="a folder for .pyc files beside the sources"
    )
    parser.add_argument("--compile", action="store_true", help="compile what has no valid .pyc, and measure then")
    given = parser.parse_args()
    report = {"module": given.module, "python": sys.version.split()[0], "cache": given.cache, "failed": None}
    report["dont_write_bytecode"] = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    try:
        _, _, files = imported(given.module, given.cache)  # also brings the files into the page cache
        if given.compile:
            report["not_compiled"] = write([each for each in files if state_of(each, given.cache) != "valid"], given.cache)
        states = [state_of(each, given.cache) for each in files]
        report.update(modules=len(files), **{each: states.count(each) for each in ("valid", "stale", "missing")})
        samples = [imported(given.module, given.cache)[:2] for _ in range(given.runs)]
        report["import_s"] = [round(took, 3) for took, _ in samples]
        report["interpreter_s"] = [round(whole, 3) for _, whole in samples]
    except Exception as error:
        report["failed"] = "%s: %s" % (type(error).__name__, error)
    print(json.dumps(report))


main()
