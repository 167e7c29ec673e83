/* Draws calls that change memory from a seed, and says what came of each: SEED COUNT [FIRST LAST
 * [WORDS]], the lines of the calls FIRST to LAST, and a sum of all that was said each 1000 calls.
 * WORDS: "brk" moves the break, in place of calls of malloc; "large" has 40 MiB of maps more.
 *
 * Addresses that the kernel chooses differ between programs, so a line has them as offsets into
 * one of few regions: an arena at an address of its own, slots with a guard on either side, which
 * have neighbours that are known, and bare slots, of which nothing may depend on what lies
 * beside them: they grow and move as a whole only. What would depend on the machine is left out:
 * which pages are present, MADV_COLLAPSE (alignment decides), HUGETLB that could succeed, poison.
 * A hole is filled before anything is mapped at an address that the kernel chooses: it might
 * choose the hole. No call may change what is outside, unless the kernel surely refuses it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, SLOTS = 12, ARENA = SLOTS, BREAK, REGIONS, BLOCKS = 48, FILE_PAGES = 40 };
enum { BARE, GUARDED, FIXED_PLACE };
enum { UNTOUCHED = 77, DRAWS = 16 };
#define TASK_SIZE ((1ul << 47) - PAGE)
#define RW (PROT_READ | PROT_WRITE)
#define OWN (MAP_PRIVATE | MAP_ANONYMOUS)

/* Bare ones: alike is one that nothing was done to a part of. Sized: pages were advised. */
static struct region { char *at; size_t pages; int kind, alike, sized; } regions[REGIONS];
static struct { unsigned char *at, with; size_t size; } blocks[BLOCKS];
static int file_rw, file_r, file_w, file_closed, with_brk;
static unsigned long *shared;

/* What was said. */
static char line[1 << 16];
static size_t said;
static uint64_t sum = 14695981039346656037ul;

static void say(const char *format, ...) {
	va_list rest;
	va_start(rest, format);
	said += (size_t)vsnprintf(line + said, sizeof line - said, format, rest);
	va_end(rest);
	if (said > sizeof line - 1000) said = sizeof line - 1000;
}

static void end_line(int shows) {
	line[said++] = '\n';
	for (size_t i = 0; i < said; i++) sum = (sum ^ (unsigned char)line[i]) * 1099511628211ul;
	if (shows) fwrite(line, 1, said, stdout);
	said = 0;
}

static uint64_t state, drawn[DRAWS];
static int next_draw;

static uint64_t step(void) {
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state * 0x2545f4914f6cdd1dul;
}

/* Each call has as many numbers, whatever it does with them. */
static size_t draw(size_t below) {
	uint64_t number = drawn[next_draw++ % DRAWS];
	if (next_draw > DRAWS) number = number * 6364136223846793005ul + 1442695040888963407ul * next_draw;
	return (size_t)((number >> 20) % below);
}
#define PICK(...) ((const long[]){__VA_ARGS__}[draw(sizeof((const long[]){__VA_ARGS__}) / \
	sizeof(long))])

/* Faults. */
static sigjmp_buf after;
static volatile int signal_code, signal_number;

static void faulted(int number, siginfo_t *about, void *rest) {
	(void)rest;
	signal_number = number, signal_code = about->si_code;
	siglongjmp(after, 1);
}

static void probe(volatile char *at, int writes) {
	if (sigsetjmp(after, 1)) {
		say(" %c!%d/%d", "rw"[writes], signal_number, signal_code);
		return;
	}
	char was = *at;
	if (writes) *at = (char)(was + 1);
	say(" %c%d", "rw"[writes], was);
}

/* The mappings of this process. */
static struct { size_t start, end; char rights[5]; } maps[4096];
static int map_count;

