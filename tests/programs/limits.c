/* Takes memory until it is refused, under a limit: LIMIT MIB WHAT [inside]. LIMIT is "d", "v" or
 * "l"; with "inside" it is set by this program, after it had some memory of its own. WHAT is
 * "malloc" (blocks that grow from 1 KiB to 8 MiB), "small" (of 100 bytes), "realloc", "mmap",
 * "none" (maps without rights), "again" (as "malloc", after maps were given back), "threads",
 * "mlock" or "brk". Prints how many MiB or threads there were, and the number of the error. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *waits(void *rest) { pause(); return rest; }

int main(int count, char **words) {
	if (count < 4) return 2;
	const char *limit = words[1], *what = words[3];
	size_t had = 0, most = 1500ul << 20, step = 1 << 20;
	int inside = count > 4, error = 0;
	void *first = malloc(3 << 20), *map = mmap(0, 5 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (inside && (!first || map == MAP_FAILED)) return 3;
	if (first) memset(first, 1, 3 << 20);
	if (inside) {
		int which = *limit == 'd' ? RLIMIT_DATA : *limit == 'v' ? RLIMIT_AS : RLIMIT_MEMLOCK;
		struct rlimit to = {strtoul(words[2], 0, 0) << 20, strtoul(words[2], 0, 0) << 20};
		if (setrlimit(which, &to)) return 4;
	}
	/* What malloc has lies below the break. */
	void *small = malloc(100);
	if (!strcmp(what, "brk") && (!small || ((volatile char *)sbrk(0))[-1])) return 6;
	errno = 0;
	for (int i = 0; !strcmp(what, "again") && i < 5; i++) {
		size_t length = 100ul << 20;
		char *at = mmap(0, length, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED) return 5;
		memset(at, 1, length), munmap(at, length);
	}
	if (!strcmp(what, "malloc") || !strcmp(what, "again")) {
		for (size_t size = 1024; had < most; size = size < 8 << 20 ? size * 2 : 1024) {
			void *at = malloc(size);
			if (!at) { error = errno; break; }
			memset(at, 1, size), had += size;
		}
	} else if (!strcmp(what, "small")) {
		for (; had < most / 4; had += 112) {
			char *at = malloc(100);
			if (!at) { error = errno; break; }
			memset(at, 1, 100);
		}
	} else if (!strcmp(what, "realloc")) {
		char *at = 0, *next;
		for (; had < most; had += 512 << 10, at = next) {
			next = realloc(at, had + (512 << 10));
			if (!next) { error = errno; break; }
			memset(next + had, 1, 512 << 10);
		}
	} else if (!strcmp(what, "mmap") || !strcmp(what, "none")) {
		for (; had < most; had += step)
			if (mmap(0, step, *what == 'm' ? 3 : 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
				error = errno; break; }
	} else if (!strcmp(what, "threads")) {
		pthread_t thread;
		for (step = 1; had < 200; had++)
			if ((error = pthread_create(&thread, 0, waits, 0))) break;
		printf("%zu %d\n", had, error);
		fflush(stdout), _exit(0);
	} else if (!strcmp(what, "mlock")) {
		char *at = mmap(0, 100 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (; had < 100ul << 20; had += 64 << 10)
			if (mlock(at + had, 64 << 10)) { error = errno; break; }
	} else {
		for (; had < most; had += step)
			if (sbrk((long)step) == (void *)-1) { error = errno; break; }
	}
	printf("%.1f %d\n", (double)had / (1 << 20), error);
	return 0;
}
