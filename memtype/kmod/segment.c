// SPDX-License-Identifier: GPL-2.0
/*
 * Segments: frames that are zeroed by the fault that first maps them.
 *
 * The one idea: a frame is "given" once it holds what its program should find there, one bit for
 * each 4K. A fault zeroes what is not given yet behind the whole leaf that it maps, in as large
 * pieces as lie together, and nothing else: a leaf that was split and taken out comes back with its
 * contents. DROP takes the bit away again.
 *
 * Two locks. Faults hold @drop for reading from the first look at a bit until the entry is in the
 * page table, so that nothing is dropped in between; within that, @zeroing keeps a second fault on
 * the same 2M from zeroing what the first has already handed out. Bits of two such pieces share no
 * word.
 */
#include <linux/bitmap.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/rwsem.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "pagelab.h"

/**
 * pl_given_alloc() - make a region a segment
 * @region: not yet published
 * @zeroed: its frames are zero
 *
 * Return: 0, -E2BIG or -ENOMEM.
 */
int pl_given_alloc(struct pl_region *region, bool zeroed)
{
	unsigned long words;
	struct pl_given *given;
	unsigned int i;

	/* bitmap_set() and bitmap_clear() take int. */
	if (region->nr_pages > INT_MAX)
		return -E2BIG;
	words = BITS_TO_LONGS(region->nr_pages);
	given = kvzalloc(struct_size(given, pages, words + BITS_TO_LONGS(words)),
			 GFP_KERNEL_ACCOUNT);
	if (!given)
		return -ENOMEM;
	init_rwsem(&given->drop);
	init_waitqueue_head(&given->thawed);
	given->touched = given->pages + words;
	for (i = 0; i < PL_LOCKS; i++)
		mutex_init(&given->zeroing[i]);
	if (zeroed)
		bitmap_set(given->pages, 0, region->nr_pages);
	region->given = given;
	return 0;
}

/**
 * pl_given_free() - what pl_given_alloc() made, if it did
 * @region: nobody maps it any more
 */
void pl_given_free(struct pl_region *region)
{
	if (region->given && region->given->owner)
		mmdrop(region->given->owner);
	kvfree(region->given);
	region->given = NULL;
}

/**
 * pl_bind() - bind a segment to the process that maps it first
 * @region: of any kind; only a segment is bound
 * @mm: of the process that maps it
 *
 * Return: 0, or -EPERM where the segment is bound to another process.
 */
int pl_bind(const struct pl_region *region, struct mm_struct *mm)
{
	struct mm_struct *owner;

	if (!region->given)
		return 0;
	owner = cmpxchg(&region->given->owner, NULL, mm);
	if (!owner)
		mmgrab(mm);
	return owner && owner != mm ? -EPERM : 0;
}

static void zero(const struct pl_region *region, unsigned long page, unsigned long nr)
{
	if (region->layout == PAGELAB_RESERVED)
		memset_io(region->map + (page << PAGE_SHIFT), 0, nr << PAGE_SHIFT);
	else
		memset(__va(PFN_PHYS(pl_region_pfn(region, page))), 0, nr << PAGE_SHIFT);
}

/* What is not given of some pages, all in one piece. */
static void give_piece(const struct pl_region *region, unsigned long page, unsigned long end)
{
	struct pl_given *given = region->given;
	struct mutex *zeroing = &given->zeroing[page / PL_PIECE % PL_LOCKS];

	mutex_lock(zeroing);
	for (;;) {
		unsigned long until;

		page = find_next_zero_bit(given->pages, end, page);
		if (page >= end)
			break;
		until = find_next_bit(given->pages, end, page);
		zero(region, page, until - page);
		bitmap_set(given->pages, page, until - page);
		page = until;
	}
	mutex_unlock(zeroing);
}

/**
 * pl_give() - have pages hold what their program should find there
 * @region: of any kind
 * @page: first of them
 * @nr: of a leaf
 *
 * Nothing is dropped until pl_gave(), which is called whatever this returns.
 *
 * Return: 0; -EAGAIN where the segment is frozen, and the fault must wait; -EINTR where a fatal
 * signal is pending and there is more than one page to zero, and the fault must end with an error.
 * A single page is zeroed regardless of signals.
 */