static void read_maps(void) {
	static char text[1 << 20];
	size_t length = 0;
	ssize_t more;
	int file = open("/proc/self/maps", O_RDONLY);
	while ((more = read(file, text + length, sizeof text - 1 - length)) > 0) length += (size_t)more;
	close(file);
	text[length] = 0, map_count = 0;
	for (char *at = text; *at && map_count < 4096; at = strchr(at, '\n') + 1) {
		maps[map_count].start = strtoul(at, &at, 16);
		maps[map_count].end = strtoul(at + 1, &at, 16);
		memcpy(maps[map_count++].rights, at + 1, 4);
	}
}

static const char *rights(const char *at) {
	for (int i = 0; i < map_count; i++)
		if (maps[i].end > (size_t)at) return maps[i].start <= (size_t)at ? maps[i].rights : "hole";
	return "hole";
}

/* Rights of a region, neighbours that are alike as one. */
static void say_rights(const struct region *region) {
	const char *was = 0;
	size_t count = 0;
	for (size_t i = 0; i <= region->pages; i++) {
		const char *is = i < region->pages ? rights(region->at + i * PAGE) : "";
		if (was && strcmp(was, is)) say(" %s*%zu", was, count), count = 0;
		was = is, count++;
	}
}

static void say_contents(const struct region *region) {
	static uint64_t found;
	static volatile size_t i;
	found = 0;
	for (i = 0; i < region->pages; i++) {
		const volatile char *at = region->at + i * PAGE;
		const char *may = rights((const char *)at);
		if (may[0] != 'r' && may[1] != 'w') continue;
		if (sigsetjmp(after, 1)) {
			found = found * 31 + (uint64_t)(signal_number * 1000 + signal_code);
			continue;
		}
		uint64_t word = *(const volatile uint64_t *)at + *(const volatile uint64_t *)(at + i * 264 %
			4088 / 8 * 8);
		found = (found ^ word) * 1099511628211ul + 1;
	}
	say(" =%lx", (unsigned long)found);
}

static void result(long answer) {
	int error = errno;
	if (answer == -1) say(" -1 e%d", error);
	else say(" %ld%s", answer, error == UNTOUCHED ? "" : " errno changed");
}

/* An address as an offset; "new" is one that the kernel chose. */
static void place(const char *at) {
	int error = errno;
	if (at == MAP_FAILED) {
		say(" -1 e%d", error);
		return;
	}
	if (error != UNTOUCHED) say(" errno changed");
	for (int i = 0; i < REGIONS; i++)
		if (regions[i].at && at >= regions[i].at && at < regions[i].at + regions[i].pages * PAGE) {
			say(" %d+%zx", i, (size_t)(at - regions[i].at));
			return;
		}
	say(" new");
}
#define CALL(call) (errno = UNTOUCHED, (call))

static int has_hole(const struct region *region) {
	for (size_t i = 0; i < region->pages; i++)
		if (!strcmp(rights(region->at + i * PAGE), "hole")) return 1;
	return 0;
}

