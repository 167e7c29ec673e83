/*
 * The C twin of the store and read loops: what a kernel developer would write with intrinsics.
 *
 * It exists to be compared with: an arm of memtype/bandwidth runs it beside the measured loops of
 * the same width, so that a loop that costs more than the memory does is noticed. It has its own
 * clock and its own loops. Word i of a round gets first + i.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

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

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))
#define SSE41 __attribute__((target("sse4.1")))

static void nt_8(uint64_t *to, uint64_t words, uint64_t first)
{
	uint64_t i;

	for (i = 0; i < words; i++)
		_mm_stream_si64((long long *)to + i, (long long)(first + i));
}

/* One loop for each instruction: count in a vector, store it, add the number of lanes. */
#define STORE(name, attr, vec, lanes, start, step, add, store)				\
	attr static void name(uint64_t *to, uint64_t words, uint64_t first)		\
	{										\
		vec v = start, by = step;						\
		uint64_t i;								\
											\
		for (i = 0; i < words; i += lanes) {					\
			store((vec *)(to + i), v);					\
			v = add(v, by);							\
		}									\
	}

#define F(i) ((long long)(first + i))
#define START16 _mm_set_epi64x(F(1), F(0))
#define START32 _mm256_set_epi64x(F(3), F(2), F(1), F(0))
#define START64 _mm512_set_epi64(F(7), F(6), F(5), F(4), F(3), F(2), F(1), F(0))

STORE(store_16, , __m128i, 2, START16, _mm_set1_epi64x(2), _mm_add_epi64, _mm_store_si128)
STORE(nt_16, , __m128i, 2, START16, _mm_set1_epi64x(2), _mm_add_epi64, _mm_stream_si128)
STORE(store_32, AVX2, __m256i, 4, START32, _mm256_set1_epi64x(4), _mm256_add_epi64,
      _mm256_store_si256)
STORE(nt_32, AVX2, __m256i, 4, START32, _mm256_set1_epi64x(4), _mm256_add_epi64,
      _mm256_stream_si256)
STORE(store_64, AVX512, __m512i, 8, START64, _mm512_set1_epi64(8), _mm512_add_epi64,
      _mm512_store_si512)
STORE(nt_64, AVX512, __m512i, 8, START64, _mm512_set1_epi64(8), _mm512_add_epi64,
      _mm512_stream_si512)

static uint64_t lanes_16(__m128i v)
{
	uint64_t w[2];

	_mm_storeu_si128((__m128i *)w, v);
	return w[0] + w[1];
}

AVX2 static uint64_t lanes_32(__m256i v)
{
	uint64_t w[4];

	_mm256_storeu_si256((__m256i *)w, v);
	return w[0] + w[1] + w[2] + w[3];
}

AVX512 static uint64_t lanes_64(__m512i v)
{
	uint64_t w[8], sum = 0;
	int i;

	_mm512_storeu_si512(w, v);
	for (i = 0; i < 8; i++)
		sum += w[i];
	return sum;
}

/* Two accumulators, as anybody would who knows that loads come two at a time. */
#define SUM(name, attr, vec, lanes, zero, add, load, reduce)				\
	attr static uint64_t name(const uint64_t *from, uint64_t words)			\
	{										\
		vec a = zero, b = zero;							\
		uint64_t i;								\
											\
		for (i = 0; i < words; i += 2 * lanes) {				\
			a = add(a, load((vec *)(from + i)));				\
			b = add(b, load((vec *)(from + i + lanes)));			\
		}									\
		return reduce(add(a, b));						\
	}

SUM(sum_16, , __m128i, 2, _mm_setzero_si128(), _mm_add_epi64, _mm_load_si128, lanes_16)
SUM(sum_nt_16, SSE41, __m128i, 2, _mm_setzero_si128(), _mm_add_epi64, _mm_stream_load_si128,
    lanes_16)
SUM(sum_32, AVX2, __m256i, 4, _mm256_setzero_si256(), _mm256_add_epi64, _mm256_load_si256, lanes_32)
SUM(sum_nt_32, AVX2, __m256i, 4, _mm256_setzero_si256(), _mm256_add_epi64,
    _mm256_stream_load_si256, lanes_32)
SUM(sum_64, AVX512, __m512i, 8, _mm512_setzero_si512(), _mm512_add_epi64, _mm512_load_si512,
    lanes_64)
SUM(sum_nt_64, AVX512, __m512i, 8, _mm512_setzero_si512(), _mm512_add_epi64,
    _mm512_stream_load_si512, lanes_64)

/* Lanes are or-ed: the reductions add, which could make 0 of what is not. */
static uint64_t any_16(__m128i v)
{
	uint64_t w[2];

	_mm_storeu_si128((__m128i *)w, v);
	return w[0] | w[1];
}

AVX2 static uint64_t any_32(__m256i v)
{
	uint64_t w[4];

	_mm256_storeu_si256((__m256i *)w, v);
	return w[0] | w[1] | w[2] | w[3];
}

