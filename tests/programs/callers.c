/*
 * Faults whose callers no frame pointer tells: `callers fill MIB` has libc's memset take them,
 * called by `fill`, `callers nest MIB` a function of this program three calls deep, and
 * `callers jit MIB` code that it made itself, which it names in /tmp/perf-PID.map.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define APART __attribute__((noinline, noipa))

static char *memory(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(1);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

/* What follows a call keeps it from becoming a jump. */
APART static int fill(char *at, size_t bytes)
{
    memset(at, 1, bytes);
    return at[bytes / 2];
}

APART static int store(volatile char *at, size_t bytes)
{
    for (size_t byte = 0; byte < bytes; byte += 4096)
        at[byte] = 1;
    return at[bytes / 2];
}

APART static int inner(char *at, size_t bytes)
{
    return store(at, bytes) + 1;
}

APART static int outer(char *at, size_t bytes)
{
    char room[600];
    memset(room, at[0] + 1, sizeof room);
    return inner(at, bytes) + room[bytes % sizeof room];
}

APART static int made(char *at, size_t bytes)
{
    /* push rbp; mov rbp, rsp; again: mov byte [rdi], 1; add rdi, 4096; sub rsi, 4096; ja again;
     * xor eax, eax; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xc6, 0x07, 0x01, 0x48, 0x81, 0xc7,
                                         0x00, 0x10, 0x00, 0x00, 0x48, 0x81, 0xee, 0x00, 0x10, 0x00,
                                         0x00, 0x77, 0xed, 0x31, 0xc0, 0x5d, 0xc3};
    char path[64];
    char *page = memory(4096);
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
        return 1;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "wx");
    if (!map)
        return 1;
    fprintf(map, "%lx %zx old\n%lx %zx py::made:/a/b.py\n", (long)page, sizeof code, (long)page,
            sizeof code);
    fclose(map);
    puts(path);
    return ((int (*)(char *, size_t))page)(at, bytes);
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 3 ? (size_t)atol(argv[2]) << 20 : 0;
    if (!bytes)
        return 2;
    char *at = memory(bytes);
    if (!strcmp(argv[1], "fill"))
        return fill(at, bytes) == 0;
    if (!strcmp(argv[1], "nest"))
        return outer(at, bytes) == 0;
    return made(at, bytes) != 0;
}