/* Before the kernel chooses an address. */
static void fill_holes(void) {
	for (int k = 0; k < SLOTS; k++) {
		struct region *region = &regions[k];
		if (!region->at || !has_hole(region)) continue;
		for (size_t i = 0, end; i < region->pages; i = end + 1) {
			for (end = i; end < region->pages && !strcmp(rights(region->at + end * PAGE), "hole");) end++;
			if (end == i) continue;
			char *came = mmap(region->at + i * PAGE, (end - i) * PAGE, PROT_NONE,
							  OWN | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
			if (came != region->at + i * PAGE) say(" hole %d+%zx taken: %d;", k, i, errno);
		}
		region->alike = 0;
	}
}

static void is_new(struct region *slot, char *at, size_t pages, int kind) {
	*slot = (struct region){at, pages, kind, kind == BARE, 0};
	if (kind == GUARDED) {
		if (mprotect(at, PAGE, PROT_NONE)) say(" guard e%d", errno);
		if (mprotect(at + (pages - 1) * PAGE, PAGE, PROT_NONE)) say(" guard e%d", errno);
	}
}

static int rights_drawn(void) {
	return (int)PICK(RW, RW, RW, RW, PROT_READ, PROT_NONE, PROT_WRITE, PROT_EXEC | PROT_READ, 7,
		PROT_EXEC, 8 | RW);
}

/* Flags of a map, but for its place; its file and where it begins there. */
static int kind_drawn(int *file, long *from, int is_free) {
	*file = -1, *from = 0;
	long kind = (long)draw(is_free ? 28 : 24);
	switch (kind) {
	case 0: return MAP_SHARED | MAP_ANONYMOUS;
	case 1: case 2: *file = file_rw, *from = (long)draw(FILE_PAGES) * PAGE; return MAP_SHARED;
	case 3: case 4: *file = file_rw, *from = (long)draw(FILE_PAGES) * PAGE; return MAP_PRIVATE;
	case 5:
		*file = (int)PICK(file_r, file_w, file_closed, -1), *from = PAGE;
		return (int)PICK(MAP_SHARED, MAP_PRIVATE);
	case 6: *file = file_rw, *from = PICK(1, -PAGE, 1l << 62, 512); return MAP_SHARED;
	case 7: return OWN | MAP_NORESERVE;
	case 8: return OWN | MAP_POPULATE;
	case 9: return (int)PICK(0, MAP_ANONYMOUS, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, MAP_TYPE |
		MAP_ANONYMOUS, 4 | MAP_ANONYMOUS);
	case 10: return OWN | (int)PICK(MAP_LOCKED, MAP_STACK, MAP_DENYWRITE, MAP_EXECUTABLE,
		MAP_NONBLOCK, 0x4000000, 1 << 30);
	case 11: *from = PICK(PAGE, 1, 1l << 40, -PAGE); return OWN;
	case 12: *file = file_rw; return OWN;
	case 13: *file = file_rw; return MAP_SHARED_VALIDATE | (int)PICK(0, 1 << 30, MAP_SYNC);
	default: return OWN;
	}
}

static size_t body(const struct region *region, char **start) {
	int guards = region->kind == GUARDED;
	*start = region->at + guards * PAGE;
	return region->pages - 2 * (size_t)guards;
}

/* A part of a region: an address and a length, now and then such that the kernel refuses it. */
static void part(const struct region *region, char **at, size_t *length, int may_misfit) {
	size_t pages = body(region, at), first = draw(pages), count = 1 + draw(pages - first);
	size_t shape = draw(16), odd = draw(PAGE - 1);
	if (shape < 3) first = 0, count = pages;
	if (shape == 3) count = 1;
	*at += first * PAGE, *length = count * PAGE;
	if (!may_misfit) return;
	if (shape == 4) *length -= odd;
	if (shape == 5) *length = 0;
	if (shape == 6) *at += 1 + odd % (PAGE - 1);
	if (shape == 7 && draw(2)) *length = (size_t)-(long)(1 + odd);
	if (shape == 6) *length -= PAGE, *length += !*length;
}

static void make(struct region *slot) {
	int file, kind = draw(3) ? GUARDED : BARE, access = rights_drawn();
	long from;
	int flags = kind_drawn(&file, &from, 1);
	size_t large = draw(12);
	size_t pages = 3 + (large < 10 ? draw(30) : large < 11 ? 200 + draw(400) : 512 * (1 + draw(3)) -
		1 + draw(2) * draw(300));
	char *hint = 0;
	switch (draw(12)) {
	case 0: hint = regions[ARENA].at + draw(regions[ARENA].pages) * PAGE + PICK(0, 1); break;
	case 1: hint = (char *)PICK(1, PAGE, 1l << 47, -PAGE, -1); break;
	}
	fill_holes();
	char *at = CALL(mmap(hint, pages * PAGE - draw(3), access, flags, file, from));
	say("make %d: %zu %x %x %d %lx%s", (int)(slot - regions), pages, access, flags, file >= 0, from,
		hint ? " hint" : "");
	place(at);
	if (at == MAP_FAILED) return;
	/* What came of a hint may lie in the arena, and is a part of it. */
	if (at >= regions[ARENA].at && at < regions[ARENA].at + regions[ARENA].pages * PAGE) return;
	is_new(slot, at, pages, kind);
}

static void drop(struct region *slot) {
	char *at = slot->at;
	size_t length = slot->pages * PAGE;
	int again = !draw(4), access = draw(3) ? RW : PROT_READ;
	size_t page = draw(slot->pages) * PAGE;
	if (slot->kind == GUARDED && draw(2)) say("open %d ", mprotect(at, length, RW));
	say("drop %d:", (int)(slot - regions));
	result(CALL(munmap(at, length)));
	slot->at = 0;
	unsigned char present;
	say(" mincore"), result(CALL(mincore(at + page, PAGE, &present)));
	probe(at + page, 0), probe(at + page, 1);
	say(" madvise"), result(CALL(madvise(at, length, MADV_DONTNEED)));
	if (!again) return;
	/* Where nothing is, a hint is an address. */
	fill_holes();
	char *came = CALL(mmap(at, length, access, OWN, -1, 0));
	say(" again %s", came == at ? "there" : "elsewhere");
	if (came != MAP_FAILED) is_new(slot, came, length / PAGE, BARE);
}

static void change(struct region *region) {
	char *at, *start;
	size_t length, which = draw(12);
	part(region, &at, &length, 1);
	size_t pages = body(region, &start);
	int is_whole = at == start && length == pages * PAGE;
	/* The length goes over the end of all memory: refused by all of these. */
	int is_absurd = length > TASK_SIZE;
	say("%d+%lx %lx", (int)(region - regions), (long)(at - region->at), (long)length);
	if (which != 8 && which != 9 && which != 10) region->alike &= is_whole;
	switch (which) {
	case 0: case 1:
		if (region == &regions[BREAK]) break;
		say(" munmap"), result(CALL(munmap(at, length)));
		break;
	case 2: case 3: case 4: {
		int access = draw(8) ? rights_drawn() : (int)PICK(PROT_GROWSDOWN, PROT_GROWSUP, PROT_GROWSUP |
			PROT_GROWSDOWN, 0x8000, -1, 16);
		say(" mprotect %x", access), result(CALL(mprotect(at, length, access)));
		break;
	}
	case 5: case 6: case 7: {
		int advice = (int)PICK(MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
			MADV_DONTNEED, MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTFORK,
			MADV_DOFORK, MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
			MADV_DONTDUMP, MADV_DODUMP, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_COLD, MADV_PAGEOUT,
			MADV_POPULATE_READ, MADV_POPULATE_WRITE, 102, 103, 24, 5, -1, 77);
		/* Inside a segment these are ignored, so they must split nothing that is to be moved. */
		if (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE) {
			if (!is_whole) break;
			region->sized = 1;
		}
		say(" madvise %d", advice), result(CALL(madvise(at, length, advice)));
		/* When it goes the kernel decides. */
		if (advice == MADV_FREE) say(" and"), result(CALL(madvise(at, length, MADV_DONTNEED)));
		break;
	}
	case 8: {
		int flags = (int)PICK(MS_ASYNC, MS_SYNC, MS_INVALIDATE, MS_SYNC | MS_ASYNC, 0, 8, MS_SYNC |
			MS_INVALIDATE);
		say(" msync %d", flags), result(CALL(msync(at, length, flags)));
		break;
	}
	case 9: {
		static unsigned char present[4096];
		int bad = !draw(8);
		say(" mincore"), result(CALL(mincore(at, length, bad ? (unsigned char *)8 : present)));
		break;
	}
	case 10:
		if (is_absurd || (long)at % PAGE) break;
		for (size_t i = 0; i < length; i += PAGE)
			if (rights(at + i)[1] == 'w' && !sigsetjmp(after, 1)) at[i + draw(PAGE)] = (char)(i / PAGE + 1);
		say(" write");
		break;
	case 11:
		switch (draw(4)) {
		case 0: say(" mlock"), result(CALL(mlock(at, length))); break;
		case 1: say(" mlock2"), result(CALL(mlock2(at, length, (unsigned)PICK(0, 1, 2)))); break;
		default: say(" munlock"), result(CALL(munlock(at, length))); break;
		}
	}
}

static void map_over(struct region *region) {
	char *at;
	size_t length;
	int file, access = rights_drawn();
	long from;
	int flags = kind_drawn(&file, &from, 0);
	int where = (int)PICK(MAP_FIXED, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_FIXED_NOREPLACE, MAP_FIXED
		| MAP_FIXED_NOREPLACE);
	part(region, &at, &length, 1);
	if (region->kind == FIXED_PLACE && region != &regions[BREAK] && !draw(12)) flags |= MAP_GROWSDOWN;
	if (!draw(24)) flags |= MAP_HUGETLB | 40 << MAP_HUGE_SHIFT;
	region->alike = 0;
	say("%d+%lx %lx map over %x %x %lx", (int)(region - regions), (long)(at - region->at),
		(long)length, access, flags | where, from);
	place(CALL(mmap(at, length, access, flags | where, file, from)));
}

static void move(struct region *region) {
	char *at, *to, *start;
	size_t old, length;
	int flags = (int)PICK(0, 0, 1, 1, 1, 1, 3, 3, 3, 5, 7, 2, 4, 6, 8, 9, -1);
	if (region->kind == BARE && !region->alike) return;
	part(region, &at, &old, region->kind != BARE);
	struct region *other = &regions[draw(2) ? ARENA : (int)draw(SLOTS)];
	if (!other->at || other->kind == BARE || (other->sized && other->kind != BARE)) other =
		&regions[ARENA];
	size_t room = body(other, &to), goal = draw(room);
	to += goal * PAGE;
	room = (room - goal) * PAGE;
	length = draw(3) ? old : (1 + draw(old / PAGE % 5000 + 8)) * PAGE;
	if (region->kind == BARE) {
		/* Whether one grows in place depends on its neighbour, so it may move. */
		old = body(region, &start) * PAGE, at = start, flags = MREMAP_MAYMOVE;
		length = old + draw(40) * PAGE;
	} else if (region->sized) {
		return;
	}
	/* With MREMAP_DONTUNMAP `to` is a hint, which may not overlap the source. */
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) && (flags & ~7) == 0 && length > room) length = room;
	if (!draw(10)) to += 1;
	size_t odd = draw(20);
	if (region->kind != BARE) {
		if (odd == 0) length = 0;
		if (odd == 1) length = 1ul << 47;
		if (odd == 2) length = (size_t)-PAGE;
		if (odd == 3) old = 0;
		if (odd == 4 && length <= TASK_SIZE) length -= 5;
		/* A large length that is not refused would unmap what is outside. */
		if (old > TASK_SIZE && length < old) length = old;
	}
	int places = flags & MREMAP_MAYMOVE && !(flags & MREMAP_FIXED);
	struct region *slot = 0;
	if (places) {
		for (slot = regions; slot < regions + SLOTS && slot->at; slot++) {}
		if (slot == regions + SLOTS) return;
		fill_holes();
	}
	say("%d+%lx %lx mremap %lx %x", (int)(region - regions), (long)(at - region->at), (long)old,
		(long)length, flags);
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) say(" to %d+%lx", (int)(other - regions),
		(long)(to - other->at));
	size_t pages = (length + PAGE - 1) / PAGE;
	int was_whole = region->kind == BARE;
	char *came = CALL(mremap(at, old, length, flags, to));
	if (was_whole) {
		say(" %s", came == MAP_FAILED ? "failed" : "done");
		if (came != MAP_FAILED) region->at = came, region->pages = pages;
		return;
	}
	place(came);
	if (came == MAP_FAILED || came == at) return;
	for (int i = 0; i < REGIONS; i++)
		if (regions[i].at && came >= regions[i].at && came < regions[i].at + regions[i].pages * PAGE)
			return;
	if (slot) is_new(slot, came, pages, BARE);
}

