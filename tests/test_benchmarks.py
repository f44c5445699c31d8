"""`python -m benchmarks` runs, says what it measures beside its target, and writes it down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.driver import Ran
from benchmarks.measured import Measured
from benchmarks.recorded import kind_of
from facts.packages import PackageLocks, PackagesOffered
from facts.survey import HostSurvey
from operations import apt
from operations.apt_scripts import CONFIGURE
from operations.driver import BUILD, UNLOAD


def test_one_benchmark_by_name_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    assert main(["help", "--json", str(file)]) == 0
    written = json.loads(file.read_text())
    assert written["schema"] == 1 and {each["benchmark"] for each in written["results"]} == {"help"}
    first = written["results"][0]
    assert first["target"] == 0.3 and first["ratio"] == pytest.approx(first["value"] / 0.3) and first["unit"] == "s"
    assert written["results"][2]["value"] == 0, "bringup --help loads what it does not need"
    out = capsys.readouterr().out
    assert out.count("\n") == 3 and "target     0.3 s" in out


def test_a_name_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["speed"])
    assert ended.value.code == 2 and f"there is no benchmark speed: {', '.join(BENCHMARKS)}" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BENCHMARKS, "help", lambda _: iter([Measured("nothing", 1, "s")]))
    assert main(["help", "--json", str(tmp_path / "gone" / "results.json")]) == 2
    assert "results.json could not be written (No such file or directory)" in capsys.readouterr().err


def test_a_value_beside_its_target() -> None:
    assert Measured("x", 5, "s", 10).line.split() == ["x", "5", "s", "target", "10", "s", "0.50", "of", "it"]
    assert Measured("x", 65536, "bytes").line.split() == ["x", "65,536", "bytes"] and Measured("x", 1, "").ratio is None


def test_what_an_exchange_is_counted_as() -> None:
    commands: dict[str, list[object]] = {
        "survey": [HostSurvey().command()],
        "packages": [apt.apt_get("install", "x"), CONFIGURE, BUILD],
    }
    commands["other"] = [PackageLocks().command(), PackagesOffered().command(["x"]), UNLOAD, "modprobe nvidia"]
    assert {kind: {kind_of(str(each)) for each in found} for kind, found in commands.items()} == {
        kind: {kind} for kind in commands
    }


def test_the_share_of_what_is_not_the_package_manager() -> None:
    ran = Ran(wall_s=100, packages_s=95, exchanges=9)
    assert ran.beside_s == 5 and ran.share == 0.05
