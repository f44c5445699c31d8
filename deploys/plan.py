"""What gpu_host.py would do, as a table; nothing is changed. Exit 0 all planned, 3 any host refused, 1 any without a survey.

pyinfra inventories/cluster.py deploys/plan.py
"""

from deploys.preview import preview

preview()
