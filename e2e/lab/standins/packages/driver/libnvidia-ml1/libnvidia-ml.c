/*
 * Stand-in for the NVIDIA management library: initialisation with its failures, counting and naming GPUs.
 * All other values are read by nvidia-smi (a stand-in too) through standinField().
 */
#include "door.h"

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;

enum {
	SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9, LIB_RM_VERSION_MISMATCH = 18, UNKNOWN = 999
};

struct device { int minor_number; };
static struct device devices[MAX_GPUS];
static unsigned count;
static int initialized;

const char *nvmlErrorString(nvmlReturn_t result) {
	switch (result) {
	case SUCCESS: return "Success";
	case UNINITIALIZED: return "Uninitialized";
	case INVALID_ARGUMENT: return "Invalid Argument";
	case NOT_SUPPORTED: return "Not Supported";
	case NOT_FOUND: return "Not Found";
	case INSUFFICIENT_SIZE: return "Insufficient Size";
	case DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}

nvmlReturn_t nvmlInit_v2(void) {
	char version[64];
	if (door_read("version", version, sizeof version) != 0) return DRIVER_NOT_LOADED;
	switch (door_control_node()) {
	case NODE_MISSING: return DRIVER_NOT_LOADED;
	case NODE_DENIED: return UNKNOWN;
	case NODE_OK: break;
	}
	if (strcmp(version, VERSION) != 0) return LIB_RM_VERSION_MISMATCH;
	int minors[MAX_GPUS];
	count = (unsigned)door_gpus(minors);
	for (unsigned i = 0; i < count; i++) devices[i].minor_number = minors[i];
	initialized = 1;
	return SUCCESS;
}
nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }
nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
	(void)flags;
	return nvmlInit_v2();
}
nvmlReturn_t nvmlShutdown(void) {
	initialized = 0;
	return SUCCESS;
}

static nvmlReturn_t put(char *to, unsigned size, const char *text) {
	if (!initialized) return UNINITIALIZED;
	return (unsigned)snprintf(to, size, "%s", text) < size ? SUCCESS : INSUFFICIENT_SIZE;
}

/* Any value of a GPU by its key in the simulated hardware. */
nvmlReturn_t standinField(nvmlDevice_t device, const char *key, char *to, unsigned size) {
	char text[512];
	if (!initialized) return UNINITIALIZED;
	if (device == NULL) return INVALID_ARGUMENT;
	if (door_gpu(device->minor_number, key, text, sizeof text) != 0) return NOT_SUPPORTED;
	return put(to, size, text);
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned size) { return put(to, size, VERSION); }
nvmlReturn_t nvmlSystemGetNVMLVersion(char *to, unsigned size) {
	char text[64];
	snprintf(text, sizeof text, "%d." VERSION, CUDA_VERSION / 1000);
	return put(to, size, text);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
	*version = CUDA_VERSION;
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *to) {
	if (!initialized) return UNINITIALIZED;
	*to = count;
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
	if (!initialized) return UNINITIALIZED;
	if (index >= count) return INVALID_ARGUMENT;
	*device = &devices[index];
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *to, unsigned size) { return standinField(device, "name", to, size); }
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *to, unsigned size) { return standinField(device, "uuid", to, size); }
