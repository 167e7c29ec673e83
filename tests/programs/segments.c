/* Allocates, maps, moves and forks on four threads, and checks what it finds: ROUNDS [WORD];
 * with a word it becomes `echo WORD`. hold MIB: has so much by malloc and by maps, and checks
 * it. again ROUNDS: fills and gives back, and finds zeros, in a child and alone, too. start
 * ROUNDS: forks while threads start, which the child does, too. ended ROUNDS: forks while
 * threads take over what others left that have ended, and the child gives all of it back.
 * faults MIB: says how many it took to touch a map of so much. calls MIB ROUNDS: says the
 * median nanoseconds of mmap and munmap of a map that is written to between them, and of the
 * CPU time of a round. cuts MIB: says how many pages of a map can have rights of their own, and
 * that there are mappings left for a thread. halves: gives half of a leaf back, maps over the
 * middle of another, and forks in a thread, which finds both. torn ROUNDS: forks while threads
 * write numbers to far places one after the other; a child finds all of one moment. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 512, THREADS = 4, LEAF = 2 << 20 };
static int rounds;

static void fail(const char *what, long at) {
	fprintf(stderr, "failed: %s (%ld, errno %d)\n", what, at, errno);
	_exit(99);
}

static uint64_t next(uint64_t *state) {
	*state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
	return *state;
}

static void fill(unsigned char *at, size_t size, unsigned char with) { memset(at, with, size); }

static void check(const unsigned char *at, size_t size, unsigned char with, const char *what) {
	for (size_t i = 0; i < size; i += i + 64 < size ? 61 : 1)
		if (at[i] != with) fail(what, (long)i);
}

static void child(void) {
	void *some[64];
	for (int i = 0; i < 64; i++) {
		some[i] = malloc((size_t)1 << (i % 20));
		if (!some[i]) fail("malloc in a child", i);
		memset(some[i], i, (size_t)1 << (i % 20));
	}
	for (int i = 0; i < 64; i++) free(some[i]);
	char *map = mmap(0, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) fail("mmap in a child", 0);
	check((unsigned char *)map, 3 << 20, 0, "a child's map is zero");
	memset(map, 7, 3 << 20);
	munmap(map, 3 << 20);
	_exit(7);
}

static void forks(void) {
	pid_t pid = fork();
	if (pid == 0) child();
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid) fail("fork", pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) fail("the child", status);
}

static void maps(uint64_t *state) {
	size_t size = ((next(state) % 1500) + 4) * 4096;
	unsigned char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) fail("mmap", (long)size);
	check(map, size, 0, "a map is zero");
	fill(map, size, 0x5a);
	size_t half = size / 2 / 4096 * 4096;
	if (munmap(map, half)) fail("munmap of half", 0);
	check(map + half, size - half, 0x5a, "the other half");
	if (mprotect(map + half, 4096, PROT_READ)) fail("mprotect", 0);
	if (map[half] != 0x5a) fail("read only", 0);
	if (mprotect(map + half, 4096, PROT_READ | PROT_WRITE)) fail("mprotect back", 0);
	unsigned char *over = mmap(map + half, 4096, PROT_READ | PROT_WRITE,
							   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (over != map + half) fail("MAP_FIXED", 0);
	check(over, 4096, 0, "what was mapped over is zero");
	fill(over, 4096, 0x5a);
	if (madvise(over, 4096, MADV_DONTNEED)) fail("DONTNEED", 0);
	check(over, 4096, 0, "what was thrown away is zero");
	fill(over, 4096, 0x5a);
	/* Not with the page: the kernel may have joined it to what another thread has below, and moves
	 * no more than one of its mappings at once. */
	if (munmap(over, 4096)) fail("munmap of a page", 0);
	size_t rest = size - half - 4096, grown = rest * 2;
	unsigned char *moved = mremap(over + 4096, rest, grown, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED) fail("mremap", (long)grown);
	check(moved, rest, 0x5a, "what was moved");
	check(moved + rest, grown - rest, 0, "what grew is zero");
	if (munmap(moved, grown)) fail("munmap", 0);
}

