"""Collect each host's evidence, keep it under gpu_reports, and name the causes of what it shows; nothing is changed.

pyinfra inventories/cluster.py deploys/doctor.py
"""

from deploys.examination import examine

examine()
