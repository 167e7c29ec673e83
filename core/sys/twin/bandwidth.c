/*
 * The C twin of the store and read loops: what a kernel developer would write with intrinsics.
 *
 * It exists to be compared with: an arm of memtype/bandwidth runs it beside the measured loops of
 * the same width, so that a loop that costs more than the memory does is noticed. It has its own
 * clock and its own loops. Word i of a round gets first + i.
 */
#define _GNU_SOURCE
#include <stdint.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "now.h"

struct round {
	uint64_t *to;
	uint64_t words;
	uint64_t first;
	uint64_t value;       /* of the fence word */
	uint64_t *fence_word;
	uint32_t width;       /* bytes */
	uint32_t nt;
	uint32_t fence;       /* 0 none, 1 sfence, 2 mfence, 3 store, 4 store and load */
	uint32_t back_width;  /* bytes of a load of the read-back, 0 without one */
	uint32_t back_nt;
};

static void store_8(uint64_t *to, uint64_t words, uint64_t first)
{
	volatile uint64_t *p = to;
	uint64_t i;

	for (i = 0; i < words; i++)
		p[i] = first + i;
}

static uint64_t sum_8(const uint64_t *from, uint64_t words)
{
	const volatile uint64_t *p = from;
	uint64_t sum = 0, i;

	for (i = 0; i < words; i++)
		sum += p[i];
	return sum;
}

static uint64_t differs_8(const uint64_t *from, uint64_t words, uint64_t first)
{
	const volatile uint64_t *p = from;
	uint64_t all = 0, i;

	for (i = 0; i < words; i++)
		all |= p[i] ^ (first + i);
	return all;
}

#ifdef __x86_64__

static void nt_8(uint64_t *to, uint64_t words, uint64_t first)
{
	uint64_t i;

	for (i = 0; i < words; i++)
		_mm_stream_si64((long long *)to + i, (long long)(first + i));
}

#define LANES(vec) (sizeof(vec) / sizeof(uint64_t))

/* Count in a vector, store it, add the number of lanes. */
#define STORE(name, attr, vec, store, ...)						\
	attr static void name(uint64_t *to, uint64_t words, uint64_t first)		\
	{										\
		vec v = first + (vec){ __VA_ARGS__ };					\
		uint64_t i;								\
											\
		for (i = 0; i < words; i += LANES(vec)) {				\
			store((vec *)(to + i), v);					\
			v += LANES(vec);						\
		}									\
	}

/* Two accumulators, as anybody would who knows that loads come two at a time. */
#define SUM(name, attr, vec, load)							\
	attr static uint64_t name(const uint64_t *from, uint64_t words)			\
	{										\
		vec a = {}, b = {};							\
		uint64_t sum = 0, i;							\
											\
		for (i = 0; i < words; i += 2 * LANES(vec)) {				\
			a += load((vec *)(from + i));					\
			b += load((vec *)(from + i + LANES(vec)));			\
		}									\
		a += b;									\
		for (i = 0; i < LANES(vec); i++)					\
			sum += a[i];							\
		return sum;								\
	}

/* Lanes are or-ed, as bits: a sum of them could make 0 of what is not. */
#define DIFFERS(name, attr, vec, bits, load, ...)					\
	attr static uint64_t name(const uint64_t *from, uint64_t words, uint64_t first)	\
	{										\
		vec v = first + (vec){ __VA_ARGS__ };					\
		bits all = {};								\
		uint64_t any = 0, i;							\
											\
		for (i = 0; i < words; i += LANES(vec)) {				\
			all |= (bits)load((vec *)(from + i)) ^ (bits)v;			\
			v += LANES(vec);						\
		}									\
		for (i = 0; i < LANES(vec); i++)					\
			any |= ((vec)all)[i];							\
		return any;								\
	}

