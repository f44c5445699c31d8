"""Files that are not what they should be: one sentence with the file, the key, and the line where the YAML is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bringup.catalog import Catalog, CatalogError, load
from bringup.catalog.records import read_yaml

HEAD = "as_of: 2026-11-30\nsources:\n  a: {text: somewhere, as_of: 2026-01-02}\n"
RULES = "module_rules: {open_since: 515, open_default_since: 560, proprietary_before: 615}\nsecurity_floors: []\n"
BRANCH = (
    'number: 580, kind: lts, first: 2025-08-04, eol: 2028-06, newest: "580.1.2", status: supported, cuda: "13.0", sources: [a]'
)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (BRANCH + ", colour: red", "branches[580].colour is not a known field (known: number, kind, first"),
        (BRANCH.replace("kind: lts, ", ""), "branches[580].kind is missing"),
        (
            BRANCH.replace("lts", "long"),
            "branches[580].kind must be one of lts, production, new-feature, development, it is 'long'",
        ),
        (BRANCH.replace('"13.0"', "13.0"), "branches[580].cuda must be text, it is a number (13.0): put it in quotes"),
        (BRANCH.replace("580,", '"580",'), "branches[580].number must be a number, it is text ('580')"),
        (BRANCH.replace("580,", "true,"), "branches[True].number must be a number, it is true or false (True)"),
        (BRANCH.replace("2028-06", "2028-13"), "branches[580].eol must be a day or a month"),
        (BRANCH.replace("2028-06", "soon"), "branches[580].eol must be a day or a month (2026-11-30 or 2026-11), it is 'soon'"),
        (BRANCH.replace("[a]", "a"), "branches[580].sources must be a list, it is text ('a')"),
        (BRANCH.replace("[a]", "[b]"), "branches[580].sources[0] names the source 'b', which is not among the file's sources"),
        (BRANCH.replace('"580.1.2"', "null"), "branches[580].newest must be text, it is empty (None)"),
    ],
)
def test_a_wrong_branch(tmp_path: Path, entry: str, said: str) -> None:
    (tmp_path / "drivers.yml").write_text(f"{HEAD}{RULES}branches:\n- {{{entry}}}\n")
    with pytest.raises(CatalogError) as caught:
        _ = load(tmp_path).branches
    assert str(caught.value).startswith("drivers.yml: " + said)


def test_the_entry_that_the_others_are_made_from_is_right(tmp_path: Path) -> None:
    (tmp_path / "drivers.yml").write_text(f"{HEAD}{RULES}branches:\n- {{{BRANCH}}}\n")
    assert [branch.number for branch in load(tmp_path).branches] == [580]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("80", "must be VALUE PROVENANCE SOURCE (80 table tpu), it is 80"),
        ("80 table", "must be VALUE PROVENANCE SOURCE (80 table tpu), it is '80 table'"),
        ("80 guessed tpu", "must be VALUE PROVENANCE SOURCE (80 table tpu), it is '80 guessed tpu'"),
        ("80 table nobody", "names the source 'nobody', which is not among the file's sources"),
        ("many table tpu", "must begin with a number, it is 'many table tpu'"),
    ],
)
def test_a_wrong_number(broken: Callable[[str, str, str], Catalog], value: str, said: str) -> None:
    catalog = broken("gpus.yml", "memory_gib: 12 table tpu", f"memory_gib: {value}")
    with pytest.raises(CatalogError) as caught:
        _ = catalog.gpus
    assert str(caught.value) == f"gpus.yml: gpus[Tesla K80].memory_gib {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: 1\nb: [1, 2\nc: 3\n", "x.yml: line 3: not valid YAML: "),
        (b"a: 1\n\tb: 2\n", "x.yml: line 2: not valid YAML: "),
        (b"as_of: 2026-13-40\n", "x.yml: holds a value that cannot be: month must be in 1..12"),
        (b"- a\n- b\n", "x.yml: must be a mapping at its top, it is a list"),
        (b"", "x.yml: must be a mapping at its top, it is empty"),
        (b"a: \xff\xfe\n", "x.yml: is not UTF-8 text (byte 3)"),
        (b"a: !!python/object/apply:os.system [id]\n", "x.yml: line 1: not valid YAML: "),
    ],
)
def test_not_even_a_mapping(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "x.yml").write_bytes(text)
    with pytest.raises(CatalogError) as caught:
        read_yaml(tmp_path / "x.yml")
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"^gpus\.yml: cannot be read \(No such file or directory\)$"):
        _ = load(tmp_path).gpus


def test_only_the_file_that_is_asked_for_is_read(broken: Callable[[str, str, str], Catalog]) -> None:
    catalog = broken("images.yml", "images:", "pictures:")
    assert catalog.gpus and catalog.branches and catalog.distros
    with pytest.raises(CatalogError, match=r"images\.yml: pictures is not a known field"):
        _ = catalog.images