/* Calls that the kernel refuses, whatever is mapped. */
static void absurd(void) {
	char *at = (char *)PICK(0, 1, PAGE, 1l << 47, (1l << 47) - PAGE, -PAGE, -1,
		(long)regions[ARENA].at);
	size_t length = (size_t)PICK(-PAGE, 1l << 47, -1, (1l << 47) - PAGE, 1l << 62, LONG_MIN, 0);
	if ((size_t)at + length <= TASK_SIZE && length && (size_t)at + length > (size_t)at) length =
		(size_t)-PAGE;
	say("absurd %lx %lx", at == regions[ARENA].at ? 0xa : (long)at, (long)length);
	switch (draw(10)) {
	case 0: case 1: say(" munmap"), result(CALL(munmap(at, length))); break;
	case 2: say(" mprotect"), result(at ? CALL(mprotect((char *)-PAGE, length, RW)) :
		CALL(mprotect(0, (size_t)-PAGE, PROT_READ))); break;
	case 3: say(" madvise"), result(CALL(madvise(at, (size_t)-1, MADV_DONTNEED))); break;
	case 4: say(" mremap"), place(CALL(mremap(at, length, draw(2) ? PAGE : length, (int)PICK(0, 1,
		3, 5), at))); break;
	case 5: {
		fill_holes();
		char *came = CALL(mmap(at, length, RW, OWN | (int)PICK(MAP_FIXED, 0, MAP_NORESERVE,
			MAP_FIXED_NOREPLACE), -1, 0));
		say(" mmap"), place(came);
		if (came != MAP_FAILED) munmap(came, length);
		break;
	}
	case 6: say(" msync"), result(CALL(msync((char *)(1l << 47), length, MS_ASYNC))); break;
	case 7: say(" mlock"), result(CALL(mlock(0, (size_t)-PAGE))); break;
	case 8: {
		/* Addresses are not memory, and more than there is cannot be promised. */
		fill_holes();
		size_t much = 1ul << PICK(40, 42, 44);
		int flags = draw(2) ? MAP_NORESERVE : 0, access = (int)PICK(RW, PROT_NONE);
		char *came = CALL(mmap(0, much, access, OWN | flags, -1, 0));
		say(" much %lx %x %x", (long)much, flags, access), place(came);
		if (came != MAP_FAILED) say(" munmap"), result(CALL(munmap(came, much)));
		break;
	}
	case 9: {
		static unsigned char present[16];
		say(" mincore"), result(CALL(mincore((char *)(1l << 47), length, present)));
		probe(at, 0);
		break;
	}
	}
}

