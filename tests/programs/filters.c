/* Forbids itself all system calls but those that glibc needs, then takes and gives back memory:
 * HOW [MIB [MORE]]. HOW is "prctl", "syscall" or "strict", with which nothing more is mapped; MIB
 * is what it takes before, by malloc and by maps, and MORE what it takes of malloc in the end,
 * without touching it. Whoever calls anything else is killed. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void forbid(int by_prctl) {
	static const int calls[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_mmap, SYS_munmap,
		SYS_mremap, SYS_brk, SYS_fstat, SYS_newfstatat, SYS_getrandom};
	enum { COUNT = sizeof calls / sizeof *calls };
	struct sock_filter filter[2 * COUNT + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct
		seccomp_data, nr))};
	for (int i = 0; i < COUNT; i++) {
		filter[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
			0, 1);
		filter[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[2 * COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = {2 * COUNT + 2, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(4);
	if (by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
				 : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(5);
}

static char *map(size_t size) {
	return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int count, char **words) {
	if (count < 2) return 2;
	size_t mib = count > 2 ? strtoul(words[2], 0, 0) : 0;
	static char *had[2][1000];
	for (size_t i = 0; i < mib && i < 1000; i++) {
		had[0][i] = malloc(1 << 20), had[1][i] = map(1 << 20);
		memset(had[0][i], 1, 1 << 20), memset(had[1][i], 1, 1 << 20);
	}
	if (!strcmp(words[1], "strict")) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 6;
		char *some = mib ? malloc(1000) : had[0][0];
		if (some) memset(some, 1, 1000);
		free(some);
		write(1, "strict\n", 7);
		syscall(SYS_exit, 0);
	}
	forbid(!strcmp(words[1], "prctl"));
	for (int i = 0; i < 300; i++) {
		size_t size = (size_t)i * 1000 + 1;
		char *some = malloc(size), *one = map(4 << 20);
		if (!some || one == MAP_FAILED) return 7;
		memset(some, 1, size), memset(one, 1, 4 << 20);
		munmap(one, 4 << 20);
		some = realloc(some, 30 * size);
		if (!some) return 8;
		memset(some, 1, 30 * size);
		if (i % 50 == 49) some = realloc(some, 20 << 20);
		if (i % 3) free(some);
		if ((size_t)i < mib) free(had[0][i]), munmap(had[1][i], 1 << 20);
	}
	size_t more = count > 3 ? strtoul(words[3], 0, 0) : 0;
	for (size_t i = 0; i < 2 * more; i++)
		if (!malloc(512 << 10)) return 9;
	puts("filtered");
	return 0;
}
