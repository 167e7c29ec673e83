// SPDX-License-Identifier: GPL-2.0
/*
 * Ordinary memory: taken from the page allocator, zeroed unless a fault is to do it, and given its
 * memory type.
 *
 * The type is changed on the kernel's own mapping of the pages (the direct map) before any process
 * can map them, and back before they are freed. So there is never a second mapping of another type.
 * Where changing it back fails, the pages are kept for ever: memory of a wrong type in the hands of
 * somebody else is worse than memory lost.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/highmem.h>
#include <linux/memory_hotplug.h>
#include <linux/overflow.h>
#include <linux/page-flags.h>
#include <linux/sched/signal.h>
#include <linux/set_memory.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/topology.h>

#include "pagelab.h"

static ulong limit_mb;
module_param(limit_mb, ulong, 0444);
MODULE_PARM_DESC(limit_mb, "Most ordinary memory for all open files, MiB (0: half of RAM)");

static atomic_long_t used_pages = ATOMIC_LONG_INIT(0);
static atomic_long_t leaked_pages = ATOMIC_LONG_INIT(0);

int pl_refuse_param(const char *value, const struct kernel_param *kp)
{
	return -EPERM;
}

static int get_pages_param(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%ld\n", atomic_long_read((atomic_long_t *)kp->arg));
}

static const struct kernel_param_ops pages_ops = {
	.set = pl_refuse_param,
	.get = get_pages_param,
};

module_param_cb(used_pages, &pages_ops, &used_pages, 0444);
MODULE_PARM_DESC(used_pages, "Pages of ordinary memory in use now (to read only)");
module_param_cb(leaked_pages, &pages_ops, &leaked_pages, 0444);
MODULE_PARM_DESC(leaked_pages, "Pages kept because they could not be made WB again (to read only)");

static unsigned long limit_pages(void)
{
	unsigned long all = totalram_pages();

	if (limit_mb && limit_mb < all >> (20 - PAGE_SHIFT))
		return limit_mb << (20 - PAGE_SHIFT);
	return limit_mb ? all : all / 2;
}

/**
 * pl_limit_bytes() - most that can be asked for
 */
u64 pl_limit_bytes(void)
{
	return (u64)limit_pages() << PAGE_SHIFT;
}

/* The pages of all open files together stay below the limit. */
static bool charge(unsigned long nr_pages)
{
	if (atomic_long_add_return(nr_pages, &used_pages) <= (long)limit_pages())
		return true;
	atomic_long_sub(nr_pages, &used_pages);
	return false;
}

static void fill_batch(const struct pl_region *region, unsigned long first, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++)
		region->batch[i] = pfn_to_page(pl_region_pfn(region, first + i));
}

/* Pages of a batch that is filled, whatever its type was, become WB again and free, or lost. */
static void free_batch(const struct pl_region *region, unsigned long nr, bool typed)
{
	unsigned long i;
	int err = typed ? set_pages_array_wb(region->batch, nr) : 0;

	if (err) {
		atomic_long_add(nr, &leaked_pages);
		pr_err_ratelimited("%lu pages cannot be made WB again (%d) and are lost\n", nr, err);
		return;
	}
	for (i = 0; i < nr; i++)
		__free_page(region->batch[i]);
}

/* Frees adjacent pages; gigabytes of them without a pause are a soft lockup. */
static void free_run(struct page *page, unsigned long nr_pages)
{
	unsigned long i;

	for (i = 0; i < nr_pages; i++) {
		__free_page(page + i);
		if (!(i % PL_BATCH))
			cond_resched();
	}
}

static int set_type(struct pl_region *region)
{
	while (region->typed_pages < region->nr_pages) {
		unsigned long nr = min(region->nr_pages - region->typed_pages, PL_BATCH);
		int err;

		if (fatal_signal_pending(current))
			return -EINTR;
		fill_batch(region, region->typed_pages, nr);
		/* Counted first: a failure may leave some of these pages changed. */
		region->typed_pages += nr;
		if (region->memtype == PAGELAB_WC)
			err = set_pages_array_wc(region->batch, nr);
		else
			err = set_pages_array_uc(region->batch, nr);
		if (err)
			return err == -EINVAL ? -EBUSY : err;
		cond_resched();
	}
	return 0;
}

