"""For all hosts of an inventory in this folder. An inventory elsewhere has its own group_data beside it."""

_timeout = 900  # seconds; without a limit one lost host hangs the whole run
