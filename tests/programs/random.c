/* Stores to every page of so many MiB of malloc's, then loads at random places; says the sum. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 0) : 64) << 20;
	unsigned long loads = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000000;
	uint64_t state = 88172645463325252ull, sum = 0;
	volatile char *memory = malloc(bytes);

	if (!memory)
		return 1;
	for (size_t at = 0; at < bytes; at += 4096)
		memory[at] = (char)(at >> 12);
	while (loads--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		sum += (uint64_t)memory[state % bytes];
	}
	printf("%lu\n", (unsigned long)sum);
	return 0;
}
