"""Docker, NVIDIA's container toolkit, the CDI spec, and Docker's daemon.json with the one restart of Docker."""

from bringup.target import Target
from deploys.frame import stage
from operations import cdi, docker, packages, sources, toolkit


def container_runtime(target: Target) -> None:
    wanted = target.toolkit.repository if target.toolkit else None
    names = target.toolkit.packages if target.toolkit else ()
    engine = target.docker
    sources.repository(
        name="docker-repository", step="docker-repository", target=target, wanted=engine.repository, packages=engine.packages
    )
    docker.docker_engine(name="docker-engine", target=target)
    docker.docker_users(name="docker-users", target=target)
    sources.repository(name="toolkit-repository", step="toolkit-repository", target=target, wanted=wanted, packages=names)
    toolkit.toolkit_packages(name="toolkit-packages", target=target)
    toolkit.toolkit_leftovers(name="toolkit-leftovers", target=target)
    packages.package_holds(name="package-holds", target=target)
    toolkit.toolkit_config(name="toolkit-config", target=target)
    cdi.cdi_spec(name="cdi-spec", target=target)
    docker.daemon_json(name="daemon-json", target=target)


stage(container_runtime)
