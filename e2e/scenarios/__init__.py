"""One folder a scenario, with its scenario.py; `python -m e2e scenarios` lists them."""
