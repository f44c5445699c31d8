"""Who may import whom (design §1), read from the source; and that the command starts without pyinfra."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"bringup", "facts", "operations", "deploys", "inventories", "tests", "e2e", "benchmarks"}
MAY = {
    "bringup": {"bringup"},
    "facts": {"bringup", "facts"},
    "operations": {"bringup", "facts", "operations"},
    "deploys": {"bringup", "facts", "operations", "deploys"},
    "inventories": {"bringup"},
}
OUTSIDE = {
    "pyinfra",
    "pyinfra_cli",
    "gevent",
    "subprocess",
    "socket",
    "paramiko",
    "requests",
    "urllib",
    "http",
    "docker",
    "asyncio",
    "ssl",
}
FILE_CALLS = {
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "mkdir",
    "unlink",
    "rename",
    "replace_with",
    "iterdir",
    "glob",
}
READS_FILES = {"bringup/cli.py", "bringup/probes/__init__.py", "bringup/catalog/records.py"}
# run inside a container, and are never imported
PROBES = ("cuda_startup.py", "gpu_benchmark.py", "image_code.py", "import_time.py", "nccl_benchmark.py")
LAB_WORDS = ("gbl", "198.18.", "gpu-bringup-lab", "stand_in", "lab.json", "GPU_BRINGUP_LAB")
KNOWS_THE_LAB = {"inventories/lab.py"}


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """The modules that a file names in imports, wherever in it: `bringup.survey`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            within = ".".join(path.relative_to(ROOT).parts[: -node.level]) + "." if node.level else ""
            found |= {f"{within}{node.module or ''}.{each.name}".replace("..", ".") for each in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("__import__", "import_module", "importlib.import_module"):
            found.add(ast.unparse(node))
    return found


def tops(path: Path) -> set[str]:
    return {each.split(".")[0] for each in imports(path)}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("folder", MAY)
def test_a_folder_imports_only_what_stands_before_it(folder: str) -> None:
    files = sources(folder)
    assert files, f"{folder} has no files: the test looks in the wrong place"
    wrong = {name(path): sorted(bad) for path in files if (bad := (tops(path) & OURS) - MAY[folder])}
    assert wrong == {}


def test_the_settings_of_pyinfra_import_only_deploys() -> None:
    assert tops(ROOT / "config.py") & OURS <= {"deploys"}


def test_what_decides_reaches_neither_hosts_nor_the_network() -> None:
    decides = [path for path in sources("bringup") if path.name not in PROBES]
    wrong = {name(path): sorted(bad) for path in decides if (bad := tops(path) & OUTSIDE)}
    assert wrong == {}
    imported = {each for path in sources("bringup") if "probes" not in path.parts for each in imports(path)}
    assert not {each for each in imported if each.split(".")[0] in ("tempfile", "shutil", "glob", "atexit", "signal", "time")}
    assert not {each for each in imported if each.startswith("os.") or each == "os"}


def test_only_the_command_and_the_loaders_of_data_touch_files() -> None:
    found = set()
    for path in sources("bringup"):
        if path.name in PROBES:
            continue
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        called = {
            func.attr if isinstance(func, ast.Attribute) else func.id
            for func in calls
            if isinstance(func, ast.Attribute | ast.Name)
        }
        if called & FILE_CALLS:
            found.add(name(path))
    assert found <= READS_FILES


def test_today_is_given_and_never_looked_up_by_what_decides() -> None:
    """A plan must come out the same for the same survey; only the command asks the clock."""
    asked = {
        name(path)
        for path in sources("bringup")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("date.today", "datetime.now", "time.time", "datetime.utcnow")
    }
    assert asked <= {"bringup/cli.py"}


def test_stage_files_are_executed_and_never_imported() -> None:
    """Imported, a stage would queue its operations for the first host alone, and the run exit 0 (pyinfra-pattern, pitfall 11)."""
    stages = {
        f"deploys.{path.stem}"
        for path in (ROOT / "deploys").glob("*.py")
        if "deploys.frame.stage" in imports(path) or path.stem == "gpu_host"
    }
    assert {"deploys.driver", "deploys.verify", "deploys.gpu_host"} <= stages
    everyone = [path for folder in (*MAY, "tests", "e2e") for path in sources(folder)] + [ROOT / "config.py"]
    wrong = {
        name(path): each for path in everyone for each in imports(path) if any(f"{each}.".startswith(f"{s}.") for s in stages)
    }
    assert wrong == {}


def test_every_stage_that_gpu_host_strings_together_is_there() -> None:
    tree = ast.parse((ROOT / "deploys" / "gpu_host.py").read_text())
    included = [ast.literal_eval(node.args[0]) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert len(included) == len(set(included)) >= 7
    assert [each for each in included if not (ROOT / each).is_file()] == []


@pytest.mark.parametrize("folder", ["bringup", "facts", "operations", "deploys", "inventories", "config.py"])
def test_nothing_outside_e2e_knows_of_the_lab_but_its_inventory(folder: str) -> None:
    paths = [ROOT / folder] if folder.endswith(".py") else [each for each in (ROOT / folder).rglob("*") if each.is_file()]
    texts = {
        name(path): path.read_text()
        for path in paths
        if path.suffix in (".py", ".sh", ".yml") and "__pycache__" not in path.parts
    }
    knows = {path: word for path, text in texts.items() if path not in KNOWS_THE_LAB for word in LAB_WORDS if word in text}
    assert knows == {}
    assert {path for path in texts if path.endswith(".py") and "e2e" in tops(ROOT / path)} == set()


def test_the_command_starts_without_pyinfra() -> None:
    """pip installs bringup alone, and `--help` must not take a second: pyinfra patches the standard library when it is imported."""
    code = "import sys, bringup.cli, bringup.plan; print(sorted({each.split('.')[0] for each in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60)
    loaded = set(ast.literal_eval(done.stdout))
    assert loaded & (OUTSIDE - {"subprocess", "socket", "urllib", "http", "asyncio", "ssl"}) == set()
    assert loaded & (OURS - {"bringup"}) == set()
