#!/bin/sh
# The floor: what gpu_host.py does on a fresh lab host (Debian 12, one T4, no nouveau), as plain commands without a look, a check or a way back.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
driver_url=$1 driver_key=$2 toolkit_url=$3 toolkit_key=$4 registry=$5 image=$6
install='apt-get -q -y install --no-install-recommends'
printf 'DPkg::Lock::Timeout "600";\n' >/etc/apt/apt.conf.d/90-gpu-host
printf 'blacklist nouveau\nblacklist nova_core\nblacklist nova_drm\n' >/etc/modprobe.d/gpu-host.conf
source_of() { # NAME URL KEY
	/usr/lib/apt/apt-helper download-file "$3" "/usr/share/keyrings/$1.asc"
	printf 'Types: deb\nURIs: %s\nSuites: /\nSigned-By: /usr/share/keyrings/%s.asc\n' "$2" "$1" >"/etc/apt/sources.list.d/$1.sources"
	apt-get -q update
}
source_of driver "$driver_url" "$driver_key"
$install "linux-headers-$(uname -r)"
$install nvidia-driver-cuda nvidia-kernel-open-dkms nvidia-persistenced
modprobe nvidia
modprobe nvidia-uvm
systemctl enable --now nvidia-persistenced
$install docker.io
source_of toolkit "$toolkit_url" "$toolkit_key"
$install nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
apt-mark hold nvidia-driver-cuda nvidia-kernel-open-dkms nvidia-persistenced nvidia-container-toolkit nvidia-container-toolkit-base \
	libnvidia-container-tools libnvidia-container1
cat >/etc/docker/daemon.json <<END
{"default-shm-size": "8g", "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}, "default-runtime": "nvidia",
 "insecure-registries": ["$registry"]}
END
systemctl restart docker
docker pull -q "$image"
