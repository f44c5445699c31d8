"""What people run. One stage a file, each runnable alone; gpu_host.py strings them together; frame.py is the run itself.

Stage files are executed by pyinfra once per host, never imported.
"""
