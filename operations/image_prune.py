"""Images that this project pulled and no longer wants: removed where that is asked for, and never under a container."""

from __future__ import annotations

from pyinfra import logger, state
from pyinfra.api import QuoteString, StringCommand

from bringup.references import familiar, parts
from bringup.steps.images import replaced
from bringup.target import Target
from facts import live
from operations import shell
from operations.guard import Commands, host_operation
from operations.needed import needed
from operations.registry import with_digests

# $1 the image, $2 the tag that we gave it. Prints why it stays, or nothing. Stopped containers count: they could not start again.
USES = r"""
id=$(docker image inspect --format '{{.Id}}' "$1") || exit 0
names=$(docker ps -a --filter "ancestor=$id" --format '{{.Names}}' | tr '\n' ' ')
[ -z "$names" ] || { echo "used by ${names% }"; exit 0; }
for tag in $(docker image inspect --format '{{join .RepoTags " "}}' "$1"); do
    [ "$tag" = "$2" ] || { echo "also called $tag"; exit 0; }
done
"""
REMOVE = r"""
id=$(docker image inspect --format '{{.Id}}' "$1") || exit 0
[ "$(docker image inspect --format '{{.Id}}' "$2" 2>/dev/null)" != "$id" ] || docker image rm "$2" >/dev/null || exit 1
docker image inspect "$1" >/dev/null 2>&1 || exit 0
docker image rm "$1" >/dev/null
"""


@host_operation
def old_images(target: Target) -> Commands:
    """Remove them one by one; what is used or has another name by now stays, and it is said why."""
    target = with_digests(target)
    if needed("old-images", target) is None:
        return
    host = live.current_host()
    for reference in replaced(live.survey(), target) if state.is_executing else ("old",):
        given = familiar(reference), familiar(str(parts(reference).tagged or reference))
        if state.is_executing:
            success, said = shell.run(host, USES, *given)
            why = said.strip() if success else "whether it is used could not be asked"
            if why:
                host.log(f"{reference} stays: {why}", logger.info)
                continue
        yield StringCommand("sh", "-c", QuoteString(REMOVE), "sh", *(QuoteString(each) for each in given))