static void *work(void *which) {
	uint64_t state = 88172645463325252ull + (uintptr_t)which * 7919;
	static __thread struct { unsigned char *at, with; size_t size; } slots[SLOTS];
	for (int round = 0; round < rounds; round++) {
		int i = (int)(next(&state) % SLOTS);
		size_t size = next(&state) % (round % 50 ? round % 5 ? 3000 : 70000 : 600000) + 1;
		unsigned char with = (unsigned char)next(&state);
		if (slots[i].at) check(slots[i].at, slots[i].size, slots[i].with, "an allocation");
		switch (next(&state) % 6) {
		case 0: free(slots[i].at), slots[i].at = malloc(size); break;
		case 1:
			free(slots[i].at), slots[i].at = calloc(size, 1);
			check(slots[i].at, size, 0, "calloc is zero");
			break;
		case 2: {
			size_t kept = slots[i].at && slots[i].size < size ? slots[i].size : size;
			unsigned char was = slots[i].with, had = slots[i].at != 0;
			slots[i].at = realloc(slots[i].at, size);
			if (had) check(slots[i].at, kept, was, "realloc keeps");
			break;
		}
		case 3: {
			size_t to = (size_t)16 << next(&state) % 10;
			free(slots[i].at);
			if (posix_memalign((void **)&slots[i].at, to, size)) fail("posix_memalign", (long)to);
			if ((uintptr_t)slots[i].at % to) fail("alignment", (long)to);
			break;
		}
		case 4:
			free(slots[i].at), slots[i].at = aligned_alloc(64, (size + 63) / 64 * 64);
			if (malloc_usable_size(slots[i].at) < size) fail("usable size", (long)size);
			break;
		case 5: free(slots[i].at), slots[i].at = 0; continue;
		}
		if (!slots[i].at) fail("no memory", (long)size);
		slots[i].size = size, slots[i].with = with;
		fill(slots[i].at, size, with);
		if (round % 200 == 0) maps(&state);
		if (round % 2000 == 0) forks();
	}
	for (int i = 0; i < SLOTS; i++) free(slots[i].at), slots[i].at = 0;
	return 0;
}

static void *brief(void *rest) {
	void *some = malloc(100000);
	memset(some, 1, 100000);
	free(some);
	return rest;
}

static int hold(long mib)
{
	unsigned char *some[2][4096];

	for (long i = 0; i < mib && i < 4096; i++) {
		some[0][i] = malloc(1 << 20);
		some[1][i] = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int of = 0; of < 2; of++)
			fill(some[of][i], 1 << 20, (unsigned char)(i + of));
	}
	for (long i = 0; i < mib && i < 4096; i++)
		for (int of = 0; of < 2; of++)
			check(some[of][i], 1 << 20, (unsigned char)(i + of), "what is held");
	puts("held");
	return 0;
}

static int cuts(long mib) {
	const int access = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS;
	unsigned char *map = mmap(0, mib << 20, access, own, -1, 0);
	if (map == MAP_FAILED) fail("mmap", mib);
	map[0] = 0x5a;
	long cut = 0, most = (mib << 20) / 8192;
	while (cut < most && !mprotect(map + cut * 8192, 4096, PROT_READ)) cut++;
	if (cut < most && errno != ENOMEM) fail("mprotect", cut);
	pthread_t thread;
	if (pthread_create(&thread, 0, brief, 0)) fail("a thread", cut);
	pthread_join(thread, 0);
	if (map[0] != 0x5a) fail("what was cut", 0);
	if (munmap(map, mib << 20)) fail("munmap", cut);
	printf("%ld\n", cut);
	return 0;
}

