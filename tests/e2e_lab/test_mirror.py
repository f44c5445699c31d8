from __future__ import annotations

from pathlib import Path

import pytest

from e2e.lab.errors import LabError
from e2e.lab.mirror import apt_settings, choose


def test_debian_is_found_among_other_repositories() -> None:
    targets = """\
https://packages.example/apt/ stable/example
http://mirror.example/debian/ trixie
http://mirror.example/debian/ trixie-updates
http://other.example/debian-security/ trixie-security
https://node.example/ nodistro
"""
    assert choose(targets) == ("http://mirror.example/debian", "http://other.example/debian-security")


def test_the_security_archive_is_beside_the_other_when_it_is_not_named() -> None:
    assert choose("http://mirror.example/debian/ bookworm\n") == (
        "http://mirror.example/debian",
        "http://mirror.example/debian-security",
    )


def test_a_list_of_mirrors_as_in_cloud_images_gives_its_first(tmp_path: Path) -> None:
    mirrors = tmp_path / "debian.list"
    mirrors.write_text("# chosen by the provider\nhttp://mirror.example/debian\tpriority:1\nhttp://second.example/debian\n")
    assert choose(f"mirror+file:{mirrors} bookworm\n")[0] == "http://mirror.example/debian"


def test_a_machine_without_a_debian_mirror_is_told_what_to_add() -> None:
    with pytest.raises(LabError, match=r"knows no Debian mirror .* add one to /etc/apt/sources.list.d"):
        choose("http://ports.example/ubuntu/ noble\n")


def test_hosts_get_what_decides_how_the_mirror_is_reached_and_nothing_else() -> None:
    dump = """\
APT::Install-Recommends "1";
Acquire::GzipIndexes "true";
Acquire::Check-Valid-Until "false";
Acquire::http::Timeout "5";
Acquire::https "";
Acquire::Retries "2";
DPkg::Pre-Install-Pkgs:: "/usr/sbin/dpkg-preconfigure --apt || true";
"""
    assert apt_settings(dump, {}) == 'Acquire::Check-Valid-Until "false";\nAcquire::http::Timeout "5";\nAcquire::Retries "2";\n'


def test_a_proxy_from_the_environment_is_for_hosts_too_unless_apt_has_its_own() -> None:
    proxy = {"http_proxy": "http://proxy.example:3128"}
    assert apt_settings("", proxy) == 'Acquire::http::Proxy "http://proxy.example:3128";\n'
    configured = 'Acquire::http::Proxy "http://cache.example:3142";'
    assert apt_settings(configured, proxy) == f"{configured}\n"
