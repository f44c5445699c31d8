"""The main job: from a fresh VM to a proven GPU host.

pyinfra inventories/cluster.py deploys/gpu_host.py
"""

from pyinfra import local

local.include("deploys/preflight.py")
local.include("deploys/kernel.py")
local.include("deploys/driver.py")
local.include("deploys/limits.py")
local.include("deploys/container_runtime.py")
local.include("deploys/images.py")
local.include("deploys/verify.py")
