// SPDX-License-Identifier: GPL-2.0
/*
 * A segment that is frozen for a moment, so that a copy of it is of one moment: FREEZE and COPY.
 *
 * FREEZE takes every leaf out of the page table. From then on each fault waits, but for those of
 * the thread that froze it; COPY reads the frames without the page table. Reads wait, too: an entry
 * that may only be read cannot be had, as before a store to one the kernel asks a driver nothing
 * (pfn_mkwrite) unless all entries of its VMAs are made that way.
 *
 * A fault waits without the lock of its mm or VMA, as it does for userfaultfd: the thread that
 * froze the segment can map, unmap and fork. The wait ends at a time that FREEZE is given, whatever
 * becomes of that thread, its process and the file; a fatal signal ends it at once.
 */
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "pagelab.h"

static bool is_late(const struct pl_given *given)
{
	return time_after_eq(jiffies, READ_ONCE(given->until));
}

/**
 * pl_is_frozen() - does a fault of this thread wait?
 * @given: of a segment
 */
bool pl_is_frozen(const struct pl_given *given)
{
	/* Only compared: it may have ended. */
	const struct task_struct *freezer = READ_ONCE(given->freezer);

	return freezer && freezer != current && !is_late(given);
}

/* A fault of a process that ends must end with an error: it would be taken again. */
static bool is_ending(void)
{
	return fatal_signal_pending(current) ||
	       (current->flags & PF_EXITING && current->signal->flags & SIGNAL_GROUP_EXIT);
}

/**
 * pl_wait() - let a fault wait until a segment is thawed
 * @vmf: the fault, without any lock of ours
 *
 * Return: what the fault ends with; it is taken again unless the process ends.
 */
vm_fault_t pl_wait(struct vm_fault *vmf)
{
	struct pl_given *given = pl_file_region(vmf->vma->vm_file)->given;
	struct file *file;
	long rest;

	if (is_ending())
		return VM_FAULT_SIGBUS;
	/* As of a futex: its caller holds the mmap lock all the time, so the wait is short. */
	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY)) {
		schedule_timeout_killable(1);
		return fatal_signal_pending(current) ? VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
	}
	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	/* Without the lock the VMA may go, and with it its file and the segment. */
	file = get_file(vmf->vma->vm_file);
	pl_release_fault_lock(vmf);
	rest = READ_ONCE(given->until) - jiffies;
	/* A program handles its signals; the kernel would take its own fault again at once. */
	if (rest > 0 && vmf->flags & FAULT_FLAG_USER)
		wait_event_interruptible_timeout(given->thawed, !pl_is_frozen(given), rest);
	else if (rest > 0)
		wait_event_killable_timeout(given->thawed, !pl_is_frozen(given), rest);
	fput(file);
	return VM_FAULT_RETRY;
}

/**
 * pl_wait_in_call() - let a system call wait until a segment is thawed
 * @given: of a file that the caller holds
 *
 * Return: 0, or -EINTR where a fatal signal is pending.
 */
