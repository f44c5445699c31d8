/*
 * Stand-in nvidia-smi: -L, -q -x, --query-gpu, --query-compute-apps and the plain table, with -i. It needs the (stand-in)
 * libnvidia-ml and fails as the real one does: no library, driver not loaded, version mismatch, no device.
 */
#include "door.h"

#include <dirent.h>
#include <dlfcn.h>
#include <strings.h>
#include <time.h>

#include "fields.h"

static const char gpu_xml[] =
#include "gpu.xml.h"
	;

typedef struct device *Device;
static int (*init)(void);
static const char *(*error_string)(int);
static int (*get_count)(unsigned *);
static int (*get_handle)(unsigned, Device *);
static int (*get_field)(Device, const char *, char *, unsigned);

static Device gpus[MAX_GPUS];
static unsigned indexes[MAX_GPUS], count;
static char now[64];

static void *symbol(void *library, const char *name) {
	void *found = dlsym(library, name);
	if (found != NULL) return found;
	printf("nvidia-smi (stand-in): this libnvidia-ml.so.1 is not the stand-in's: %s is missing\n", name);
	exit(12);
}

static void start(void) {
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (library == NULL) {
		puts("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is "
		     "properly installed and present in your system.\nPlease also try adding directory that contains libnvidia-ml.so to "
		     "your system PATH.");
		exit(12);
	}
	*(void **)&init = symbol(library, "nvmlInit_v2");
	*(void **)&error_string = symbol(library, "nvmlErrorString");
	*(void **)&get_count = symbol(library, "nvmlDeviceGetCount_v2");
	*(void **)&get_handle = symbol(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&get_field = symbol(library, "standinField");
	/* as root on a host, the device nodes come into being by asking (the real one would load the module, too) */
	char version[64];
	if (geteuid() == 0 && door_read("version", version, sizeof version) == 0 && access("/usr/bin/nvidia-modprobe", X_OK) == 0 &&
	    system("/usr/bin/nvidia-modprobe >/dev/null 2>&1") != 0) { /* init will say what is wrong */
	}
	int result = init();
	if (result == 9) {
		puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
		     "driver is installed and running.\n");
		exit(9);
	}
	if (result != 0) {
		printf("Failed to initialize NVML: %s\n", error_string(result));
		if (result == 18) printf("NVML library version: %.*s\n", (int)(strrchr(VERSION, '.') - VERSION), VERSION);
		exit(result == 18 ? 18 : 255);
	}
}

static const char *value(unsigned i, const char *key) {
	static char text[512];
	const int fabric = get_field(gpus[i], "nvswitch", text, sizeof text) == 0 && strcmp(text, "yes") == 0;
	const int registered = fabric && door_read("fabric", text, sizeof text) == 0;
	if (strcmp(key, "timestamp") == 0) return now;
	if (strcmp(key, "driver_version") == 0) return VERSION;
	if (strcmp(key, "gsp") == 0) return get_field(gpus[i], "gsp_processor", text, sizeof text) == 0 && *text == 'y' ? VERSION : "N/A";
	if (strcmp(key, "persistence_mode") == 0) return door_read("persistence", text, sizeof text) == 0 ? "Enabled" : "Disabled";
	if (strcmp(key, "fabric_state") == 0) return registered ? "Completed" : fabric ? "In Progress" : "N/A";
	if (strcmp(key, "fabric_status") == 0) return registered ? "Success" : "N/A";
	if (strcmp(key, "fabric_clique") == 0) return registered ? "0" : "N/A";
	if (strcmp(key, "fabric_cluster") == 0) return registered ? "00000000-0000-0000-0000-000000000000" : "N/A";
	if (strcmp(key, "count") == 0) snprintf(text, sizeof text, "%u", count);
	else if (strcmp(key, "index") == 0) snprintf(text, sizeof text, "%u", indexes[i]);
	else if (key[0] == '=') snprintf(text, sizeof text, "%s", key + 1);
	else if (get_field(gpus[i], key, text, sizeof text) != 0) return "N/A";
	return text;
}

/* Keep the GPUs that -i names by index, UUID or bus id; all without -i. */
static void choose(const char *ids) {
	unsigned all, kept = 0;
	Device handle;
	get_count(&all);
	for (unsigned i = 0; i < all; i++) {
		get_handle(i, &handle);
		gpus[kept] = handle;
		indexes[kept] = i;
		char list[512], index[16];
		snprintf(list, sizeof list, "%s", ids);
		snprintf(index, sizeof index, "%u", i);
		int wanted = ids[0] == '\0';
		for (char *id = strtok(list, ","); id != NULL; id = strtok(NULL, ","))
			if (strcmp(id, index) == 0 || strcasecmp(id, value(kept, "uuid")) == 0 || strcasecmp(id, value(kept, "bus_id")) == 0) wanted = 1;
		if (wanted) kept++;
	}
	count = kept;
	if (kept > 0) return;
	puts(ids[0] == '\0' ? "No devices were found" : "No devices were found matching the given id");
	exit(6);
}