/* A power of two of pages from the buddy allocator, as single pages, cut to size. */
static struct page *take_buddy(int node, unsigned long nr_pages, bool zero)
{
	unsigned int order = order_base_2(nr_pages);
	gfp_t gfp = GFP_USER | __GFP_NORETRY | __GFP_NOWARN | __GFP_ACCOUNT;
	struct page *page;

	if (zero)
		gfp |= __GFP_ZERO;
	if (node != NUMA_NO_NODE)
		gfp |= __GFP_THISNODE;
	page = alloc_pages_node(node, gfp, order);
	if (!page)
		return NULL;
	if (order)
		split_page(page, order);
	free_run(page + nr_pages, (1UL << order) - nr_pages);
	return page;
}

/*
 * Return: 0 where a run from @pfn may be tried, else the frame that is in the way, plus 1.
 */
static unsigned long obstacle(struct zone *zone, unsigned long pfn, unsigned long nr_pages)
{
	unsigned long end = pfn + nr_pages;

	for (; pfn < end; pfn++) {
		struct page *page = pfn_to_online_page(pfn);

		if (!page || page_zone(page) != zone || PageReserved(page) || PageHuge(page))
			return pfn + 1;
		/* In use and on no list of what can be moved: trying would be in vain. */
		if (PageSlab(page) || (page_count(page) && !PageLRU(page)))
			return pfn + 1;
		if (!(pfn % PL_BATCH))
			cond_resched();
	}
	return 0;
}

/*
 * A run, piece by piece: the kernel clears what it gives (init_on_alloc) without a pause, and
 * gigabytes of that are a soft lockup.
 */
static bool take_pieces(unsigned long pfn, unsigned long nr_pages)
{
	gfp_t gfp = GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	unsigned long taken = 0;

	while (taken < nr_pages) {
		unsigned long nr = min(nr_pages - taken, 16UL << PL_BUDDY_ORDER);

		if (fatal_signal_pending(current) ||
		    pl_alloc_contig_range(pfn + taken, pfn + taken + nr, gfp)) {
			free_run(pfn_to_page(pfn), taken);
			return false;
		}
		taken += nr;
		cond_resched();
	}
	return true;
}

static struct page *take_run_of_zone(struct zone *zone, unsigned long nr_pages,
				     unsigned long align, unsigned int *tries)
{
	unsigned long step = max(align, ALIGN(nr_pages / 4, align));
	unsigned long pfn = ALIGN(zone->zone_start_pfn, align);

	while (*tries && pfn < zone_end_pfn(zone) && nr_pages <= zone_end_pfn(zone) - pfn) {
		unsigned long blocked = obstacle(zone, pfn, nr_pages);

		if (fatal_signal_pending(current))
			return NULL;
		if (blocked) {
			pfn = ALIGN(blocked, align);
			continue;
		}
		if (take_pieces(pfn, nr_pages))
			return pfn_to_page(pfn);
		--*tries;
		pfn += step;
	}
	return NULL;
}

/*
 * A run of any length, by moving away what can be moved. Not from ZONE_MOVABLE, where memory that
 * stays would be in the way, and with few tries: each may migrate gigabytes for nothing.
 */
static struct page *find_run(int node, unsigned long nr_pages, unsigned long align)
{
	static const enum zone_type zones[] = { ZONE_NORMAL, ZONE_DMA32 };
	int first = node == NUMA_NO_NODE ? numa_mem_id() : node;
	unsigned int tries = 32;
	struct page *page = NULL;
	unsigned int i;
	int other;

	for (i = 0; i < ARRAY_SIZE(zones) && !page; i++)
		page = take_run_of_zone(&NODE_DATA(first)->node_zones[zones[i]], nr_pages, align,
					&tries);
	if (page || node != NUMA_NO_NODE)
		return page;
	for_each_node_state(other, N_MEMORY) {
		for (i = 0; i < ARRAY_SIZE(zones) && !page && other != first; i++)
			page = take_run_of_zone(&NODE_DATA(other)->node_zones[zones[i]], nr_pages,
						align, &tries);
	}
	return page;
}

/*
 * Whole blocks of the buddy allocator are taken, and the rest given back from here: the kernel
 * would do it too, but complains where somebody just looks at a page of the rest.
 */