int pl_wait_in_call(struct pl_given *given)
{
	long rest = READ_ONCE(given->until) - jiffies;

	if (rest > 0)
		wait_event_killable_timeout(given->thawed, !pl_is_frozen(given), rest);
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* With the mmap lock held, and @drop for writing: no fault is under way. */
static int freeze(struct file *file, struct pl_given *given, unsigned int milliseconds)
{
	const struct pl_region *region = pl_file_region(file);

	if (given->freezer && given->freezer != current && !is_late(given))
		return -EBUSY;
	if (given->freezer == current && is_late(given)) {
		WRITE_ONCE(given->freezer, NULL);
		return -ETIME;
	}
	if (given->freezer != current)
		pl_zap(current->mm, file, 0, region->nr_pages);
	WRITE_ONCE(given->until, jiffies + msecs_to_jiffies(milliseconds));
	WRITE_ONCE(given->freezer, current);
	return 0;
}

static int thaw(struct pl_given *given)
{
	bool was_late = given->freezer && is_late(given);

	WRITE_ONCE(given->freezer, NULL);
	wake_up_all(&given->thawed);
	return was_late ? -ETIME : 0;
}

/**
 * pl_freeze() - the ioctl PAGELAB_IOC_FREEZE
 * @file: with a segment, else -ENXIO; one that this process has not mapped is -EPERM
 * @arg: a struct pagelab_freeze
 */
int pl_freeze(struct file *file, const void __user *arg)
{
	const struct pl_region *region = pl_file_region(file);
	struct mm_struct *mm = current->mm;
	struct pagelab_freeze want;
	struct pl_given *given;
	int err = -EPERM;

	if (copy_from_user(&want, arg, sizeof(want)))
		return -EFAULT;
	if (!region || !region->given)
		return -ENXIO;
	if (want.pad0 || memchr_inv(want.pad, 0, sizeof(want.pad)) || !mm ||
	    want.milliseconds > PAGELAB_FREEZE_MOST)
		return -EINVAL;
	given = region->given;
	/* In the order of a fault. */
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	down_write(&given->drop);
	if (READ_ONCE(given->owner) == mm)
		err = want.milliseconds ? freeze(file, given, want.milliseconds) : thaw(given);
	up_write(&given->drop);
	mmap_read_unlock(mm);
	return err;
}

static const void *address(const struct pl_region *region, unsigned long page)
{
	if (region->layout == PAGELAB_RESERVED)
		return (const void __force *)region->map + (page << PAGE_SHIFT);
	return __va(PFN_PHYS(pl_region_pfn(region, page)));
}

/*
 * Copies what a program has in some pages, all in one piece. No lock is held meanwhile, as the
 * place may lie in a segment: a frame that was given holds nothing but this program's contents.
 */
static int copy_piece(const struct pl_region *region, unsigned long page, unsigned long end,
		      struct pagelab_copy *want)
{
	struct pl_given *given = region->given;
	struct mutex *zeroing = &given->zeroing[page / PL_PIECE % PL_LOCKS];
	const unsigned long first = page;

	if (!test_bit(page / PL_PIECE, given->touched))
		return 0;
	for (;;) {
		unsigned long until, bytes;
		u64 to;

		mutex_lock(zeroing);
		page = find_next_bit(given->pages, end, page);
		until = find_next_zero_bit(given->pages, end, page);
		mutex_unlock(zeroing);
		if (page >= end)
			return 0;
		bytes = (until - page) << PAGE_SHIFT;
		to = want->to + ((page - first) << PAGE_SHIFT);
		if (copy_to_user(u64_to_user_ptr(to), address(region, page), bytes))
			return -EFAULT;
		want->copied += bytes;
		page = until;
	}
}

static int copy_pages(const struct pl_region *region, unsigned long page, unsigned long nr,
		      struct pagelab_copy *want)
{
	unsigned long end = page + nr;

	while (page < end) {
		unsigned long next = min(ALIGN(page + 1, PL_PIECE), end);
		int err = fatal_signal_pending(current) ? -EINTR : 0;

		err = err ?: copy_piece(region, page, next, want);
		if (err)
			return err;
		want->to += (next - page) << PAGE_SHIFT;
		page = next;
		cond_resched();
	}
	return 0;
}

/* How many pages from an address on are of this file, and which page of it is the first. */
static unsigned long pages_at(const struct file *file, unsigned long addr, unsigned long *page)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	unsigned long nr = 0;

	mmap_read_lock(mm);
	vma = vma_lookup(mm, addr);
	if (pl_vma_is_of(vma, file)) {
		*page = vma->vm_pgoff + ((addr - vma->vm_start) >> PAGE_SHIFT);
		nr = (vma->vm_end - addr) >> PAGE_SHIFT;
	}
	mmap_read_unlock(mm);
	return nr;
}

/**
 * pl_copy() - the ioctl PAGELAB_IOC_COPY
 * @file: with a segment, else -ENXIO; every address must be in a mapping of it, else -EFAULT
 * @arg: a struct pagelab_copy
 */
int pl_copy(struct file *file, void __user *arg)
{
	const struct pl_region *region = pl_file_region(file);
	struct pagelab_copy want;
	unsigned long rest;
	u64 end;

	if (copy_from_user(&want, arg, sizeof(want)))
		return -EFAULT;
	if (!region || !region->given)
		return -ENXIO;
	if (memchr_inv(want.pad, 0, sizeof(want.pad)) || want.copied || !want.bytes ||
	    !current->mm || !IS_ALIGNED(want.addr | want.bytes, PAGE_SIZE) ||
	    check_add_overflow(want.to, want.bytes, &end) ||
	    check_add_overflow(want.addr, want.bytes, &end))
		return -EINVAL;
	for (rest = want.bytes >> PAGE_SHIFT; rest;) {
		unsigned long page = 0;
		unsigned long nr = min(pages_at(file, want.addr, &page), rest);
		int err = nr ? copy_pages(region, page, nr, &want) : -EFAULT;

		if (err)
			return err;
		want.addr += (u64)nr << PAGE_SHIFT;
		rest -= nr;
	}
	return put_user(want.copied, &((struct pagelab_copy __user *)arg)->copied) ? -EFAULT : 0;
}
