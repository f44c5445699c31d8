"""What an image's torch is built for, without a GPU: versions, and the architectures that it carries machine code or PTX for.

    python3 image_code.py       # one line of JSON

torch tells it itself; where it does not (none is linked, or it cannot be imported), `cuobjdump` reads it from the library, if that is in
the image. Runs in an image, sent over standard input; Python 3.8 and newer, standard library only.
"""

import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess

LIMIT_S = 300  # cuobjdump reads more than a gigabyte


def by_torch(report):
    import torch

    report["torch"] = torch.__version__
    report["cuda"] = torch.version.cuda
    flags = getattr(torch._C, "_cuda_getArchFlags", lambda: None)()
    report["code"] = (flags or "").split()


def by_cuobjdump(report):
    tool = shutil.which("cuobjdump", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    spec = importlib.util.find_spec("torch")
    if tool is None or spec is None or not spec.origin:
        return
    found = set()
    for library in glob.glob(os.path.join(os.path.dirname(spec.origin), "lib", "libtorch_cuda*.so")):
        for option in ("--list-elf", "--list-ptx"):
            done = subprocess.run([tool, option, library], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
            for number, kind in re.findall(r"\.sm_(\d+[af]?)\.(cubin|ptx)", done.stdout.decode(errors="replace")):
                found.add(("sm_" if kind == "cubin" else "compute_") + number)
    report["code"] = sorted(found)


def main():
    compat = bool(glob.glob("/usr/local/cuda*/compat/**/libcuda.so*", recursive=True))
    report = {"torch": None, "cuda": None, "code": [], "compat": compat, "failed": None}
    for way in (by_torch, by_cuobjdump):
        try:
            if not report["code"]:
                way(report)
        except Exception as error:
            report["failed"] = report["failed"] or "%s: %s" % (type(error).__name__, error)
    print(json.dumps(report))


main()
