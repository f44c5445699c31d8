"""A pyinfra inventory -> what is needed to reach each of its hosts, and what its user chose. Opens no connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from pyinfra.api import Host, Inventory, State
from pyinfra.api.exceptions import NoGroupError
from pyinfra.connectors.local import LocalConnector
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.context import ctx_state

from bringup.errors import UserError
from bringup.settings import PREFIX, Settings, read_settings

CONNECT_S = 10
CONFIG_FILE = "~/.ssh/config"  # ssh's and pyinfra's default


@dataclass(frozen=True)
class HostSpec:
    """One host. `address`: what ssh is asked for, also where ssh's own configuration is looked up; None: this machine."""

    name: str
    address: str | None
    settings: Settings
    user: str | None = None
    port: int | None = None
    key: Path | None = None
    known_hosts: Path | None = None
    strict: str = "accept-new"  # pyinfra's default
    config_file: Path = field(default_factory=lambda: absolute(CONFIG_FILE))
    secret: str | None = field(default=None, repr=False)  # what ssh itself asks for: of the key, or of the user
    sudo: bool = False
    sudo_password: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """For messages: gpu-1 (10.0.0.11)."""
        return self.name if self.address in (None, self.name) else f"{self.name} ({self.address})"


def load(file: str, limit: list[str]) -> list[HostSpec]:
    """The hosts of an inventory file, group data included, as pyinfra reads them. Raises UserError."""
    if not Path(file).is_file():
        raise UserError(f"--inventory {file}: there is no such file")
    # Not at the top of the module: it monkey-patches the process (gevent), which unit tests do not need.
    from pyinfra_cli.inventory import make_inventory  # type: ignore[import-untyped]

    try:
        with ctx_state.use(State()):
            inventory: Inventory = make_inventory(file, cwd=str(Path.cwd()))
    except SystemExit:
        raise UserError(f"--inventory {file} ended by itself: see what it printed") from None
    except Exception as error:
        cause = getattr(error, "exception", error)  # pyinfra wraps what goes wrong in an inventory
        raise UserError(f"--inventory {file} cannot be read: {type(cause).__name__}: {cause}") from None
    hosts = select(inventory, limit)
    if not hosts:
        raise UserError(f"--inventory {file} has no hosts" + (f" that match {', '.join(limit)}" if limit else ""))
    return [spec_of(each) for each in hosts]


def select(inventory: Inventory, limit: list[str]) -> list[Host]:
    """pyinfra's --limit: names of groups, or names of hosts with wildcards. In the inventory's order."""
    chosen: set[str] = set()
    for pattern in limit:
        try:
            chosen |= {each.name for each in inventory.get_group(pattern)}
        except NoGroupError:
            chosen |= {each.name for each in inventory if fnmatch(each.name, pattern)}
    return [each for each in inventory if not limit or each.name in chosen]


def spec_of(host: Host) -> HostSpec:
    """Raises UserError."""
    data = host.data.dict()
    try:
        settings = read_settings({key: value for key, value in data.items() if key.startswith(PREFIX)})
    except UserError as error:
        raise UserError(f"{host.name}: {error}") from None
    sudo, sudo_password = bool(data.get("_sudo")), data.get("_sudo_password") or None
    if issubclass(host.connector_cls, LocalConnector):
        return HostSpec(host.name, None, settings, sudo=sudo, sudo_password=sudo_password)
    if not issubclass(host.connector_cls, SSHConnector):
        raise UserError(f"{host.name}: only hosts behind SSH, and @local, can be tested")
    return HostSpec(
        name=host.name,
        address=data.get("ssh_hostname") or host.name,
        settings=settings,
        user=data.get("ssh_user"),
        port=int(data["ssh_port"]) if data.get("ssh_port") else None,
        key=absolute(data["ssh_key"]) if data.get("ssh_key") else None,
        known_hosts=absolute(data["ssh_known_hosts_file"]) if data.get("ssh_known_hosts_file") else None,
        strict=data.get("ssh_strict_host_key_checking") or HostSpec.strict,
        config_file=absolute(data.get("ssh_config_file") or CONFIG_FILE),
        secret=data.get("ssh_key_password") or data.get("ssh_password"),
        sudo=sudo,
        sudo_password=sudo_password,
    )


def absolute(path: str) -> Path:
    return Path(path).expanduser().absolute()


def ssh_config(spec: HostSpec, control_path: Path) -> str:
    """A configuration of ssh for one host: one connection that all commands share, and the user's own file after ours.

    Ours is for this address alone: a jump host, which ssh reaches with the same file, gets the user's part only.
    """
    options = {
        "User": spec.user,
        "Port": spec.port,
        "IdentityFile": quoted(spec.key),
        "IdentitiesOnly": "yes" if spec.key else None,
        "UserKnownHostsFile": quoted(spec.known_hosts),
        "StrictHostKeyChecking": spec.strict,
        "BatchMode": None if spec.secret else "yes",
        "NumberOfPasswordPrompts": 1,
        "ConnectTimeout": CONNECT_S,
        "ServerAliveInterval": 5,
        "ControlMaster": "auto",
        "ControlPath": quoted(control_path),
        "ControlPersist": 120,  # seconds without a command; the suite ends it itself, unless it is killed
        "LogLevel": "ERROR",
    }
    ours = "".join(f"  {name} {value}\n" for name, value in options.items() if value is not None)
    return f"Host {spec.address}\n{ours}Match all\n  Include {quoted(spec.config_file)}\n"


def quoted(path: Path | None) -> str | None:
    """As ssh_config wants paths: in quotes, and without tokens such as %h."""
    return None if path is None else '"' + str(path).replace("%", "%%") + '"'
