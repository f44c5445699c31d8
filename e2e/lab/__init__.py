"""Throw-away hosts on one Linux machine that behave like fresh cloud VMs: `lab.py` puts the parts together."""
