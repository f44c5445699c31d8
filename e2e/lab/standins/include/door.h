/*
 * The door between the stand-in libraries and the simulated kernel's nvidia driver.
 *
 * A real library opens /dev/nvidiactl and asks by ioctl. Here the device nodes are looked at in the same way (there? the right
 * numbers? may this cgroup open them?) but nothing answers behind them, so the answers lie in files that the simulated kernel
 * keeps while its driver is loaded. Container runtimes mount that folder beside the device nodes.
 */
#ifndef DOOR_H
#define DOOR_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DOOR "/run/simulated-gpu/driver"
#define NVIDIA_MAJOR 195
#define NVIDIACTL_MINOR 255
#define MAX_GPUS 64
#define DOOR_BY_NAME 010000000 /* O_PATH, which POSIX does not know */

enum node { NODE_OK, NODE_MISSING, NODE_DENIED };

/* One line of a file of the driver; 0, or -1 when the driver does not have it (for "version": is not loaded). */
static inline int door_read(const char *name, char *text, size_t size) {
	char path[256];
	snprintf(path, sizeof path, DOOR "/%s", name);
	FILE *file = fopen(path, "re");
	if (file == NULL) return -1;
	char *line = fgets(text, (int)size, file);
	fclose(file);
	if (line == NULL) return -1;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

/* The value of KEY of the GPU that has this minor number; 0 or -1. */
static inline int door_gpu(int minor_number, const char *key, char *text, size_t size) {
	char path[256], line[512];
	snprintf(path, sizeof path, DOOR "/gpus/%d", minor_number);
	FILE *file = fopen(path, "re");
	if (file == NULL) return -1;
	size_t length = strlen(key);
	int found = -1;
	while (found != 0 && fgets(line, sizeof line, file) != NULL) {
		if (strncmp(line, key, length) != 0 || line[length] != '=') continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(text, size, "%s", line + length + 1);
		found = 0;
	}
	fclose(file);
	return found;
}

/* May this process use the device node? ENXIO from open means yes: the cgroup let it through, and nothing is behind it here. */
static inline enum node door_node(const char *path, unsigned major_number, unsigned minor_number) {
	struct stat st;
	if (stat(path, &st) != 0) return NODE_MISSING;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(major_number, minor_number)) return NODE_MISSING;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) close(fd);
	return fd < 0 && (errno == EPERM || errno == EACCES) ? NODE_DENIED : NODE_OK;
}

static inline enum node door_control_node(void) { return door_node("/dev/nvidiactl", NVIDIA_MAJOR, NVIDIACTL_MINOR); }

/* Minor numbers of the GPUs whose nodes this process may open, ascending; returns their number. */
static inline int door_gpus(int minors[MAX_GPUS]) {
	int count = 0;
	for (int i = 0; i < MAX_GPUS; i++) {
		char path[64], text[64];
		snprintf(path, sizeof path, "/dev/nvidia%d", i);
		if (door_gpu(i, "minor", text, sizeof text) == 0 && door_node(path, NVIDIA_MAJOR, (unsigned)i) == NODE_OK) minors[count++] = i;
	}
	return count;
}

#endif
