/* Gives parts of maps back while a process has as many mappings as it may have, then fewer and
 * fewer: what munmap answers first, and whether each time all is there that was not given back. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MIB = 1 << 20, LENGTH = 16 * MIB, FROM = 4 * MIB, TO = 10 * MIB };
enum { TRIES = 8, FILLERS = 200000, FEWER = 64 };
#define OWN (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static char *regions[TRIES], *fillers;
static int count = 1;

/* Gives the middle back; 0 where that was refused, and -1 where something else came of it. */
static int give_back(int i) {
	errno = 0;
	int came = munmap(regions[i] + FROM, TO - FROM), error = errno;
	for (size_t at = PAGE; at < LENGTH - PAGE; at += PAGE)
		if ((came || at < FROM || at >= TO) && regions[i][at] != i + 1) return -1;
	return came ? error == ENOMEM ? 0 : -1 : 1;
}

int main(void) {
	for (int i = 0; i < TRIES; i++) {
		regions[i] = mmap(0, LENGTH, PROT_READ | PROT_WRITE, OWN, -1, 0);
		if (regions[i] == MAP_FAILED) return 1;
		memset(regions[i], i + 1, LENGTH);
		/* What lies beside it is not alike, so each is a mapping of its own. */
		mprotect(regions[i], PAGE, PROT_NONE), mprotect(regions[i] + LENGTH - PAGE, PAGE, PROT_NONE);
	}
	fillers = mmap((char *)0x100000000000, (size_t)FILLERS * PAGE, PROT_NONE, OWN, -1, 0);
	if (fillers == MAP_FAILED) return 2;
	while (count < FILLERS && !mprotect(fillers + (size_t)count * PAGE, PAGE, PROT_READ)) count += 2;
	printf("full e%d\n", errno);
	for (int i = 0; i < TRIES; i++) {
		int came = give_back(i);
		/* Which of the next ones is the first that goes a library in the program may decide. */
		if (came < 0 || i == 0) printf("%d: %d\n", i, came);
		for (int k = 0; k < (i == TRIES - 2 ? FEWER : 1); k++)
			count -= 2, mprotect(fillers + (size_t)count * PAGE, PAGE, PROT_NONE);
		if (i == TRIES - 1) printf("last: %d\n", came);
	}
	return 0;
}
