/*
 * Stand-in for the CUDA driver library: enough of its interface to start up, and "kernels" that run on the CPU.
 * It works only where the real one would: driver loaded, of the same version, device nodes there and open to this process.
 */
#include "door.h"

typedef int CUresult;
typedef int CUdevice;
typedef struct context *CUcontext;
typedef unsigned long long CUdeviceptr;

enum {
	SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201, NOT_FOUND = 500, SYSTEM_NOT_READY = 802, SYSTEM_DRIVER_MISMATCH = 803, UNKNOWN = 999
};

struct context { CUdevice device; };

static int initialized, count, minors[MAX_GPUS];
static struct context contexts[MAX_GPUS];
static _Thread_local CUcontext current;

static const struct { CUresult code; const char *name, *text; } errors[] = {
	{SUCCESS, "CUDA_SUCCESS", "no error"},
	{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
	{SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
	{UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult describe(CUresult code, int text, const char **out) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		if (errors[i].code != code) continue;
		*out = text ? errors[i].text : errors[i].name;
		return SUCCESS;
	}
	*out = NULL;
	return INVALID_VALUE;
}
CUresult cuGetErrorName(CUresult code, const char **out) { return describe(code, 0, out); }
CUresult cuGetErrorString(CUresult code, const char **out) { return describe(code, 1, out); }

/* What the driver says now; asked again before every kernel, since a driver can go and a cgroup can change. */
static CUresult driver_state(void) {
	char text[64];
	if (door_read("version", text, sizeof text) != 0 || door_control_node() != NODE_OK) return NO_DEVICE;
	if (strcmp(text, VERSION) != 0) return SYSTEM_DRIVER_MISMATCH;
	int seen[MAX_GPUS];
	if (door_gpus(seen) == 0) return NO_DEVICE;
	/* GPUs on an NVSwitch fabric wait for the fabric manager */
	if (door_gpu(seen[0], "nvswitch", text, sizeof text) == 0 && strcmp(text, "yes") == 0 && door_read("fabric", text, sizeof text) != 0)
		return SYSTEM_NOT_READY;
	if (door_read("uvm", text, sizeof text) != 0) return UNKNOWN;
	return door_node("/dev/nvidia-uvm", (unsigned)atoi(text), 0) == NODE_OK ? SUCCESS : UNKNOWN;
}

CUresult cuInit(unsigned flags) {
	if (flags != 0) return INVALID_VALUE;
	CUresult result = driver_state();
	if (result == SUCCESS && !initialized) {
		count = door_gpus(minors);
		initialized = 1;
	}
	return result;
}

CUresult cuDriverGetVersion(int *version) {
	*version = CUDA_VERSION;
	return SUCCESS;
}

CUresult cuDeviceGetCount(int *out) {
	if (!initialized) return NOT_INITIALIZED;
	*out = count;
	return SUCCESS;
}

static CUresult check(CUdevice device) {
	if (!initialized) return NOT_INITIALIZED;
	return device >= 0 && device < count ? SUCCESS : INVALID_DEVICE;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	CUresult result = check(ordinal);
	if (result == SUCCESS) *device = ordinal;
	return result;
}

static CUresult value_of(CUdevice device, const char *key, char *text, int size) {
	CUresult result = check(device);
	if (result == SUCCESS && door_gpu(minors[device], key, text, (size_t)size) != 0) result = UNKNOWN;
	return result;
}
CUresult cuDeviceGetName(char *name, int size, CUdevice device) { return value_of(device, "name", name, size); }

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
	char text[64];
	CUresult result = value_of(device, "memory_total", text, sizeof text);
	if (result == SUCCESS) *bytes = (size_t)atol(text) << 20;
	return result;
}

/* Only the compute capability (75 major, 76 minor) and the number of multiprocessors (16). */
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
	char text[64];
	CUresult result = value_of(device, attribute == 16 ? "multiprocessors" : "compute_cap", text, sizeof text);
	if (result != SUCCESS) return result;
	const char *dot = strchr(text, '.');
	if (attribute == 75 || attribute == 16) *value = atoi(text);
	else if (attribute == 76 && dot != NULL) *value = atoi(dot + 1);
	else return INVALID_VALUE;
	return SUCCESS;
}

/* Keep the nodes open as a real context does, so that this process is seen to use them. By name only: opening them fails here. */
static void hold(CUdevice device) {
	static int held[MAX_GPUS], unified;
	char path[64];
	snprintf(path, sizeof path, "/dev/nvidia%d", minors[device]);
	if (!unified) unified = open("/dev/nvidia-uvm", DOOR_BY_NAME | O_CLOEXEC) >= 0;
	if (!held[device]) held[device] = open(path, DOOR_BY_NAME | O_CLOEXEC) >= 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	CUresult result = check(device);
	if (result == SUCCESS) result = driver_state();
	if (result != SUCCESS) return result;
	contexts[device].device = device;
	hold(device);
	*context = &contexts[device];
	return SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return check(device); }
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return check(device); }

CUresult cuCtxSetCurrent(CUcontext context) {
	if (!initialized) return NOT_INITIALIZED;
	current = context;
	return SUCCESS;
}

static CUresult ready(void) {
	if (!initialized) return NOT_INITIALIZED;
	return current == NULL ? INVALID_CONTEXT : driver_state();
}
CUresult cuCtxSynchronize(void) { return ready(); }

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
	CUresult result = ready();
	if (result != SUCCESS) return result;
	void *memory = malloc(bytes);
	*pointer = (CUdeviceptr)(size_t)memory;
	return memory == NULL ? OUT_OF_MEMORY : SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr pointer) {
	free((void *)(size_t)pointer);
	return SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
	CUresult result = ready();
	if (result == SUCCESS) memcpy((void *)(size_t)to, from, bytes);
	return result;
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
	CUresult result = ready();
	if (result == SUCCESS) memcpy(to, (const void *)(size_t)from, bytes);
	return result;
}

/*
 * No real library has this: one float32 "kernel" over n elements, for the stand-in torch. b = 0 takes the scalar as right operand.
 *   arange: out[i] = i    add, mul: out[i] = a[i] op b[i]    sum: out[0] = sum of a
 */
CUresult standinLaunch(const char *kernel, CUdeviceptr out, CUdeviceptr a, CUdeviceptr b, float scalar, size_t n) {
	CUresult result = ready();
	if (result != SUCCESS) return result;
	float *to = (float *)(size_t)out;
	const float *left = (const float *)(size_t)a, *right = (const float *)(size_t)b;
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		float other = right != NULL ? right[i] : scalar;
		if (strcmp(kernel, "arange") == 0) to[i] = (float)i;
		else if (strcmp(kernel, "add") == 0) to[i] = left[i] + other;
		else if (strcmp(kernel, "mul") == 0) to[i] = left[i] * other;
		else if (strcmp(kernel, "sum") == 0) sum += left[i];
		else return NOT_FOUND;
	}
	if (strcmp(kernel, "sum") == 0) to[0] = (float)sum;
	return SUCCESS;
}

/* What this library is, for anyone who asks. */
const char *standinVersion(void) { return "stand-in libcuda " VERSION ": simulated GPU"; }
