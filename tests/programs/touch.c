/*
 * A program whose faults are known: touches memory in one phase, with the faults in it or with the
 * same memory populated beforehand, and prints what the phase took of the CPU in nanoseconds.
 *
 *     touch KIND PAGES fault|populated
 *
 * The phases are functions of their own, so that a call site has a name.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE 4096UL

static size_t pages;

static char *map(int advice, size_t align)
{
	size_t bytes = pages * PAGE + align;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	p += (align - (size_t)p % align) % align;
	madvise(p, pages * PAGE, advice);
	return p;
}

static void populate(char *p, int how)
{
	if (madvise(p, pages * PAGE, how)) {
		perror("madvise");
		exit(2);
	}
}

static long cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

__attribute__((noinline)) void store_ascending(volatile char *p)
{
	for (size_t i = 0; i < pages; i++)
		p[i * PAGE] = 1;
}

__attribute__((noinline)) void store_scattered(volatile char *p)
{
	/* A multiplier that is coprime to every power of two visits each page once. */
	for (size_t i = 0; i < pages; i++)
		p[(i * 40503UL % pages) * PAGE] = 1;
}

__attribute__((noinline)) void load_ascending(volatile char *p)
{
	for (size_t i = 0; i < pages; i++)
		(void)p[i * PAGE];
}

__attribute__((noinline)) void fill_whole(char *p)
{
	for (size_t i = 0; i < pages; i++)
		memset(p + i * PAGE, 1, PAGE);
}

/* Memory that is mapped by the MiB, each MiB touched before the next one is mapped. */
__attribute__((noinline)) void store_growing(volatile char *p)
{
	size_t step = (1UL << 20) / PAGE;

	for (size_t i = 0; i < pages; i++) {
		char *at = (char *)p + i * PAGE;

		if (i % step == 0 &&
		    mmap(at, step * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) {
			perror("mmap");
			exit(2);
		}
		p[i * PAGE] = 1;
	}
}

static pthread_barrier_t both;
static char *halves;
static long half_took[2];

/* One thread of two: its half of the memory, at the same time as the other. */
static void *store_half(void *which)
{
	size_t half = (size_t)which, all = pages;
	volatile char *p = halves + half * (all / 2) * PAGE;
	long start;

	pthread_barrier_wait(&both);
	start = cpu();
	for (size_t i = 0; i < all / 2; i++)
		p[i * PAGE] = 1;
	half_took[half] = cpu() - start;
	return NULL;
}

static void *sleep_on(void *nothing)
{
	pause();
	return nothing;
}

/* As many threads as pages, and none of them does anything. */
static int sleepers(void)
{
	pthread_t thread;

	for (size_t i = 0; i < pages; i++)
		if (pthread_create(&thread, NULL, sleep_on, NULL))
			return 2;
	pause();
	return 0;
}

static int two_threads(char *p)
{
	pthread_t threads[2];

	halves = p;
	pthread_barrier_init(&both, NULL, 2);
	for (size_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, store_half, (void *)i))
			return 2;
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", half_took[0] + half_took[1]);
	return 0;
}

static char *map_file(void)
{
	char name[] = "/var/tmp/pagelab-touch-XXXXXX";
	int file = mkstemp(name);
	char *page = calloc(1, PAGE), *p;

	if (file < 0 || unlink(name)) {
		perror(name);
		exit(2);
	}
	for (size_t i = 0; i < pages; i++)
		if (write(file, page, PAGE) != (ssize_t)PAGE) {
			perror("write");
			exit(2);
		}
	p = mmap(NULL, pages * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return p;
}

int main(int argc, char **argv)
{
	const char *kind = argc == 4 ? argv[1] : "";
	int populated = argc == 4 && !strcmp(argv[3], "populated");
	void (*phase)(volatile char *) = store_ascending;
	pid_t child = 0;
	char *p;
	long start;

	pages = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	if (!strcmp(kind, "write") || !strcmp(kind, "scattered") || !strcmp(kind, "fill")) {
		p = map(MADV_NOHUGEPAGE, PAGE);
		if (!strcmp(kind, "scattered"))
			phase = store_scattered;
		if (!strcmp(kind, "fill"))
			phase = (void (*)(volatile char *))fill_whole;
		if (populated)
			populate(p, MADV_POPULATE_WRITE);
	} else if (!strcmp(kind, "threads")) {
		p = map(MADV_NOHUGEPAGE, PAGE);
		if (populated)
			populate(p, MADV_POPULATE_WRITE);
		return two_threads(p);
	} else if (!strcmp(kind, "sleepers")) {
		return sleepers();
	} else if (!strcmp(kind, "grow")) {
		p = map(MADV_NORMAL, 2UL << 20);
		munmap(p, pages * PAGE);
		phase = store_growing;
	} else if (!strcmp(kind, "plain") || !strcmp(kind, "again") || !strcmp(kind, "never")) {
		if (!strcmp(kind, "never"))
			prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
		p = map(MADV_NORMAL, 2UL << 20);
		if (!strcmp(kind, "again")) {
			store_ascending(p);
			madvise(p, pages * PAGE, MADV_DONTNEED);
		}
	} else if (!strcmp(kind, "thp")) {
		p = map(MADV_HUGEPAGE, 2UL << 20);
		if (populated)
			populate(p, MADV_POPULATE_WRITE);
	} else if (!strcmp(kind, "read")) {
		p = map(MADV_NOHUGEPAGE, PAGE);
		phase = load_ascending;
		if (populated)
			populate(p, MADV_POPULATE_READ);
	} else if (!strcmp(kind, "zero-write")) {
		p = map(MADV_NOHUGEPAGE, PAGE);
		populate(p, MADV_POPULATE_READ);
		if (populated)
			populate(p, MADV_POPULATE_WRITE);
	} else if (!strcmp(kind, "fork")) {
		p = map(MADV_NOHUGEPAGE, PAGE);
		populate(p, MADV_POPULATE_WRITE);
		/* A child that holds the pages until the phase is over. */
		child = fork();
		if (child == 0) {
			pause();
			_exit(0);
		}
		if (populated)
			populate(p, MADV_POPULATE_WRITE);
	} else if (!strcmp(kind, "file")) {
		p = map_file();
		phase = load_ascending;
		if (populated)
			populate(p, MADV_POPULATE_READ);
	} else {
		fprintf(stderr, "usage: touch KIND PAGES fault|populated\n");
		return 2;
	}
	start = cpu();
	phase(p);
	printf("%ld\n", cpu() - start);
	if (child > 0) {
		kill(child, 9);
		waitpid(child, NULL, 0);
	}
	return 0;
}
