/* Forks in the midst of what malloc does: WHAT. With "streams" and "handler" another thread has a
 * lock that the fork waits for, and allocates: that of a stream, for which a third thread waits
 * that goes through all of them; and one for which a handler waits that was registered before any
 * library began. With "signals" a handler of signals forks, 300 times. Prints "forked" in the
 * child of the first two and "gone on" in the parent. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 2000, BYTES = 100000 };
static atomic_int has_lock, flushes, forks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *stream;
static int by_handler;

/* Whether a thread of this process waits for something. */
static int sleeps(int thread) {
	char name[64], about[256] = "";
	snprintf(name, sizeof name, "/proc/self/task/%d/stat", thread);
	int file = open(name, O_RDONLY);
	if (file < 0 || read(file, about, sizeof about - 1) < 0) _exit(9);
	close(file);
	char *state = strrchr(about, ')');
	return state && state[2] == 'S';
}

static void until(atomic_int *thread) {
	while (!*thread || !sleeps(*thread)) usleep(1000);
}

/* Has the lock until the fork waits for it, and allocates then. */
static void *holds(void *rest) {
	static void *some[BLOCKS];
	if (by_handler) pthread_mutex_lock(&lock);
	else flockfile(stream);
	has_lock = 1;
	until(&forks);
	for (int i = 0; i < BLOCKS; i++)
		if (!(some[i] = malloc(BYTES))) _exit(8);
	for (int i = 0; i < BLOCKS; i++) free(some[i]);
	if (by_handler) pthread_mutex_unlock(&lock);
	else funlockfile(stream);
	return rest;
}

/* Has the list of all streams, and waits for one of them. */
static void *goes_through(void *rest) {
	flushes = (int)syscall(SYS_gettid);
	fflush(NULL);
	return rest;
}

static void before(void) { pthread_mutex_lock(&lock); }
static void after(void) { pthread_mutex_unlock(&lock); }
static void sooner(int count, char **words, char **environment) {
	(void)environment;
	by_handler = count > 1 && !strcmp(words[1], "handler");
	if (by_handler) pthread_atfork(before, after, after);
}
__attribute__((section(".preinit_array"), used))
static void (*first)(int, char **, char **) = sooner;

/* The next signal comes some time after a handler is done: on a slow machine there would be nothing
 * between two of them otherwise. */
enum { CHILDREN = 300 };
static atomic_int children;
static int soon(void) {
	struct itimerval once = {{0, 0}, {0, 1000}};
	return setitimer(ITIMER_REAL, &once, 0);
}

static void forks_again(int number) {
	(void)number;
	int status = 1;
	pid_t child = fork();
	if (child == 0) _exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child || status) _exit(2);
	if (++children < CHILDREN && soon()) _exit(2);
}

/* Takes and gives back enough for leaves to come and go, until there were some children. */
static int signals(void) {
	static void *some[300];
	struct sigaction action = {.sa_handler = forks_again, .sa_flags = SA_RESTART};
	if (sigaction(SIGALRM, &action, 0) || soon()) return 1;
	while (children < CHILDREN) {
		for (int i = 0; i < 300; i++)
			if (!(some[i] = malloc(BYTES))) return 1;
		for (int i = 0; i < 300; i++) free(some[i]);
	}
	return puts("gone on") < 0;
}

int main(int count, char **words) {
	pthread_t holder, flusher;
	if (count > 1 && !strcmp(words[1], "signals")) return signals();
	stream = tmpfile();
	if (!stream || pthread_create(&holder, 0, holds, 0)) return 7;
	while (!has_lock) usleep(1000);
	if (!by_handler) {
		if (pthread_create(&flusher, 0, goes_through, 0)) return 6;
		until(&flushes);
	}
	forks = (int)syscall(SYS_gettid);
	pid_t child = fork();
	if (child == 0) {
		char *some = malloc(BYTES);
		if (!some) return 5;
		memset(some, 1, BYTES), free(some);
		if (fprintf(stream, "x") != 1 || fflush(NULL)) return 4;
		puts("forked");
		return 0;
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || status) return 3;
	pthread_join(holder, 0);
	if (!by_handler) pthread_join(flusher, 0);
	puts("gone on");
	return 0;
}