static void list(void) {
	for (unsigned i = 0; i < count; i++) {
		printf("GPU %u: %s ", indexes[i], value(i, "name"));
		printf("(UUID: %s)\n", value(i, "uuid"));
	}
}

static void xml(void) {
	printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n<nvidia_smi_log>\n"
	       "\t<timestamp>%s</timestamp>\n\t<driver_version>" VERSION "</driver_version>\n\t<cuda_version>" CUDA "</cuda_version>\n"
	       "\t<attached_gpus>%u</attached_gpus>\n", now, count);
	for (unsigned i = 0; i < count; i++) {
		for (const char *at = gpu_xml; *at != '\0';) {
			size_t plain = strcspn(at, "@");
			fwrite(at, 1, plain, stdout);
			at += plain;
			if (*at == '\0') break;
			char key[64];
			size_t length = strcspn(at + 1, "@");
			snprintf(key, sizeof key, "%.*s", (int)length, at + 1);
			fputs(value(i, key), stdout);
			at += length + 2;
		}
		putchar('\n');
	}
	puts("</nvidia_smi_log>");
}

static const struct field *find_field(const char *name) {
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (strcmp(fields[i].name, name) == 0) return &fields[i];
	printf("Field \"%s\" is not a valid field to query.\n\n", name);
	exit(2);
}

static void query(const char *names, const char *format) {
	const struct field *asked[64];
	unsigned columns = 0;
	char copy[1024];
	snprintf(copy, sizeof copy, "%s", names);
	for (char *name = strtok(copy, ", "); name != NULL && columns < 64; name = strtok(NULL, ", ")) asked[columns++] = find_field(name);
	const int units = strstr(format, "nounits") == NULL;
	for (unsigned c = 0; c < columns && strstr(format, "noheader") == NULL; c++)
		printf("%s%s%s%s%s", asked[c]->name, *asked[c]->unit ? " [" : "", asked[c]->unit, *asked[c]->unit ? "]" : "", c + 1 < columns ? ", " : "\n");
	for (unsigned i = 0; i < count; i++)
		for (unsigned c = 0; c < columns; c++) {
			const char *text = value(i, asked[c]->key);
			const int missing = strcmp(text, "N/A") == 0;
			printf("%s%s%s%s%s%s", missing ? "[" : "", text, missing ? "]" : "", units && !missing && *asked[c]->unit ? " " : "",
			       units && !missing ? asked[c]->unit : "", c + 1 < columns ? ", " : "\n");
		}
}

/* Does the process have this device node open? */
static int holds(const char *pid, const char *node) {
	char path[300], target[64];
	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	DIR *folder = opendir(path);
	if (folder == NULL) return 0;
	int found = 0;
	for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) {
		snprintf(path, sizeof path, "/proc/%s/fd/%.20s", pid, entry->d_name);
		ssize_t length = readlink(path, target, sizeof target - 1);
		found = length > 0 && (size_t)length == strlen(node) && strncmp(target, node, (size_t)length) == 0;
	}
	closedir(folder);
	return found;
}

static void app(const char *pid, unsigned i, const char *names, int units) {
	char copy[512], path[300], command[256] = "[Not Found]";
	snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
	FILE *file = fopen(path, "re");
	if (file != NULL) {
		if (fread(command, 1, sizeof command - 1, file) == 0) strcpy(command, "[Not Found]");
		command[sizeof command - 1] = '\0';
		command[strcspn(command, " ")] = '\0';
		fclose(file);
	}
	snprintf(copy, sizeof copy, "%s", names);
	const char *comma = "";
	for (char *name = strtok(copy, ", "); name != NULL; name = strtok(NULL, ", "), comma = ", ") {
		if (strcmp(name, "pid") == 0) printf("%s%s", comma, pid);
		else if (strcmp(name, "process_name") == 0 || strcmp(name, "name") == 0) printf("%s%s", comma, command);
		else if (strncmp(name, "used_", 5) == 0) printf("%s512%s", comma, units ? " MiB" : "");
		else printf("%s%s", comma, value(i, find_field(name)->key));
	}
	putchar('\n');
}

