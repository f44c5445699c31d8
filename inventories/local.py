"""This machine itself, without SSH:  pyinfra inventories/local.py deploys/plan.py"""

import os

hosts = [("@local", {"_sudo": os.geteuid() != 0})]
