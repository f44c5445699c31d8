"""What pyinfra itself takes for five one-line facts, one after the other on each host."""

from pyinfra import host
from pyinfra.facts.server import Command

for _number in range(5):
    host.get_fact(Command, command=f"echo {_number}")