/* Processes that compute: the daemons have a GPU's node open, too, but not that of unified memory. */
static void apps_of_gpus(const char *names, const char *format) {
	const int units = strstr(format, "nounits") == NULL;
	if (strstr(format, "noheader") == NULL) {
		char copy[512];
		const char *comma = "";
		snprintf(copy, sizeof copy, "%s", names);
		for (char *name = strtok(copy, ", "); name != NULL; name = strtok(NULL, ", "), comma = ", ")
			printf("%s%s%s", comma, name, units && strncmp(name, "used_", 5) == 0 ? " [MiB]" : "");
		putchar('\n');
	}
	DIR *folder = opendir("/proc");
	if (folder == NULL) return;
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || !holds(entry->d_name, "/dev/nvidia-uvm")) continue;
		for (unsigned i = 0; i < count; i++) {
			char node[64];
			snprintf(node, sizeof node, "/dev/nvidia%s", value(i, "minor"));
			if (holds(entry->d_name, node)) app(entry->d_name, i, names, units);
		}
	}
	closedir(folder);
}

static void table(void) {
	const char *line = "+-----------------------------------------------------------------------------------------+";
	const char *columns = "+-----------------------------------------+------------------------+----------------------+";
	printf("%s       \n%s\n| NVIDIA-SMI %-23sDriver Version: %-15sCUDA Version: %-9s|\n%s\n", now, line, VERSION, VERSION, CUDA, columns);
	puts("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
	     "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
	     "|                                         |                        |               MIG M. |\n"
	     "|=========================================+========================+======================|");
	for (unsigned i = 0; i < count; i++) {
		char name[64], used[32];
		snprintf(name, sizeof name, "%.25s", value(i, "name"));
		printf("| %3u  %-26s%8s ", indexes[i], name, strcmp(value(i, "persistence_mode"), "Enabled") == 0 ? "On" : "Off");
		printf("|   %s Off | %20s |\n", value(i, "bus_id"), "0");
		printf("| N/A %4sC    P0 ", value(i, "temperature"));
		printf("%14.0fW / ", atof(value(i, "power_draw")));
		printf("%4.0fW ", atof(value(i, "power_limit")));
		snprintf(used, sizeof used, "%sMiB", value(i, "memory_used"));
		printf("| %10s / %6sMiB |%7s%%      Default |\n", used, value(i, "memory_total"), "0");
		printf("|                                         |                        | %20s |\n%s\n", value(i, "mig"), columns);
	}
	printf("\n%s\n| Processes: %77s|\n|  (stand-in: simulated GPU, see --query-compute-apps) %34s|\n%s\n", line, "", "", line);
}

/* The text of an option given as --name=TEXT or as two words; NULL if ARGV[*i] is another option. */
static const char *option(char **argv, int argc, int *i, const char *name) {
	size_t length = strlen(name);
	if (strncmp(argv[*i], name, length) == 0 && argv[*i][length] == '=') return argv[*i] + length + 1;
	if (strcmp(argv[*i], name) == 0 && *i + 1 < argc) return argv[++*i];
	return NULL;
}

int main(int argc, char **argv) {
	const char *ids = "", *fields_asked = NULL, *apps = NULL, *format = "", *text;
	int want_list = 0, want_xml = 0, want_query = 0, want_version = 0;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0) want_list = 1;
		else if (strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--query") == 0) want_query = 1;
		else if (strcmp(argv[i], "-x") == 0 || strcmp(argv[i], "--xml-format") == 0) want_xml = 1;
		else if (strcmp(argv[i], "--version") == 0) want_version = 1;
		else if ((text = option(argv, argc, &i, "-i")) || (text = option(argv, argc, &i, "--id"))) ids = text;
		else if ((text = option(argv, argc, &i, "--query-gpu"))) fields_asked = text;
		else if ((text = option(argv, argc, &i, "--query-compute-apps"))) apps = text;
		else if ((text = option(argv, argc, &i, "--format"))) format = text;
		else {
			printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n(stand-in: %s is not simulated)\n", argv[i]);
			return 1;
		}
	}
	if (want_query != want_xml) {
		puts("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n(stand-in: only -q and -x together)");
		return 1;
	}
	if ((fields_asked || apps) && strncmp(format, "csv", 3) != 0) {
		puts("Output format has to be specified (e.g. --format=csv).");
		return 2;
	}
	time_t seconds = time(NULL);
	strftime(now, sizeof now, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
	start();
	if (want_version) {
		puts("NVIDIA-SMI version  : " VERSION " (stand-in)\nNVML version        : " VERSION "\nDRIVER version      : " VERSION
		     "\nCUDA Version        : " CUDA);
		return 0;
	}
	choose(ids);
	if (want_list) list();
	else if (want_xml) xml();
	else if (fields_asked) query(fields_asked, format);
	else if (apps != NULL) apps_of_gpus(apps, format);
	else table();
	return 0;
}
