/*
 * Programs on which a kind of fault was told wrong: `cases NAME`.
 *
 *     moved   1 MiB that is touched, moved to 2 MiB elsewhere, and touched to its end
 *     sparse  512 pages of a reservation of 1 TiB
 *     again   1 MiB that is given back and touched again, twice
 *     stack   4 MiB of the stack, from its far end
 *     pool    one page of memory whose hugetlb pool has none
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096UL
#define MIB (1UL << 20)

static char *map(size_t bytes, int flags)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

__attribute__((noinline)) void store(volatile char *p, size_t bytes, size_t step)
{
	for (size_t i = 0; i < bytes; i += step)
		p[i] = 1;
}

__attribute__((noinline)) void give_back(char *p, size_t bytes)
{
	madvise(p, bytes, MADV_DONTNEED);
}

__attribute__((noinline)) void store_in_frame(void)
{
	char frame[4 * MIB];

	store(frame, sizeof frame, PAGE);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char *p;

	if (!strcmp(name, "moved")) {
		p = map(MIB, 0);
		store(p, MIB, PAGE);
		/* Something behind it, so that it has to move. */
		mmap(p + MIB, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		p = mremap(p, MIB, 2 * MIB, MREMAP_MAYMOVE);
		store(p, 2 * MIB, PAGE);
	} else if (!strcmp(name, "sparse")) {
		p = map(1UL << 40, MAP_NORESERVE);
		store(p, 1UL << 30, 2 * MIB);
	} else if (!strcmp(name, "again")) {
		p = map(MIB, 0);
		for (int round = 0; round < 3; round++) {
			store(p, MIB, PAGE);
			give_back(p, MIB);
		}
	} else if (!strcmp(name, "stack")) {
		store_in_frame();
	} else if (!strcmp(name, "pool")) {
		p = map(2 * MIB, MAP_HUGETLB | MAP_NORESERVE);
		if (p == MAP_FAILED)
			return 77;
		store(p, 2 * MIB, 2 * MIB);
	}
	return 0;
}
