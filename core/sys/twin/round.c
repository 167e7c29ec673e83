/*
 * The C twin: what a kernel developer would write on one page to time page faults.
 *
 * It exists to be compared with: an arm of fault/throughput runs it beside the measured loop, so
 * that a harness that costs something, or measures something else, is noticed. It shares nothing
 * with the rest of the room: its own mmap, its own clock, its own loop.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "now.h"

/**
 * pagelab_c_round - map, touch and release anonymous memory once
 * @bytes:  (in) length of the mapping
 * @stride: (in) distance of the 8-byte writes
 * @align:  (in) alignment of the first write, a power of two
 * @huge:   (in) non-zero for MADV_HUGEPAGE, zero for MADV_NOHUGEPAGE
 * @ns:     (out) nanoseconds of mmap, of the loop, of munmap
 *
 * Return: 0, or -1 when mmap() or madvise() failed.
 */
int pagelab_c_round(uint64_t bytes, uint64_t stride, uint64_t align, int huge, uint64_t ns[3])
{
	uint64_t length = bytes + align;
	uint64_t t0 = now_ns();
	char *map = mmap(0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t t1 = now_ns();
	char *start;
	uint64_t at;

	if (map == MAP_FAILED)
		return -1;
	if (madvise(map, length, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) {
		munmap(map, length);
		return -1;
	}
	start = (char *)(((uintptr_t)map + align - 1) & ~((uintptr_t)align - 1));

	uint64_t t2 = now_ns();
	for (at = 0; at < bytes; at += stride)
		*(volatile uint64_t *)(start + at) = 0;
	uint64_t t3 = now_ns();

	munmap(map, length);
	uint64_t t4 = now_ns();

	ns[0] = t1 - t0;
	ns[1] = t3 - t2;
	ns[2] = t4 - t3;
	return 0;
}