/* All loops of one width: the intrinsics are named only where C has no operator. */
#define WIDTH(n, attr, nt_attr, nt_store, nt_load, ...)				\
	typedef uint64_t vec_##n __attribute__((vector_size(n), may_alias));		\
	typedef uint32_t bits_##n __attribute__((vector_size(n)));			\
	STORE(store_##n, attr, vec_##n, PLAIN_STORE, __VA_ARGS__)			\
	STORE(nt_##n, attr, vec_##n, nt_store, __VA_ARGS__)				\
	SUM(sum_##n, attr, vec_##n, PLAIN_LOAD)						\
	SUM(sum_nt_##n, nt_attr, vec_##n, nt_load)					\
	DIFFERS(differs_##n, attr, vec_##n, bits_##n, PLAIN_LOAD, __VA_ARGS__)			\
	DIFFERS(differs_nt_##n, nt_attr, vec_##n, bits_##n, nt_load, __VA_ARGS__)

#define PLAIN_STORE(to, v) (*(to) = (v))
#define PLAIN_LOAD(from) (*(from))
#define NT_STORE_16(to, v) _mm_stream_si128((__m128i *)(to), (__m128i)(v))
#define NT_LOAD_16(from) ((vec_16)_mm_stream_load_si128((__m128i *)(from)))
#define NT_STORE_32(to, v) _mm256_stream_si256((__m256i *)(to), (__m256i)(v))
#define NT_LOAD_32(from) ((vec_32)_mm256_stream_load_si256((__m256i *)(from)))
#define NT_STORE_64(to, v) _mm512_stream_si512((__m512i *)(to), (__m512i)(v))
#define NT_LOAD_64(from) ((vec_64)_mm512_stream_load_si512((__m512i *)(from)))
#define TARGET(feature) __attribute__((target(feature)))

WIDTH(16, , TARGET("sse4.1"), NT_STORE_16, NT_LOAD_16, 0, 1)
WIDTH(32, TARGET("avx2"), TARGET("avx2"), NT_STORE_32, NT_LOAD_32, 0, 1, 2, 3)
WIDTH(64, TARGET("avx512f"), TARGET("avx512f"), NT_STORE_64, NT_LOAD_64, 0, 1, 2, 3, 4, 5, 6, 7)

#endif

/* The loops of one width, by plain or by non-temporal instructions. */
struct loops {
	uint32_t width;
	uint32_t nt;
	void (*store)(uint64_t *to, uint64_t words, uint64_t first);
	uint64_t (*sum)(const uint64_t *from, uint64_t words);
	uint64_t (*differs)(const uint64_t *from, uint64_t words, uint64_t first);
};

static const struct loops ALL[] = {
	{ 8, 0, store_8, sum_8, differs_8 },
#ifdef __x86_64__
	{ 8, 1, nt_8, sum_8, differs_8 },
	{ 16, 0, store_16, sum_16, differs_16 },
	{ 16, 1, nt_16, sum_nt_16, differs_nt_16 },
	{ 32, 0, store_32, sum_32, differs_32 },
	{ 32, 1, nt_32, sum_nt_32, differs_nt_32 },
	{ 64, 0, store_64, sum_64, differs_64 },
	{ 64, 1, nt_64, sum_nt_64, differs_nt_64 },
#endif
};

/* Words of 8 bytes, plain, where the machine has nothing else. */
static const struct loops *loops_of(uint32_t width, uint32_t nt)
{
	unsigned int i;

	for (i = 0; i < sizeof(ALL) / sizeof(ALL[0]); i++)
		if (ALL[i].width == width && ALL[i].nt == nt)
			return &ALL[i];
	return &ALL[0];
}

static void sfence(void)
{
#ifdef __x86_64__
	_mm_sfence();
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

static void mfence(void)
{
#ifdef __x86_64__
	_mm_mfence();
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static void fence(const struct round *r)
{
	volatile uint64_t *word = r->fence_word;

	switch (r->fence) {
	case 1:
		sfence();
		break;
	case 2:
		mfence();
		break;
	case 3:
	case 4:
		*word = r->value;
		if (r->fence == 4)
			(void)*word;
		break;
	}
}

/**
 * pagelab_c_store_round - store one round of words
 * @r:  (in) what and where
 * @ns: (out) CLOCK_MONOTONIC_RAW before, when issued, when the test ends, when all has arrived
 *
 * Return: not 0 when a read-back was asked for and a word differed.
 */
uint64_t pagelab_c_store_round(const struct round *r, uint64_t ns[4])
{
	const struct loops *loops = loops_of(r->width, r->nt);
	const struct loops *back = loops_of(r->back_width, r->back_nt);
	uint64_t all = 0;

	ns[0] = now_ns();
	loops->store(r->to, r->words, r->first);
	ns[1] = now_ns();
	if (r->fence || r->back_width) {
		fence(r);
		if (r->back_width)
			all = back->differs(r->to, r->words, r->first);
		ns[2] = now_ns();
	} else {
		ns[2] = ns[1];
	}
	sfence();
	mfence();
	ns[3] = now_ns();
	return all;
}

/**
 * pagelab_c_read_round - sum words once
 * @from:  (in) the first word
 * @words: (in) how many
 * @width: (in) bytes of a load
 * @nt:    (in) not 0 for movntdqa
 * @ns:    (out) CLOCK_MONOTONIC_RAW before and after
 *
 * Return: the sum mod 2^64.
 */
uint64_t pagelab_c_read_round(const uint64_t *from, uint64_t words, uint32_t width, uint32_t nt,
			      uint64_t ns[2])
{
	const struct loops *loops = loops_of(width, nt);
	uint64_t all;

	ns[0] = now_ns();
	all = loops->sum(from, words);
	ns[1] = now_ns();
	return all;
}
