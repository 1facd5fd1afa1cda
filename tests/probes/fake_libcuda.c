/* A libcuda without a device, for tests: what it answers comes from the environment.
 *
 * FAKE_INIT      status of cuInit                      FAKE_COUNT  devices (1)
 * FAKE_NAME      name of the devices                   FAKE_BUS    their PCI bus ids, parted by blanks
 * FAKE_VERSION   what cuDriverGetVersion says (13000)  FAKE_LOST   status of every call about a device
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int lost(void) { return number("FAKE_LOST", 0); }

int cuInit(unsigned flags) { (void)flags; return number("FAKE_INIT", 0); }
int cuDriverGetVersion(int *version) { *version = number("FAKE_VERSION", 13000); return 0; }
int cuDeviceGetCount(int *count) { *count = number("FAKE_COUNT", 1); return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }

int cuDeviceGetName(char *name, int length, int device) {
    const char *text = getenv("FAKE_NAME");
    (void)device;
    snprintf(name, length, "%s", text ? text : "NVIDIA H200");
    return lost();
}

int cuDeviceGetPCIBusId(char *id, int length, int device) {
    const char *all = getenv("FAKE_BUS");
    char copy[256], *word;
    snprintf(copy, sizeof copy, "%s", all ? all : "0000:1B:00.0");
    word = strtok(copy, " ");
    while (device-- > 0 && word) word = strtok(NULL, " ");
    snprintf(id, length, "%s", word ? word : "");
    return lost();
}

static int uuid(unsigned char *bytes, int device) {
    for (int i = 0; i < 16; i++) bytes[i] = (unsigned char)(0x10 + i + device);
    return lost();
}
int cuDeviceGetUuid(unsigned char *bytes, int device) { return uuid(bytes, device); }
int cuDeviceGetUuid_v2(unsigned char *bytes, int device) { return uuid(bytes, device); }

int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)141 << 30; return lost(); }

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 16: *value = 132; break;
    case 37: *value = 6144; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    default: return 1;
    }
    return lost();
}

int cuDeviceCanAccessPeer(int *allowed, int device, int other) { *allowed = device != other; return lost(); }

int cuGetErrorName(int code, const char **text) {
    *text = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : code == 0 ? "CUDA_SUCCESS" : NULL;
    return *text ? 0 : 1;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == 802 ? "system not yet initialized" : code == 0 ? "no error" : NULL;
    return *text ? 0 : 1;
}

#ifndef OLD
int cuGetProcAddress_v2(const char *symbol, void **function, int version, unsigned long long flags, int *status) {
    char newer[128];
    void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    (void)version, (void)flags;
    snprintf(newer, sizeof newer, "%s_v2", symbol);
    *function = dlsym(self, newer);
    if (!*function) *function = dlsym(self, symbol);
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
int cuGetProcAddress(const char *symbol, void **function, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
#endif