static void *forking(void *rest) {
	unsigned char *map = rest;
	pid_t pid = fork();
	if (pid == 0) {
		check(map, LEAF / 2, 0, "a child: half of a leaf that was taken again");
		check(map + LEAF / 2, LEAF / 2, 0x5a, "a child: the other half");
		check(map + LEAF + 4096, 8192, 0x3c, "a child: what was mapped over");
		fill(map, 2 * LEAF, 1);
		child();
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid) fail("fork", pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) fail("the child", status);
	return 0;
}

static int halves(void) {
	const int access = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS;
	unsigned char *map = mmap(0, 2 * LEAF, access, own, -1, 0);
	if (map == MAP_FAILED) fail("mmap", 0);
	fill(map, 2 * LEAF, 0x5a);
	if (munmap(map, LEAF / 2)) fail("munmap of half a leaf", 0);
	check(map + LEAF / 2, LEAF / 2, 0x5a, "the other half");
	if (mmap(map, LEAF / 2, access, own | MAP_FIXED, -1, 0) != map) fail("the half again", 0);
	check(map, LEAF / 2, 0, "the half is zero");
	unsigned char *middle = map + LEAF + 4096;
	if (mmap(middle, 8192, access, own | MAP_FIXED, -1, 0) != middle) fail("MAP_FIXED", 0);
	check(middle, 8192, 0, "what is mapped over is zero");
	fill(middle, 8192, 0x3c);
	pthread_t thread;
	if (pthread_create(&thread, 0, forking, map)) fail("a thread", 0);
	pthread_join(thread, 0);
	check(map, LEAF / 2, 0, "what a child wrote is its own");
	check(map + LEAF / 2, LEAF / 2 + 4096, 0x5a, "what lies before it");
	check(middle, 8192, 0x3c, "what was mapped over");
	check(middle + 8192, LEAF - 12288, 0x5a, "what lies behind it");
	if (munmap(map, 2 * LEAF)) fail("munmap", 0);
	puts("halves");
	return 0;
}

static long faults(void) {
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

static __attribute__((noinline)) void stores(volatile char *map, size_t size) {
	for (size_t i = 0; i < size; i += 4096) map[i] = 1;
}

static int touch(long mib) {
	size_t size = (size_t)mib << 20;
	/* What is looked at here is there before, and so is the code that looks and stores. */
	volatile long before = faults();
	char here[1];
	stores(here, sizeof here);
	volatile char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) fail("mmap", mib);
	before = faults();
	stores(map, size);
	printf("%ld\n", faults() - before);
	return 0;
}

static long long now(clockid_t clock) {
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int less(const void *one, const void *other) {
	long long a = *(const long long *)one, b = *(const long long *)other;
	return (a > b) - (a < b);
}

static int calls(long mib, int count) {
	enum { MOST = 1000 };
	static long long took[MOST];
	size_t size = (size_t)mib << 20;
	if (count < 1 || count > MOST) fail("rounds", count);
	/* The first one is of what nobody had before. */
	long long cpu = 0;
	for (int i = -1; i < count; i++) {
		if (i == 0) cpu = now(CLOCK_PROCESS_CPUTIME_ID);
		long long begun = now(CLOCK_MONOTONIC);
		char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		long long mapped = now(CLOCK_MONOTONIC);
		if (map == MAP_FAILED) fail("mmap", mib);
		for (size_t at = 0; at < size; at += 4096) map[at] = 1;
		long long written = now(CLOCK_MONOTONIC);
		if (munmap(map, size)) fail("munmap", i);
		if (i >= 0) took[i] = mapped - begun + now(CLOCK_MONOTONIC) - written;
	}
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	qsort(took, (size_t)count, sizeof *took, less);
	printf("%lld %lld\n", took[count / 2], cpu / count);
	return 0;
}

static unsigned char *fresh(size_t size) {
	unsigned char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) fail("mmap", (long)size);
	for (size_t i = 0; i < size; i += 64)
		if (map[i]) fail("memory taken again is zero", (long)i);
	return map;
}