int pl_give(const struct pl_region *region, unsigned long page, unsigned long nr)
{
	struct pl_given *given = region->given;
	unsigned long end = page + nr;

	if (!given)
		return 0;
	down_read(&given->drop);
	if (pl_is_frozen(given))
		return -EAGAIN;
	while (page < end) {
		unsigned long next = min(ALIGN(page + 1, PL_PIECE), end);

		if (nr > 1 && fatal_signal_pending(current))
			return -EINTR;
		give_piece(region, page, next);
		if (!test_bit(page / PL_PIECE, given->touched))
			set_bit(page / PL_PIECE, given->touched);
		page = next;
		cond_resched();
	}
	return 0;
}

/**
 * pl_gave() - the entry is in the page table, or none is
 * @region: as pl_give() had it
 */
void pl_gave(const struct pl_region *region)
{
	if (region->given)
		up_read(&region->given->drop);
}

/**
 * pl_zap() - take some pages out of every mapping of a file in a process
 * @mm: of this process, with its mmap lock held
 * @file: with a segment
 * @page: first of them
 * @nr: their number
 */
void pl_zap(struct mm_struct *mm, const struct file *file, unsigned long page, unsigned long nr)
{
	struct vm_area_struct *vma;

	VMA_ITERATOR(vmi, mm, 0);

	for_each_vma(vmi, vma) {
		unsigned long first = max(page, vma->vm_pgoff);
		unsigned long end = min(page + nr, vma->vm_pgoff + vma_pages(vma));

		if (pl_vma_is_of(vma, file) && first < end)
			pl_zap_vma(vma, vma->vm_start + ((first - vma->vm_pgoff) << PAGE_SHIFT),
				   (end - first) << PAGE_SHIFT);
	}
}

/* In the order of a fault. What is frozen keeps its contents: DROP waits as a store does. */
static int lock_to_drop(struct pl_given *given, struct mm_struct *mm)
{
	while (!mmap_read_lock_killable(mm)) {
		down_write(&given->drop);
		if (!pl_is_frozen(given) || READ_ONCE(given->owner) != mm)
			return 0;
		up_write(&given->drop);
		mmap_read_unlock(mm);
		if (pl_wait_in_call(given))
			break;
	}
	return -EINTR;
}

/**
 * pl_drop() - the ioctl PAGELAB_IOC_DROP
 * @file: with a segment, else -ENXIO; one that another process maps is -EPERM
 * @arg: a struct pagelab_drop
 */
int pl_drop(struct file *file, const void __user *arg)
{
	const struct pl_region *region = pl_file_region(file);
	struct mm_struct *mm = current->mm;
	struct mm_struct *owner;
	struct pagelab_drop want;
	unsigned long page, nr, piece;

	if (copy_from_user(&want, arg, sizeof(want)))
		return -EFAULT;
	if (!region || !region->given)
		return -ENXIO;
	if (memchr_inv(want.pad, 0, sizeof(want.pad)) || !want.bytes || !mm ||
	    !IS_ALIGNED(want.offset | want.bytes, PAGE_SIZE))
		return -EINVAL;
	page = want.offset >> PAGE_SHIFT;
	nr = want.bytes >> PAGE_SHIFT;
	if (page >= region->nr_pages || nr > region->nr_pages - page)
		return -EINVAL;
	if (lock_to_drop(region->given, mm))
		return -EINTR;
	/* Leaves of another process stay mapped, and would be zeroed at their next split. */
	owner = READ_ONCE(region->given->owner);
	if (!owner || owner == mm) {
		pl_zap(mm, file, page, nr);
		bitmap_clear(region->given->pages, page, nr);
		for (piece = DIV_ROUND_UP(page, PL_PIECE); piece < (page + nr) / PL_PIECE; piece++)
			clear_bit(piece, region->given->touched);
	}
	up_write(&region->given->drop);
	mmap_read_unlock(mm);
	return owner && owner != mm ? -EPERM : 0;
}
