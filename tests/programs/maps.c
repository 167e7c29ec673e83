/* Memory of so many MiB that the program asks for itself (own, shared, sysv, memfd), stored to
 * again and again; says a sum, and on stderr whether it runs with the library of pagelab. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static char *mapped(const char *kind, size_t bytes)
{
	int access = PROT_READ | PROT_WRITE;
	if (!strcmp(kind, "own"))
		return mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(kind, "shared"))
		return mmap(NULL, bytes, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(kind, "sysv")) {
		int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
		char *at = shmat(id, NULL, 0);
		shmctl(id, IPC_RMID, NULL);
		return at;
	}
	int file = memfd_create("maps of a test", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, (off_t)bytes))
		return MAP_FAILED;
	return mmap(NULL, bytes, access, MAP_SHARED, file, 0);
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 2 ? strtoul(argv[2], NULL, 0) : 16) << 20;
	unsigned long passes = argc > 3 ? strtoul(argv[3], NULL, 0) : 1, sum = 0;
	volatile char *memory = mapped(argc > 1 ? argv[1] : "own", bytes);
	char line[4096];
	int found = 0;

	if (memory == MAP_FAILED)
		return 1;
	while (passes--)
		for (size_t at = 0; at < bytes; at += 64)
			sum += (unsigned char)(memory[at] += (char)(at >> 12));
	printf("%lu\n", sum);
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps))
		found |= strstr(line, "libpagelab_preload") != NULL;
	fprintf(stderr, found ? "with the library\n" : "without the library\n");
	return 0;
}
