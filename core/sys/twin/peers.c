/*
 * Loops in the shape of two public page-fault benchmarks, to be compared with.
 *
 * Each does what the tool does between two looks at the clock, and nothing else of it: how workers
 * are made, bound and started is the caller's. Written from what the tools do, not from their text.
 *
 * page_fault1 of will-it-scale: map, store one byte in each page and count it, unmap, again and
 * again; what it prints is pages a second over all of that.
 *
 * pft: one mapping is made before the workers start, each stores one byte in every page of its
 * share; what it prints is pages over the CPU time, and over the elapsed time, of the stores alone.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "now.h"

/* What one worker leaves: the same in twin/peers.rs. */
struct peer_round {
	uint64_t start_ns;	/* before mmap(), or before the stores where there is none */
	uint64_t mapped_ns;	/* before the first store */
	uint64_t touched_ns;	/* after the last store */
	uint64_t end_ns;	/* after munmap(), or after the stores where there is none */
	uint64_t cpu_ns;	/* user and system, from start to end */
	uint64_t minor;		/* faults from start to end */
	uint64_t major;
	uint64_t pages;		/* as the loop counted them */
};

static uint64_t cpu_ns(const struct rusage *usage)
{
	uint64_t seconds = (uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec;
	uint64_t micros = (uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec;

	return seconds * 1000000000u + micros * 1000u;
}

static void account(struct peer_round *out, const struct rusage *before, const struct rusage *after)
{
	out->cpu_ns = cpu_ns(after) - cpu_ns(before);
	out->minor = (uint64_t)(after->ru_minflt - before->ru_minflt);
	out->major = (uint64_t)(after->ru_majflt - before->ru_majflt);
}

/**
 * pagelab_c_page_fault1 - one pass of the loop of page_fault1
 * @bytes: (in) length of the mapping
 * @page:  (in) distance of the one-byte stores
 * @count: (in, out) pages stored to, on a cache line of its own; counted up at each
 * @out:   (out) times and faults of the pass
 *
 * Return: 0, or -1 when mmap() failed.
 */
int pagelab_c_page_fault1(uint64_t bytes, uint64_t page, uint64_t *count, struct peer_round *out)
{
	volatile uint64_t *done = count;
	uint64_t first = *done;
	struct rusage before, after;
	uint64_t at;
	char *map;

	getrusage(RUSAGE_THREAD, &before);
	out->start_ns = now_ns();
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -1;
	out->mapped_ns = now_ns();
	for (at = 0; at < bytes; at += page) {
		((volatile char *)map)[at] = 0;
		*done += 1;
	}
	out->touched_ns = now_ns();
	munmap(map, bytes);
	out->end_ns = now_ns();
	getrusage(RUSAGE_THREAD, &after);
	account(out, &before, &after);
	out->pages = *done - first;
	return 0;
}

/**
 * pagelab_c_pft_map - the mapping that the workers of pft share
 * @bytes: (in) its length
 *
 * Return: its address, or NULL.
 */
char *pagelab_c_pft_map(uint64_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/**
 * pagelab_c_pft_unmap - gives back what pagelab_c_pft_map() made
 * @map:   (in) its address
 * @bytes: (in) its length
 */
void pagelab_c_pft_unmap(char *map, uint64_t bytes)
{
	munmap(map, bytes);
}

/**
 * pagelab_c_pft_touch - what one worker of pft does
 * @share: (in) its part of the mapping
 * @bytes: (in) length of the part
 * @page:  (in) distance of the one-byte stores
 * @out:   (out) times and faults of the stores
 */
void pagelab_c_pft_touch(char *share, uint64_t bytes, uint64_t page, struct peer_round *out)
{
	struct rusage before, after;
	volatile char *at = share;
	volatile char *end = share + bytes;

	out->start_ns = now_ns();
	getrusage(RUSAGE_THREAD, &before);
	out->mapped_ns = out->start_ns;
	for (; at < end; at += page)
		*at = 'p';
	getrusage(RUSAGE_THREAD, &after);
	out->touched_ns = now_ns();
	out->end_ns = out->touched_ns;
	account(out, &before, &after);
	out->pages = bytes / page;
}
