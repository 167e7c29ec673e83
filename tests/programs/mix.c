/* One array that is filled, and some of which a page in each 2 MiB is: by mmap or by malloc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char *had(const char *way, size_t bytes)
{
	if (!strcmp(way, "malloc"))
		return malloc(bytes);
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

__attribute__((noinline)) static char *dense(const char *way, size_t bytes)
{
	char *at = had(way, bytes);
	for (size_t i = 0; i < bytes; i += 64)
		at[i] = 1;
	return at;
}

__attribute__((noinline)) static char *sparse(const char *way, size_t bytes)
{
	char *at = had(way, bytes);
	for (size_t i = 0; i < bytes; i += 2 << 20)
		memset(at + i + (1 << 20), 1, 20 * 4096);
	return at;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	const char *way = argv[1];
	size_t mib = atol(argv[2]), rounds = atol(argv[3]), sum = 0;
	char *one = dense(way, mib << 20), *others[6];
	for (int i = 0; i < 6; i++)
		others[i] = sparse(way, mib << 19);
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < mib << 20; i += 4096)
			sum += one[(i * 7919 + round) % (mib << 20)];
	for (int i = 0; i < 6; i++)
		sum += others[i][1 << 20];
	printf("%zu\n", sum);
	return 0;
}
