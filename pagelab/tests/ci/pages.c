/* Touches PAGES base pages, whatever the machine's settings of larger pages are. */
#include <stdio.h>
#include <sys/mman.h>

static void touch(char *memory, long bytes)
{
	for (long at = 0; at < bytes; at += 4096)
		memory[at] = 1;
}

int main(void)
{
	long bytes = PAGES * 4096L;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	touch(memory, bytes);
	puts("done");
	return 0;
}
