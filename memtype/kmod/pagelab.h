/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the module share.
 *
 * The one idea: an open file gets one region, once. A region never changes after it is published
 * and lives until release(), and every mapping holds the file. So mmap, faults and queries read it
 * without a lock, and no frame is freed or changes its type while anybody can reach it. Only which
 * frames of a segment are given out changes, under locks of its own.
 */
#ifndef PAGELAB_H
#define PAGELAB_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "compat.h"
#include "uapi/pagelab.h"

#define PL_PMD_ORDER (PMD_SHIFT - PAGE_SHIFT)
#define PL_PUD_ORDER (PUD_SHIFT - PAGE_SHIFT)

/**
 * struct pl_region - frames of one memory type
 * @memtype: PAGELAB_WB, _UC_MINUS, _WC or _WT
 * @layout: PAGELAB_SCATTERED, _CONTIGUOUS or _RESERVED
 * @leaf_shift: largest leaf that a mapping gets: 12, 21 or 30
 * @eager: mmap fills the page table
 * @segment: mappings may be split inside a leaf, and belong to one process
 * @given: which frames of a segment hold what they should; NULL for others
 * @ignore_offset: every mapping starts at page 0, as the drivers of the legacy nodes had it
 * @nr_pages: length
 * @block_pages: physically contiguous pages behind each of @pfns
 * @nr_blocks: number of @pfns that are filled
 * @pfns: first frame of each block
 * @batch: room for PL_BATCH pages, held from the start: giving back must not need memory
 * @typed_pages: how many pages, from the first, have had their type changed
 * @link: in the list of extents (reserved only)
 * @phys: first address (reserved only)
 * @map: kernel mapping that pins the memory type of the extent (reserved only)
 */
struct pl_region {
	u32 memtype;
	u32 layout;
	u32 leaf_shift;
	bool eager;
	bool segment;
	bool ignore_offset;
	struct pl_given *given;
	unsigned long nr_pages;
	unsigned long block_pages;
	unsigned long nr_blocks;
	unsigned long *pfns;
	struct page **batch;
	unsigned long typed_pages;
	struct list_head link;
	phys_addr_t phys;
	void __iomem *map;
};

/* Pages of a segment that are zeroed under one lock, 2M, and how many such locks there are. */
#define PL_PIECE 512UL
#define PL_LOCKS 16

/**
 * struct pl_given - which frames of a segment are given, and to whom
 * @owner: the first mm that mapped the segment, with a reference (mmgrab()); NULL before mmap
 * @drop: held for reading by faults, for writing by DROP and FREEZE
 * @zeroing: one for each piece, shared by pieces PL_LOCKS apart
 * @freezer: the thread that froze it, without a reference; NULL while it is not frozen
 * @until: when that ends, in jiffies
 * @thawed: faults that wait
 * @touched: a bit for each piece: a fault was there since ALLOC or since all of it was dropped
 * @pages: a bit for each page
 */
struct pl_given {
	struct mm_struct *owner;
	struct rw_semaphore drop;
	struct mutex zeroing[PL_LOCKS];
	const struct task_struct *freezer;
	unsigned long until;
	wait_queue_head_t thawed;
	unsigned long *touched;
	unsigned long pages[];
};

/* Pages between two looks at signals and the scheduler. */
#define PL_BATCH 512UL

/**
 * struct pl_file - one open of /dev/pagelab
 * @lock: serializes ALLOC
 * @region: NULL until ALLOC has succeeded; read with pl_file_region()
 */
struct pl_file {
	struct mutex lock;
	struct pl_region *region;
};

static inline struct pl_region *pl_file_region(struct file *file)
{
	struct pl_file *pf = file->private_data;

	/* Pairs with the release in the ioctl and in the legacy open. */
	return smp_load_acquire(&pf->region);
}

/**
 * pl_region_pfn() - the frame behind a page of a region
 * @region: a published region
 * @page: less than @region->nr_pages
 */
static inline unsigned long pl_region_pfn(const struct pl_region *region, unsigned long page)
{
	return region->pfns[page / region->block_pages] + page % region->block_pages;
}

/* leaves.c: what this kernel can do */
u64 pl_leaves(u32 memtype, u32 layout);

/* frames.c: ordinary memory */
struct pl_region *pl_frames_alloc(const struct pagelab_alloc *want);
void pl_frames_free(struct pl_region *region);
int pl_refuse_param(const char *value, const struct kernel_param *kp);
u64 pl_limit_bytes(void);

/* reserved.c: memory that the kernel was told to leave alone */
int pl_reserved_init(void);
void pl_reserved_exit(void);
void pl_reserved_extent(u64 *phys, u64 *bytes);
struct pl_region *pl_reserved_alloc(const struct pagelab_alloc *want);
void pl_reserved_free(struct pl_region *region);

/* map.c: mmap and faults */
int pl_mmap(struct file *file, struct vm_area_struct *vma);
#if PL_HUGE_PMD
unsigned long pl_get_unmapped_area(struct file *file, unsigned long addr, unsigned long len,
				   unsigned long pgoff, unsigned long flags);
#else
/* Any address will do for leaves of 4K; thp_get_unmapped_area() is not there without THP. */
#define pl_get_unmapped_area NULL
#endif
bool pl_vma_is_of(const struct vm_area_struct *vma, const struct file *file);

/* segment.c: frames that are zeroed when they are first touched */
int pl_given_alloc(struct pl_region *region, bool zeroed);
void pl_given_free(struct pl_region *region);
int pl_bind(const struct pl_region *region, struct mm_struct *mm);
int pl_give(const struct pl_region *region, unsigned long page, unsigned long nr);
void pl_gave(const struct pl_region *region);
void pl_zap(struct mm_struct *mm, const struct file *file, unsigned long page, unsigned long nr);
int pl_drop(struct file *file, const void __user *arg);

/* freeze.c: copies of a segment that are of one moment */
bool pl_is_frozen(const struct pl_given *given);
vm_fault_t pl_wait(struct vm_fault *vmf);
int pl_wait_in_call(struct pl_given *given);
int pl_freeze(struct file *file, const void __user *arg);
int pl_copy(struct file *file, void __user *arg);

/* query.c: the page table, read back */
int pl_query(struct file *file, void __user *arg);
bool pl_is_giant(struct mm_struct *mm, unsigned long addr);

/* legacy.c: /dev/memcache_{wb,uc,wc} */
int pl_legacy_init(void);
void pl_legacy_admit(void);
void pl_legacy_exit(void);

#endif /* PAGELAB_H */
