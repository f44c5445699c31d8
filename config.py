"""Read by pyinfra from the working directory. sudo is host data (`_sudo`), never set here."""

from pyinfra import config

from deploys.beginning import begin

config.REQUIRE_PYINFRA_VERSION = "~=3.10"
config.CONNECT_TIMEOUT = 15  # seconds

begin()
