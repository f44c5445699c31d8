"""`bringup catalog`: what is printed, exit codes, hints, and that `--help` needs none of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from bringup.catalog import Catalog
from bringup.cli import main

Break = Callable[[str, str, str], Catalog]


def test_check_is_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "check", "--today", "2026-12-01"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 errors, ")


def test_check_names_the_fault_and_exits_1(broken: Break, capsys: pytest.CaptureFixture[str]) -> None:
    folder = broken("images.yml", 'cuda: "13.2"', 'cuda: "12.7"').folder
    assert main(["catalog", "check", "--folder", str(folder), "--today", "2026-11-30"]) == 1
    assert "error: images.yml: pytorch-2.14.1-cuda13.2 is made with CUDA 12.7" in capsys.readouterr().out


def test_check_of_a_file_that_cannot_be_read_exits_1(broken: Break, capsys: pytest.CaptureFixture[str]) -> None:
    folder = broken("images.yml", "images:", "images: [").folder
    assert main(["catalog", "check", "--folder", str(folder)]) == 1
    assert capsys.readouterr().out.startswith("error: images.yml: line ")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["gpu", "10de:2335"], ["name: H200 SXM 141GB", "kernel_module: open-or-proprietary"]),
        (["gpu", "10de:25b6"], ["10de:25b6: shared by 2 GPUs, the subdevice tells them apart", "name: A16", "name: A2"]),
        (["gpu", "10DE:25B6/157E"], ["name: A2"]),
        (["gpu", "l40s"], ["name: L40S"]),
        (["driver", "570"], ["on 2026-11-30: ended", "kernel modules: open, proprietary", "unfixed: bulletin 5821"]),
        (["driver", "620.70.06"], ["number: 620", "on 2026-11-30: supported", "kernel modules: open"]),
        (["driver", "615"], ["on 2026-11-30: end not known"]),
        (["cuda", "13.0.2"], ["version: 13.0", "  13.0.2: 580.95.05"]),
        (["image", "pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime"], ["name: pytorch-2.14.1-cuda13.2"]),
        (["distro", "debian", "12"], ["name: Debian 12 (bookworm)", "  - since: 450"]),
        (["distro", "rocky:9.6"], ["name: Rocky Linux 9"]),
    ],
)
def test_show(words: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "--today", "2026-11-30", *words]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line not in printed] == []


def test_show_keeps_provenance_and_names_the_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "gpu", "10de:2335"]) == 0
    printed = capsys.readouterr().out
    assert "memory_gib: 141 (measured, firsthand 2026-11-30)" in printed
    assert "(recalled, memory 2026-11-30)" in printed
    assert "\nfirsthand: nvidia-smi and torch on an H200 host" in printed
    assert "\ncalc: " not in printed  # a source that this entry does not use


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gpu", "10de:2334"], "the catalog has no GPU '10de:2334'; the nearest: 10de:2335"),
        (["gpu", "H20"], "the catalog has no GPU 'H20'; the nearest: H20 96GB, H20-3e 141GB, H20 NVL16, H200 SXM 141GB"),
        (["gpu", "A100"], "the catalog has no GPU 'A100'; the nearest: A100 SXM4 40GB, A100 SXM4 80GB, "),
        (["gpu", "Gforce", "RTX", "4090"], "the catalog has no GPU 'Gforce RTX 4090'; the nearest: GeForce RTX 4090"),
        (["driver", "581"], "the catalog has no driver branch '581'; the nearest: 580"),
        (["driver", "newest"], "the catalog has no driver branch 'newest'; the nearest: "),
        (["cuda", "12.7"], "the catalog has no CUDA toolkit '12.7'; the nearest: 12."),
        (["image", "pytorch-2.14.1"], "the nearest: pytorch-2.14.1-cuda13.2, pytorch-2.14.1-cuda12.6"),
        (["distro", "ubuntu", "24.10"], "the catalog has no distribution 'ubuntu 24.10'; the nearest: ubuntu 2"),
    ],
)
def test_an_unknown_key_names_the_nearest(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("bringup: ") and said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [[], ["catalog"], ["catalog", "show", "gpu"], ["catalog", "show", "cpu", "x"], ["catalog", "check", "--today", "soon"]],
)
def test_wrong_use_exits_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "bringup" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "check", "--folder", "/nowhere"]) == 2
    assert capsys.readouterr().err == (
        "bringup: /nowhere is not a folder: name one with gpus.yml and the other files of the catalog\n"
    )


def test_help_reads_neither_yaml_nor_pyinfra() -> None:
    code = "import sys; from bringup.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\nprint(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1]
    assert "usage: bringup" in done.stdout
    assert not any(f"'{name}'" in modules for name in ("yaml", "pyinfra", "gevent", "bringup.catalog"))


def images(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    code = main(["catalog", "images", *words])
    return code, capsys.readouterr().out.splitlines()


def test_images_is_a_table_with_a_reason_for_each_no(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = images(capsys, "--gpu", "H100", "--driver", "570.211.01")
    rows = [line.split(None, 9) for line in printed[1 : printed.index("")]]
    assert code == 0 and printed[0].split() == ["IMAGE", "CUDA", "TORCH", "FLAVOUR", "SIZE", "RUNS", "WHY"]
    assert {row[8] for row in rows} == {"yes", "no", "?"} and all(row[9] for row in rows)
    why = next(row[9] for row in rows if row[0] == "pytorch-2.14.1-cuda13.2")
    assert why == "pytorch-2.14.1-cuda13.2 needs a driver for CUDA 13 (580 or newer), branch 570 is for CUDA 12.8"
    assert any(line.startswith("devel: with compilers") for line in printed)
    assert printed[-1].startswith("for H100 SXM5 80GB, ") and printed[-1].endswith(" on x86_64")


def test_images_for_gpus_that_no_driver_of_the_branch_drives(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = images(capsys, "--gpu", "V100 SXM2 32GB", "--driver", "595")
    assert code == 1 and "Tesla V100 SXM2 32GB has no driver after branch 580" in printed[1]


def test_images_of_one_flavour_and_without_a_driver(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = images(capsys, "--flavour", "base")
    assert code == 0 and printed[1].split() == ["cuda-13.4.2-base", "13.4", "-", "base", "?", "/", "?", "GB"] and printed[2] == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "H10O", "--driver", "580"], "the catalog has no GPU 'H10O'; did you mean H100?"),
        (["--gpu", "", "--driver", "580"], "the catalog has no GPU ''"),
        (["--gpu", "NVIDIA", "--driver", "580"], "the catalog has no GPU 'NVIDIA'"),
        (["--gpu", "H100"], "--gpu needs --driver"),
        (["--gpu", "H100", "--driver", "58O"], "the catalog has no driver '58O': give a branch or a version of 450, "),
    ],
)
def test_images_asked_wrongly(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "images", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