AVX512 static uint64_t any_64(__m512i v)
{
	uint64_t w[8], all = 0;
	int i;

	_mm512_storeu_si512(w, v);
	for (i = 0; i < 8; i++)
		all |= w[i];
	return all;
}

#define DIFFERS(name, attr, vec, lanes, start, step, zero, add, or, xor, load, any)	\
	attr static uint64_t name(const uint64_t *from, uint64_t words, uint64_t first)	\
	{										\
		vec v = start, by = step, all = zero;					\
		uint64_t i;								\
											\
		for (i = 0; i < words; i += lanes) {					\
			all = or(all, xor(load((vec *)(from + i)), v));			\
			v = add(v, by);							\
		}									\
		return any(all);							\
	}

DIFFERS(differs_16, , __m128i, 2, START16, _mm_set1_epi64x(2), _mm_setzero_si128(), _mm_add_epi64,
	_mm_or_si128, _mm_xor_si128, _mm_load_si128, any_16)
DIFFERS(differs_nt_16, SSE41, __m128i, 2, START16, _mm_set1_epi64x(2), _mm_setzero_si128(),
	_mm_add_epi64, _mm_or_si128, _mm_xor_si128, _mm_stream_load_si128, any_16)
DIFFERS(differs_32, AVX2, __m256i, 4, START32, _mm256_set1_epi64x(4), _mm256_setzero_si256(),
	_mm256_add_epi64, _mm256_or_si256, _mm256_xor_si256, _mm256_load_si256, any_32)
DIFFERS(differs_nt_32, AVX2, __m256i, 4, START32, _mm256_set1_epi64x(4), _mm256_setzero_si256(),
	_mm256_add_epi64, _mm256_or_si256, _mm256_xor_si256, _mm256_stream_load_si256, any_32)
DIFFERS(differs_64, AVX512, __m512i, 8, START64, _mm512_set1_epi64(8), _mm512_setzero_si512(),
	_mm512_add_epi64, _mm512_or_si512, _mm512_xor_si512, _mm512_load_si512, any_64)
DIFFERS(differs_nt_64, AVX512, __m512i, 8, START64, _mm512_set1_epi64(8), _mm512_setzero_si512(),
	_mm512_add_epi64, _mm512_or_si512, _mm512_xor_si512, _mm512_stream_load_si512, any_64)

static void store(uint64_t *to, uint64_t words, uint64_t first, uint32_t width, uint32_t nt)
{
	switch (width) {
	case 8:
		(nt ? nt_8 : store_8)(to, words, first);
		break;
	case 16:
		(nt ? nt_16 : store_16)(to, words, first);
		break;
	case 32:
		(nt ? nt_32 : store_32)(to, words, first);
		break;
	case 64:
		(nt ? nt_64 : store_64)(to, words, first);
		break;
	}
}

static uint64_t sum(const uint64_t *from, uint64_t words, uint32_t width, uint32_t nt)
{
	switch (width) {
	case 16:
		return (nt ? sum_nt_16 : sum_16)(from, words);
	case 32:
		return (nt ? sum_nt_32 : sum_32)(from, words);
	case 64:
		return (nt ? sum_nt_64 : sum_64)(from, words);
	}
	return sum_8(from, words);
}

static uint64_t differs(const uint64_t *from, uint64_t words, uint64_t first, uint32_t width,
			uint32_t nt)
{
	switch (width) {
	case 16:
		return (nt ? differs_nt_16 : differs_16)(from, words, first);
	case 32:
		return (nt ? differs_nt_32 : differs_32)(from, words, first);
	case 64:
		return (nt ? differs_nt_64 : differs_64)(from, words, first);
	}
	return differs_8(from, words, first);
}

static void sfence(void)
{
	_mm_sfence();
}

#else /* any other architecture: words of 8 bytes, plain */

static void store(uint64_t *to, uint64_t words, uint64_t first, uint32_t width, uint32_t nt)
{
	(void)width, (void)nt;
	store_8(to, words, first);
}

static uint64_t sum(const uint64_t *from, uint64_t words, uint32_t width, uint32_t nt)
{
	(void)width, (void)nt;
	return sum_8(from, words);
}

static uint64_t differs(const uint64_t *from, uint64_t words, uint64_t first, uint32_t width,
			uint32_t nt)
{
	(void)width, (void)nt;
	return differs_8(from, words, first);
}

static void sfence(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

#endif

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
	uint64_t all = 0;

	ns[0] = now_ns();
	store(r->to, r->words, r->first, r->width, r->nt);
	ns[1] = now_ns();
	if (r->fence || r->back_width) {
		fence(r);
		if (r->back_width)
			all = differs(r->to, r->words, r->first, r->back_width, r->back_nt);
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
	uint64_t all;

	ns[0] = now_ns();
	all = sum(from, words, width, nt);
	ns[1] = now_ns();
	return all;
}
