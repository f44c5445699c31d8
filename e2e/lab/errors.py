"""What a user of the lab is told when something is wrong."""


class LabError(Exception):
    """One sentence with the value at fault, and the next step; shown without a traceback."""