/* malloc and its kin: what is there is as it was left. */
static void allocate(void) {
	size_t i = draw(BLOCKS), kind = draw(14), large = draw(40);
	size_t size = large < 28 ? draw(3000) : large < 37 ? draw(200000) : large < 39 ? draw(3 << 20)
		: (size_t)PICK(0, -1, LONG_MAX, 1l << 46, LONG_MAX - PAGE, -4096, LONG_MIN);
	size_t to = (size_t)PICK(8, 16, 64, 256, 4096, 65536, 1 << 17, 1 << 21, 0, 3, 24, 48, 1, LONG_MIN);
	unsigned char *at = blocks[i].at;
	size_t had = at ? blocks[i].size : 0;
	fill_holes();
	say("block %zu %zx:", i, size);
	for (size_t k = 0; k < had; k += k + 61 < had || k + 1 == had ? 61 : had - 1 - k)
		if (at[k] != blocks[i].with) { say(" lost at %zx", k); break; }
	int code = 0;
	void *got = at;
	switch (kind) {
	case 0: case 1: case 2: free(at), at = CALL(malloc(size)), say(" malloc"); break;
	case 3: {
		size_t each = (size_t)PICK(1, 1, 1, 16, 1l << 33);
		size_t count = size / (each == 16 ? 16 : 1);
		free(at), at = CALL(calloc(count + (count < SIZE_MAX), each)), say(" calloc %zx", each);
		for (size_t k = 0; at && k < size && each == 1; k += 97)
			if (at[k]) { say(" not zero"); break; }
		break;
	}
	case 4: case 5: case 6: {
		unsigned char *was = at;
		at = CALL(realloc(was, size)), say(" realloc");
		if (!at && was && size) {
			/* It is as it was. */
			say(" NULL e%d", errno);
			return;
		}
		if (was && !size) { say(at ? " is" : " none"), free(at), blocks[i].at = 0; return; }
		for (size_t k = 0; at && k < had && k < size; k += 61)
			if (at[k] != blocks[i].with) { say(" realloc lost at %zx", k); break; }
		break;
	}
	case 7: free(at), at = CALL(memalign(to, size)), say(" memalign %zx", to); break;
	case 8:
		free(at), at = 0, got = 0;
		code = CALL(posix_memalign(&got, to, size));
		say(" posix_memalign %zx %d", to, code);
		at = got;
		break;
	case 9: free(at), at = CALL(aligned_alloc(to, size)), say(" aligned_alloc %zx", to); break;
	case 10:
		free(at), at = CALL(size % 2 ? valloc(size) : pvalloc(size));
		say(" valloc"), to = PAGE;
		break;
	case 11: {
		size_t count = (size_t)PICK(1, 3, 1l << 40, LONG_MAX);
		void *came = CALL(reallocarray(0, count, size));
		say(" reallocarray %zx %s e%d", count, came ? "is" : "NULL", errno), free(came);
		return;
	}
	default:
		errno = UNTOUCHED, free(at), blocks[i].at = 0;
		say(" free%s", errno == UNTOUCHED ? "" : " errno changed");
		return;
	}
	say(at ? errno == UNTOUCHED ? " is" : " is, errno changed" : " NULL e%d", errno);
	blocks[i].at = at;
	if (!at) return;
	if (kind >= 7 && to > 1 && !(to & (to - 1)) && (size_t)at % to) say(" aligned badly");
	if ((size_t)at % 16) say(" aligned badly");
	if (malloc_usable_size(at) < size) say(" too small");
	/* As if nobody wrote the rest of what is large. */
	if (size > (size_t)1 << 32) size = PAGE;
	blocks[i].size = size, blocks[i].with = (unsigned char)(draw(255) + 1);
	memset(at, blocks[i].with, size);
}

