/* Calls that the kernel refuses on memory registered with another userfaultfd: remap plain|watched.
 * Watched, it waits before each until its memory is registered (`uw` in smaps). Each line is a call
 * and its result, which has to be the same either way. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES (4ul << 20)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define CLOSED 4096

static int is_watched;

static char *memory(void *at, size_t bytes)
{
    char *made = mmap(at, bytes, PROT_READ | PROT_WRITE, ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    if (made == MAP_FAILED)
        exit(3);
    memset(made, 1, bytes);
    return made;
}

static int is_registered(char *at)
{
    char line[4096];
    int is_it = 0, found = 0;
    uint64_t start, end;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            is_it = start <= (uintptr_t)at && (uintptr_t)at < end;
        if (is_it && !strncmp(line, "VmFlags:", 8))
            found = strstr(line, " uw") != NULL;
    }
    if (file)
        fclose(file);
    return found;
}

static void registered(char *at)
{
    while (is_watched && !is_registered(at))
        usleep(1000);
}

static void says(const char *call, int failed, char *at, size_t bytes)
{
    int error = errno;
    size_t sum = 0;
    for (size_t byte = 0; !failed && byte < bytes; byte += 4096)
        sum += at[byte];
    printf("%s: %s, %zu\n", call, failed ? strerror(error) : "done", sum);
}

/* A mapping that grows after it was registered, and is one mapping to the kernel but for that. */
static void grown(const char *call)
{
    char *at = memory(NULL, 2 * BYTES);
    munmap(at + BYTES, BYTES);
    registered(at);
    memory(at + BYTES, BYTES);
    char *to = mremap(at, 2 * BYTES, 4 * BYTES, MREMAP_MAYMOVE);
    says(call, to == MAP_FAILED, to, 2 * BYTES);
}

int main(int count, char **words)
{
    is_watched = count > 1 && !strcmp(words[1], "watched");
    grown("mremap of a mapping that grew");

    char *at = memory(NULL, BYTES), *to = mmap(NULL, BYTES, PROT_NONE, ANONYMOUS, -1, 0);
    registered(at);
    madvise(at, BYTES / 2, MADV_NOHUGEPAGE);
    to = mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    says("mremap of two mappings", to == MAP_FAILED, to, BYTES);

    errno = 0;
    says("mremap of nothing", mremap(NULL, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED, NULL, 0);

    int failed = 0;
    for (int file = 3; file < CLOSED; file++)
        failed += close(file) == -1 && errno == EBADF;
    closefrom(3);
    printf("close: %d failed\n", failed);
    grown("mremap after all files were closed");

    at = memory(NULL, BYTES);
    int file = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {
        .range = {(uintptr_t)at, BYTES},
        .mode = UFFDIO_REGISTER_MODE_MISSING,
    };
    registered(at);
    failed = file < 0 || ioctl(file, UFFDIO_API, &api) || ioctl(file, UFFDIO_REGISTER, &range);
    says("a userfaultfd", failed, at, BYTES);
    return 0;
}
