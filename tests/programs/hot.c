/* Pages that are used again and again, and others that are not:
 * hot MIB SEED MILLISECONDS load|store FILE [NODE]. An eighth of all pages is drawn by the seed;
 * their addresses go to FILE; all lie on the memory node that is named, and it says in the end how
 * many hot ones and others are on node 0, which comes soon after nearly all hot ones are there. It
 * comes as well when there is a file FILE.over.
 * Meanwhile it does what programs do that a watcher must
 * not break: it has a handler for SIGSEGV, reads a file into memory, blocks all signals, takes
 * locks that lie in large memory, has 64 GiB with almost nothing in them, and forks. Says
 * "correct", or what was not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define SPARE (4ul << 20)
#define HOLE (64ul << 30)

static volatile char *guard;
static volatile sig_atomic_t caught;
static volatile int over;

static void die(const char *what)
{
    printf("not correct: %s (%s)\n", what, strerror(errno));
    exit(3);
}

static void on_fault(int signal, siginfo_t *about, void *context)
{
    (void)signal, (void)context;
    if (about->si_addr != (void *)guard)
        _exit(4);
    mprotect((void *)guard, PAGE, PROT_READ | PROT_WRITE);
    caught++;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static volatile char *memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        die("mmap");
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

/* MPOL_BIND of the UAPI, or MPOL_DEFAULT without a node. */
static void bind_to(volatile char *at, size_t bytes, int node)
{
    unsigned long mask = node < 0 ? 0 : 1ul << node;
    unsigned long *nodes = node < 0 ? NULL : &mask;
    if (syscall(SYS_mbind, at, bytes, node < 0 ? 0 : 2, nodes, node < 0 ? 0ul : 64ul, 0ul))
        die("mbind");
}

/* Whether 99 of 100 hot pages are on node 0. Linux 6.1 does not see pages that are closed: they are
 * touched first, here and below. */
static int are_fast(volatile char *at, const size_t *list, size_t hot)
{
    const volatile void **addresses = calloc(hot, sizeof *addresses);
    int *nodes = calloc(hot, sizeof *nodes);
    size_t on_fast = 0;
    for (size_t nth = 0; nth < hot; nth++)
        (void)*(volatile char *)(addresses[nth] = at + list[nth] * PAGE);
    if (syscall(SYS_move_pages, 0ul, hot, addresses, NULL, nodes, 0ul))
        die("move_pages");
    for (size_t nth = 0; nth < hot; nth++)
        on_fast += nodes[nth] == 0;
    free(addresses), free(nodes);
    return on_fast * 100 >= hot * 99;
}

static void say_places(volatile char *at, size_t pages, const char *is_hot)
{
    size_t on_fast[2] = {0}, all[2] = {0};
    for (size_t page = 0; page < pages; page++) {
        const volatile void *address = at + page * PAGE;
        (void)at[page * PAGE];
        int node = -1, hot = is_hot[page];
        if (syscall(SYS_move_pages, 0ul, 1ul, &address, NULL, &node, 0ul))
            die("move_pages");
        on_fast[hot] += node == 0;
        all[hot]++;
    }
    printf("%zu %zu %zu %zu\n", on_fast[1], all[1], on_fast[0], all[0]);
}

struct shared {
    pthread_mutex_t lock;
    uint64_t count;
};

static void *contend(void *with)
{
    struct shared *shared = with;
    while (!over) {
        pthread_mutex_lock(&shared->lock);
        shared->count++;
        pthread_mutex_unlock(&shared->lock);
        usleep(100);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 6 && argc != 7)
        return 2;
    size_t pages = ((size_t)atol(argv[1]) << 20) / PAGE, hot = pages / 8;
    uint64_t draw = 88172645463325252ull ^ (uint64_t)atol(argv[2]) * 0x9e3779b97f4a7c15ull;
    uint64_t until = atol(argv[3]), turns = 0;
    int stores = strcmp(argv[4], "store") == 0;
    volatile char *all = memory(pages * PAGE), *spare = memory(SPARE);
    struct shared *shared = (void *)memory(SPARE);
    char *hole = mmap(NULL, HOLE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (hole == MAP_FAILED)
        die("mmap of a hole");
    hole[HOLE / 2] = 1;
    char *is_hot = calloc(pages, 1);
    size_t *list = calloc(hot, sizeof *list);
    if (argc == 7)
        bind_to(all, pages * PAGE, atoi(argv[6]));
    for (size_t page = 0; page < pages; page++)
        *(volatile uint64_t *)(all + page * PAGE) = page;
    if (argc == 7)
        bind_to(all, pages * PAGE, -1);
    FILE *out = fopen(argv[5], "w");
    if (!out)
        die("the file");
    for (size_t drawn = 0; drawn < hot;) {
        draw ^= draw << 13, draw ^= draw >> 7, draw ^= draw << 17;
        size_t page = draw % pages;
        if (is_hot[page])
            continue;
        is_hot[page] = 1;
        list[drawn++] = page;
        fprintf(out, "%lx\n", (unsigned long)(all + page * PAGE));
    }
    fclose(out);
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigfillset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, NULL))
        die("sigaction");
    guard = memory(PAGE);
    pthread_mutex_init(&shared->lock, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, contend, shared);
    int zero = open("/dev/zero", O_RDONLY);
    sigset_t every, before;
    sigfillset(&every);
    uint64_t sum = 0, expected = 0, begin = now();
    int is_done = argc != 7;
    char file[4096];
    snprintf(file, sizeof file, "%s.over", argv[5]);
    for (until += begin; now() < until; turns++) {
        if (!is_done && turns % 16 == 15 && are_fast(all, list, hot)) {
            uint64_t later = now() + (now() - begin) / 4;
            until = later < until ? later : until;
            is_done = 1;
        }
        if (turns % 16 == 15 && access(file, F_OK) == 0)
            break;
        if (turns % 4 == 0)
            pthread_sigmask(SIG_BLOCK, &every, &before);
        for (size_t nth = 0; nth < hot; nth++) {
            volatile uint64_t *word = (void *)(all + list[nth] * PAGE);
            sum += *word, expected += list[nth];
            if (stores)
                word[1]++;
        }
        if (turns % 4 == 0)
            pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (read(zero, (void *)(spare + turns % 8 * 4097), 1 << 20) != 1 << 20)
            die("read");
        mprotect((void *)guard, PAGE, PROT_NONE);
        *guard = 1;
        pthread_mutex_lock(&shared->lock);
        shared->count++;
        pthread_mutex_unlock(&shared->lock);
        if (turns % 64 == 0) {
            pid_t child = fork();
            if (child == 0)
                _exit(*(volatile uint64_t *)(all + PAGE) == 1 ? 0 : 1);
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child || status)
                die("a child");
        }
        usleep(1000);
    }
    over = 1;
    pthread_join(thread, NULL);
    if (sum != expected || (uint64_t)caught != turns)
        die("a load or a signal was lost");
    for (size_t page = 0; page < pages; page++) {
        volatile uint64_t *word = (void *)(all + page * PAGE);
        if (word[0] != page || word[1] != (is_hot[page] && stores ? turns : 0))
            die("memory has changed");
    }
    if (argc == 7)
        say_places(all, pages, is_hot);
    puts("correct");
    return 0;
}