/* The break, as offsets to where it was first. */
static void move_break(void) {
	char *base = regions[BREAK].at;
	long by = (long)(PICK(0, 1, PAGE, 5 * PAGE, 100, 5000, 30000, -1, -PAGE, -7 * PAGE, -40000,
		-1000, 1l << 45, -(1l << 40), LONG_MAX, LONG_MIN));
	char *now = sbrk(0);
	if (by < 1 << 20 && now + by > base + 60 * PAGE) by = -by;
	if (draw(2)) {
		char *came = CALL(sbrk(by));
		say("sbrk %lx", by);
		if (came == (char *)-1) say(" -1 e%d", errno);
		else say(" %lx%s", (long)(came - base), errno == UNTOUCHED ? "" : " errno changed");
	} else {
		/* Nobody knows where below its beginning other things lie. */
		int low = !draw(6);
		say("brk %lx %d", by, low), result(CALL(brk(low ? (char *)PICK(0, 1, PAGE) : now + by)));
	}
	say(" now %lx", (long)((char *)sbrk(0) - base));
}

static uint64_t everything(void) {
	uint64_t was = sum, found;
	size_t had = said;
	sum = 14695981039346656037ul;
	read_maps();
	for (int i = 0; i < REGIONS; i++)
		if (regions[i].at) say_rights(&regions[i]), say_contents(&regions[i]);
	for (size_t i = had; i < said; i++) sum = (sum ^ (unsigned char)line[i]) * 1099511628211ul;
	found = sum, sum = was, said = had;
	return found;
}

