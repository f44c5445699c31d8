"""A host on a machine with a real GPU: the machine's own driver and devices, in a container with a systemd, sshd and Docker of its own.

Made by `python -m e2e test hardware`. Beside the machine it needs a kit (kit.py): a folder that is carried there, since GPU machines of
test fleets often have no network.
"""