static struct page *take_run(int node, unsigned long nr_pages, unsigned long align, bool zero)
{
	unsigned long buddy_pages = 1UL << PL_BUDDY_ORDER;
	unsigned long whole = ALIGN(nr_pages, buddy_pages);
	struct page *page = find_run(node, whole, max(align, buddy_pages));
	unsigned long i;

	if (!page)
		return NULL;
	free_run(page + nr_pages, whole - nr_pages);
	for (i = 0; zero && i < nr_pages; i++) {
		clear_highpage(page + i);
		if (i % PL_BATCH)
			continue;
		if (fatal_signal_pending(current)) {
			free_run(page, nr_pages);
			return NULL;
		}
		cond_resched();
	}
	return page;
}

static struct page *take_block(int node, unsigned long nr_pages, unsigned long align, bool zero)
{
	struct page *page = NULL;

	if (order_base_2(nr_pages) <= PL_BUDDY_ORDER)
		page = take_buddy(node, nr_pages, zero);
	if (!page && nr_pages > 1)
		page = take_run(node, nr_pages, align, zero);
	return page;
}

static int take_blocks(struct pl_region *region, int node, bool zero)
{
	unsigned long align = 1UL << (region->leaf_shift - PAGE_SHIFT);
	unsigned long blocks = region->nr_pages / region->block_pages;

	while (region->nr_blocks < blocks) {
		struct page *page = NULL;

		if (!fatal_signal_pending(current))
			page = take_block(node, region->block_pages, align, zero);
		if (fatal_signal_pending(current) && !page)
			return -EINTR;
		if (!page)
			return -ENOMEM;
		region->pfns[region->nr_blocks++] = page_to_pfn(page);
		cond_resched();
	}
	return 0;
}

/**
 * pl_frames_free() - make every page of a region WB again, and free it
 * @region: nobody maps it any more; also one that pl_frames_alloc() has only begun
 */
void pl_frames_free(struct pl_region *region)
{
	unsigned long taken = region->nr_blocks * region->block_pages;
	unsigned long page = 0;

	while (page < taken) {
		/* A batch is either typed or not: types are set in the same steps. */
		bool typed = page < region->typed_pages;
		unsigned long nr = min(taken - page, PL_BATCH);

		fill_batch(region, page, nr);
		free_batch(region, nr, typed);
		page += nr;
		cond_resched();
	}
	atomic_long_sub(region->nr_pages, &used_pages);
	kvfree(region->pfns);
	kfree(region->batch);
	kfree(region);
}

/**
 * pl_frames_alloc() - take, zero and type ordinary memory; what a fault zeroes is not zeroed here
 * @want: checked against the table of leaves
 *
 * Return: a region, or an error: -ENODEV, -E2BIG, -ENOMEM, -EINTR.
 */
struct pl_region *pl_frames_alloc(const struct pagelab_alloc *want)
{
	struct pl_region *region;
	int err = -ENOMEM;

	if (want->node != NUMA_NO_NODE && !node_state(want->node, N_MEMORY))
		return ERR_PTR(-ENODEV);
	if (want->bytes > pl_limit_bytes())
		return ERR_PTR(-E2BIG);
	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	region->memtype = want->memtype;
	region->layout = want->layout;
	region->leaf_shift = want->leaf_shift;
	region->eager = want->flags & PAGELAB_EAGER;
	region->segment = want->flags & PAGELAB_SEGMENT;
	region->nr_pages = want->bytes >> PAGE_SHIFT;
	region->block_pages = want->layout == PAGELAB_CONTIGUOUS ?
				      region->nr_pages :
				      1UL << (want->leaf_shift - PAGE_SHIFT);
	if (!charge(region->nr_pages)) {
		kfree(region);
		return ERR_PTR(-ENOMEM);
	}
	region->batch = kcalloc(PL_BATCH, sizeof(*region->batch), GFP_KERNEL_ACCOUNT);
	region->pfns = kvmalloc_array(region->nr_pages / region->block_pages,
				      sizeof(*region->pfns),
				      GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN);
	if (region->batch && region->pfns)
		err = take_blocks(region, want->node, !(want->flags & PAGELAB_ZERO_AT_FAULT));
	if (!err && region->memtype != PAGELAB_WB)
		err = set_type(region);
	if (err) {
		pl_frames_free(region);
		return ERR_PTR(err);
	}
	return region;
}