static void child(void) {
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		*shared = everything();
		_exit(3);
	}
	int status;
	waitpid(pid, &status, 0);
	say("child %x %lx", status, *shared);
}

int main(int count, char **words) {
	static char buffer[1 << 16];
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	if (count < 3) return 2;
	long calls = atol(words[2]), first = count > 4 ? atol(words[3]) : 0, last = count > 4 ?
		atol(words[4]) : -1;
	const char *how = count > 5 ? words[5] : "";
	state = strtoul(words[1], 0, 0) * 0x9e3779b97f4a7c15ul | 1;
	with_brk = !!strstr(how, "brk");
	struct sigaction action = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGSEGV, &action, 0), sigaction(SIGBUS, &action, 0);
	shared = mmap(0, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (strstr(how, "large"))
		for (int i = 0; i < 40; i++) mmap(0, 1 << 20, RW, OWN, -1, 0);
	file_rw = memfd_create("calls", 0);
	if (ftruncate(file_rw, FILE_PAGES * PAGE - 100)) return 3;
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", file_rw);
	file_r = open(path, O_RDONLY), file_w = open(path, O_WRONLY), file_closed = 900;
	char *arena = mmap((char *)0x100000000000, 160 * PAGE, PROT_NONE, OWN | MAP_NORESERVE |
		MAP_FIXED_NOREPLACE, -1, 0);
	if (arena == MAP_FAILED) return 3;
	regions[ARENA] = (struct region){arena, 160, FIXED_PLACE, 0, 0};
	if (with_brk) regions[BREAK] = (struct region){sbrk(0), 64, FIXED_PLACE, 0, 0};
	/* As the first of many, which are larger. */
	if (!with_brk) free(malloc(2 << 20));
	for (long i = 0; i < calls; i++) {
		for (int k = 0; k < DRAWS; k++) drawn[k] = step();
		next_draw = 0;
		say("%ld ", i);
		read_maps();
		size_t which = draw(SLOTS + 5), what = draw(32);
		if (which >= SLOTS) which = with_brk && which == SLOTS ? BREAK : ARENA;
		struct region *region = &regions[which];
		if (what < 2) absurd();
		else if (what < 8 && with_brk) move_break();
		else if (what < 8) allocate();
		else if (what == 8 && !draw(20)) child();
		else if (!region->at) make(region);
		else if (what < 11 && region->kind != FIXED_PLACE) drop(region);
		else if (what < 16) map_over(region);
		/* Where nothing is below the break the kernel does not lower it, but libc says it did. */
		else if (what < 20 && which != BREAK) move(region);
		else change(region);
		read_maps();
		if (region->at) {
			say(";"), say_rights(region);
			char *start = region->at + draw(region->pages) * PAGE + draw(PAGE);
			probe(start, (int)draw(2));
			if (region->pages < 100 || !draw(8)) say_contents(region);
		}
		if (i % 64 == 63) say(" all %lx", (long)everything());
		end_line(i >= first && i <= last);
		if (i % 1000 == 999) printf("%ld %016lx\n", i, (unsigned long)sum);
	}
	for (int i = 0; i < BLOCKS; i++) free(blocks[i].at);
	printf("%016lx\n", (unsigned long)sum);
	return 0;
}
