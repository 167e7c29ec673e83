/* Random loads over some MiB for some milliseconds of CPU time, each at an address that the load
 * before gives: loads MIB MILLISECONDS [LOOKS [FILE]]. Pages of 4 KiB, whatever the policy. With
 * LOOKS it ends when its accessed bits were cleared that often; with FILE it then makes the file
 * instead, and goes on. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* The first mapping of all, of which smaps therefore tells first. */
static volatile char *first;

/* Whether the accessed bits were cleared since the last call; -1 where the kernel does not show
 * them. */
static int was_cleared(void)
{
    char text[1024] = "";
    int file = open("/proc/self/smaps", O_RDONLY);
    if (file < 0 || read(file, text, 900) <= 0)
        return -1;
    close(file);
    char *line = strstr(text, "Referenced:");
    if (!line)
        return -1;
    int is_cleared = atol(line + strlen("Referenced:")) == 0;
    *first = 1;
    return is_cleared;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5)
        return 2;
    long looks = argc > 3 ? atol(argv[3]) : 0;
    void *low = (void *)(1ul << 20);
    first = mmap(low, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (first == MAP_FAILED)
        return 1;
    *first = 1;
    size_t words = ((size_t)atol(argv[1]) << 20) / 8;
    uint64_t until = atol(argv[2]), at = 88172645463325252u;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    uint64_t *memory = mmap(NULL, words * 8, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, words * 8, MADV_NOHUGEPAGE);
    for (size_t word = 0; word < words; word++)
        memory[word] = word * 0x9e3779b97f4a7c15u;
    until += milliseconds();
    while (milliseconds() < until) {
        for (int load = 0; load < 10000; load++) {
            at = (at ^ memory[at % words]) * 6364136223846793005u + 1442695040888963407u;
            at ^= at >> 29;
        }
        int is_cleared = looks > 0 ? was_cleared() : 0;
        if (is_cleared == 0)
            continue;
        looks = is_cleared < 0 ? 0 : looks - 1;
        if (looks == 0 && argc < 5)
            break;
        if (looks == 0)
            close(open(argv[4], O_CREAT | O_WRONLY, 0666));
    }
    puts(at == 0 ? "zero" : "done");
    return 0;
}