static int again(int rounds) {
	size_t size = 24 << 20;
	for (int i = 0; i < rounds; i++) {
		/* Whole leaves, half of one, and what was touched here and there. */
		unsigned char *map = fresh(size);
		if (i % 3 == 2)
			for (size_t at = 0; at < size; at += 300000) map[at] = 1;
		else
			memset(map, i + 1, size);
		if (munmap(map, size / 2 + (size_t)(i % 5) * 4096)) fail("munmap", i);
		if (munmap(map, size)) fail("munmap of the rest", i);
		if (i % 2) usleep(3000);
		unsigned char *small = fresh(4096 * 3);
		memset(small, 1, 4096 * 3);
		if (i % 4 == 3) munmap(small, 4096 * 3);
		if (i % 8 == 7) {
			pid_t pid = fork();
			if (pid == 0) {
				for (int k = 0; k < 3; k++) {
					map = fresh(size);
					memset(map, 9, size);
					munmap(map, size);
				}
				_exit(0);
			}
			int status;
			if (pid < 0 || waitpid(pid, &status, 0) != pid || status) fail("the child", status);
		}
	}
	/* A user namespace is for a process of one thread only; nobody has to allow it. */
	if (unshare(CLONE_NEWUSER) && errno == EINVAL) fail("alone", 0);
	munmap(fresh(size), size);
	puts("again");
	return 0;
}

static volatile int stop;

static void *starts(void *rest) {
	pthread_t thread;
	while (!stop)
		if (pthread_create(&thread, 0, brief, 0) || pthread_join(thread, 0)) fail("thread", 0);
	return rest;
}

static int start(int forks) {
	pthread_t threads[3], thread;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], 0, starts, 0)) fail("thread", i);
	for (int i = 0; i < forks; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			/* Whoever meets a lock that nobody gives back waits for ever. */
			alarm(60);
			if (pthread_create(&thread, 0, brief, 0) || pthread_join(thread, 0)) _exit(1);
			brief(0);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) fail("the child", status);
	}
	stop = 1;
	for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
	puts("started");
	return 0;
}

/* Blocks that threads left, of many sizes: who ends leaves some, who begins takes over their pages
 * and gives a few back. */
enum { SIZES = 38, EACH = 20, ENDING = 6 };
static void *left[SIZES][EACH];
static pthread_mutex_t leaving = PTHREAD_MUTEX_INITIALIZER;

static void *leaves(void *rest) {
	void *old[SIZES];
	size_t size = 200;
	int nth = (int)(uintptr_t)rest % EACH;
	pthread_mutex_lock(&leaving);
	for (int i = 0; i < SIZES; i++) old[i] = left[i][nth], left[i][nth] = 0;
	pthread_mutex_unlock(&leaving);
	for (int i = 0; i < SIZES; i++) {
		void *mine = malloc(size += size / 10);
		if (!mine) fail("no memory", i);
		memset(mine, nth, 200);
		free(old[i]), old[i] = mine;
	}
	pthread_mutex_lock(&leaving);
	for (int i = 0; i < SIZES; i++) {
		void *mine = old[i];
		old[i] = left[i][nth], left[i][nth] = mine;
	}
	pthread_mutex_unlock(&leaving);
	for (int i = 0; i < SIZES; i++) free(old[i]);
	return 0;
}

static void *ends(void *rest) {
	pthread_t thread;
	for (uintptr_t i = (uintptr_t)rest; !stop; i += 7)
		if (pthread_create(&thread, 0, leaves, (void *)i) || pthread_join(thread, 0))
			fail("thread", 0);
	return rest;
}

static int ended(int forks) {
	pthread_t threads[ENDING];
	for (long i = 0; i < ENDING; i++)
		if (pthread_create(&threads[i], 0, ends, (void *)i)) fail("thread", i);
	for (int round = 0; round < forks; round++) {
		int status;
		pthread_mutex_lock(&leaving);
		pid_t pid = fork();
		if (pid == 0) {
			alarm(60);
			for (int i = 0; i < SIZES; i++)
				for (int k = 0; k < EACH; k++) {
					/* Larger by far, so that the old one is given back. */
					char *more = left[i][k] && k % 8 == 0 ? realloc(left[i][k], 20000) : left[i][k];
					if (more && more[199] != k) _exit(1);
					free(more);
				}
			_exit(0);
		}
		pthread_mutex_unlock(&leaving);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) fail("the child", status);
	}
	stop = 1;
	for (int i = 0; i < ENDING; i++) pthread_join(threads[i], 0);
	puts("ended");
	return 0;
}

