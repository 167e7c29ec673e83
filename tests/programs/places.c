/* Maps at addresses and of lengths that few programs ask for: says of each whether it is there,
 * elsewhere or refused, and whether what was mapped before is as it was. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, BYTES = 3 << 20, OWN = MAP_PRIVATE | MAP_ANONYMOUS };
static const char *const names[] = {"hint", "fixed", "fixed, nothing replaced"};

int main(void) {
	int flags[] = {0, MAP_FIXED, MAP_FIXED_NOREPLACE};
	size_t places[] = {0, 1, PAGE, 0x10000, 0x7ffffffff000, 0x800000000000, -PAGE, -1};
	size_t lengths[] = {0, 1, PAGE, 1ul << 46, 0x7ffffffff000, 0x800000000000, 1ul << 62, -PAGE, -1};
	char *own = mmap(0, BYTES, PROT_READ | PROT_WRITE, OWN, -1, 0);
	if (own == MAP_FAILED) return 2;
	memset(own, 7, BYTES);
	for (int i = 0; i < 3; i++)
		for (size_t p = 0; p < sizeof places / sizeof *places; p++)
			for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
				/* What is there in a program without segments is its own code and libraries. */
				if (i == 1 && places[p] < 0x100000 && lengths[l] > PAGE) continue;
				errno = 0;
				char *at = mmap((void *)places[p], lengths[l], PROT_READ, OWN | flags[i], -1, 0);
				int is_there = (size_t)at == places[p];
				printf("%s %zx %zx: %s %d\n", names[i], places[p], lengths[l],
					at == MAP_FAILED ? "refused" : is_there ? "there" : "elsewhere", errno);
				if (at != MAP_FAILED) munmap(at, lengths[l]);
			}
	for (int i = 0; i < BYTES; i++)
		if (own[i] != 7) return 3;
	return 0;
}
