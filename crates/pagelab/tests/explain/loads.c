/* Random loads, each told by the one before, over so many MiB for so many milliseconds of CPU time:
 * loads MIB MILLISECONDS. A page of 4 KiB each, whatever the policy. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static uint64_t milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
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
    while (milliseconds() < until)
        for (int load = 0; load < 10000; load++) {
            at = (at ^ memory[at % words]) * 6364136223846793005u + 1442695040888963407u;
            at ^= at >> 29;
        }
    puts(at == 0 ? "zero" : "done");
    return 0;
}
