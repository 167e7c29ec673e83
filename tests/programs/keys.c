/* Calls pkey_mprotect over parts of maps, and says what came of it, of faults, and of maps that are
 * made where those were. Whether the processor has keys decides about none of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, LENGTH = 8 << 20, ROUNDS = 4 };
static sigjmp_buf after;

static void faulted(int number) { siglongjmp(after, number); }

static void probe(volatile char *at) {
	int number = sigsetjmp(after, 1);
	if (number) {
		printf(" !%d", number);
		return;
	}
	char was = *at;
	*at = (char)(was + 1);
	printf(" %d", was);
}

int main(void) {
	static const int keys[] = {-1, 0, 15, 16, -2};
	static const size_t offsets[] = {0, 64 * PAGE, LENGTH - PAGE};
	signal(SIGSEGV, faulted), signal(SIGBUS, faulted);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t key = 0; key < sizeof keys / sizeof *keys; key++) {
			char *at = mmap(0, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (at == MAP_FAILED) return 1;
			for (size_t i = 0; i < LENGTH; i += 97 * PAGE)
				if (at[i]) printf(" old");
			memset(at, 7, LENGTH);
			for (int access = 3; access >= 0; access--)
				for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
					errno = 0;
					int came = pkey_mprotect(at + offsets[k], k < 2 ? 3 * PAGE : PAGE,
						access, keys[key]);
					printf("%d %d %zu: %d e%d", keys[key], access, k, came, errno);
					probe(at + offsets[k]), probe(at + 65 * PAGE), probe(at + LENGTH / 2);
					puts("");
				}
			printf("%d\n", munmap(at, LENGTH));
		}
	printf("%d e%d\n", pkey_mprotect((char *)PAGE + 1, PAGE, PROT_READ, -1), errno);
	return 0;
}