/* Places that a thread writes the same number to, in this order. */
enum { WRITERS = 3, PLACES = 4 };
static uint64_t *far[WRITERS][PLACES], ordinary[WRITERS];

static void *writes(void *rest) {
	uint64_t **places = far[(uintptr_t)rest];
	for (uint64_t number = 1; !stop; number++)
		for (int i = 0; i < PLACES; i++) __atomic_store_n(places[i], number, __ATOMIC_RELEASE);
	return 0;
}

static int torn(int forks) {
	pthread_t threads[WRITERS];
	const int access = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS;
	uint64_t *map = mmap(0, 12 * LEAF, access, own, -1, 0), *block = calloc(3, LEAF);
	size_t words = LEAF / sizeof *map;
	if (map == MAP_FAILED || !block) fail("no memory", 0);
	for (long i = 0; i < WRITERS; i++) {
		uint64_t *up[PLACES] = {map + i, ordinary + i, block + 2 * words + i, map + 11 * words + i};
		for (int k = 0; k < PLACES; k++) far[i][k] = up[i ? (k + i) % PLACES : PLACES - 1 - k];
		if (pthread_create(&threads[i], 0, writes, (void *)i)) fail("thread", i);
	}
	for (int round = 0; round < forks; round++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			for (int i = 0; i < WRITERS; i++)
				for (int k = 1; k < PLACES; k++)
					if (*far[i][k - 1] - *far[i][k] > 1 || *far[i][0] - *far[i][k] > 1)
						fail("a number before its turn", (long)(*far[i][0] - *far[i][k]));
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) fail("the child", status);
		usleep(1000);
	}
	stop = 1;
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], 0);
		if (!*far[i][0]) fail("nothing was written", i);
	}
	puts("whole");
	return 0;
}

int main(int count, char **words) {
	if (count > 2 && !strcmp(words[1], "torn"))
		return torn(atoi(words[2]));
	if (count > 2 && !strcmp(words[1], "faults"))
		return touch(atol(words[2]));
	if (count > 3 && !strcmp(words[1], "calls"))
		return calls(atol(words[2]), atoi(words[3]));
	if (count > 2 && !strcmp(words[1], "again"))
		return again(atoi(words[2]));
	if (count > 2 && !strcmp(words[1], "start"))
		return start(atoi(words[2]));
	if (count > 2 && !strcmp(words[1], "ended"))
		return ended(atoi(words[2]));
	if (count > 2 && !strcmp(words[1], "cuts"))
		return cuts(atol(words[2]));
	if (count > 1 && !strcmp(words[1], "halves"))
		return halves();
	if (count > 2 && !strcmp(words[1], "hold"))
		return hold(atol(words[2]));
	rounds = count > 1 ? atoi(words[1]) : 20000;
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], 0, work, (void *)i)) fail("thread", i);
	/* Threads that come and go while others fork. */
	for (int i = 0; i < rounds / 100; i++) {
		pthread_t thread;
		if (pthread_create(&thread, 0, brief, 0)) fail("thread", i);
		pthread_join(thread, 0);
	}
	for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
	char *before = sbrk(0);
	if (sbrk(1 << 20) == (void *)-1) fail("sbrk", 0);
	check((unsigned char *)before, 1 << 20, 0, "the break is zero");
	memset(before, 3, 1 << 20);
	sbrk(-(1 << 20));
	puts("fine");
	fflush(stdout);
	if (count > 2) execlp("echo", "echo", words[2], (char *)0);
	return 0;
}
