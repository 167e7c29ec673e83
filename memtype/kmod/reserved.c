// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that the kernel was told to leave alone, by memmap=SIZE$START on its command line.
 *
 * It has no struct page and no place in the direct map, so the type of a frame is whatever the
 * first mapping of it says. Each extent therefore has a mapping of our own, of the asked type, for
 * as long as it lives: it pins the type, and the leaves of a process follow it. Without it a leaf
 * of "WB" is UC-. Extents of several open files never overlap.
 *
 * The firmware reserves memory too, and may use it. So nothing is touched that the parameters do
 * not name, and loading the module leaves every word of that as it was. Only ALLOC zeroes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/irqflags.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <asm/cacheflush.h>

#include "pagelab.h"

/* Loading stores to addresses that these name, so lockdown refuses them (module_param_hw). */
static unsigned long long phys;
module_param_hw(phys, ullong, iomem, 0400);
MODULE_PARM_DESC(phys, "First address of the reserved region, a multiple of 2 MiB");

static unsigned long long phys_len;
module_param_hw(phys_len, ullong, iomem, 0444);
MODULE_PARM_DESC(phys_len, "Bytes of the reserved region, a multiple of 2 MiB (0: none)");

/* Guards the list; an extent is in it from before its mapping is made until after that is gone. */
static DEFINE_MUTEX(extents_lock);
static LIST_HEAD(extents);
static struct resource *claim;

static int add_length(struct resource *part, void *arg)
{
	*(u64 *)arg += resource_size(part);
	return 0;
}

/* True where the firmware's map, as changed by the command line, sets all of it aside. */
static bool set_aside(u64 start, u64 bytes)
{
	u64 found = 0;

	walk_iomem_res_desc(IORES_DESC_RESERVED, IORESOURCE_MEM, start, start + bytes - 1, &found,
			    add_length);
	walk_iomem_res_desc(IORES_DESC_SOFT_RESERVED, IORESOURCE_MEM, start, start + bytes - 1,
			    &found, add_length);
	return found == bytes &&
	       region_intersects(start, bytes, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) ==
		       REGION_DISJOINT;
}

/*
 * True where what is written can be read again: a hole in the address space gives all ones. The
 * word is as before afterwards; meanwhile nothing else runs on this processor.
 */
static bool keeps(volatile u64 *word)
{
	static const u64 patterns[] = { 0x5aa5c33c0ff0a55aULL, ~0x5aa5c33c0ff0a55aULL };
	unsigned long flags;
	bool kept = true;
	unsigned int i;
	u64 found;

	local_irq_save(flags);
	found = *word;
	for (i = 0; i < ARRAY_SIZE(patterns) && kept; i++) {
		*word = patterns[i];
		clflush_cache_range((void *)word, sizeof(*word));
		kept = *word == patterns[i];
	}
	*word = found;
	clflush_cache_range((void *)word, sizeof(*word));
	local_irq_restore(flags);
	return kept;
}

/* Looks at a word of each 2 MiB. */
static int probe_memory(void)
{
	void *map = memremap(phys, phys_len, MEMREMAP_WB);
	int err = 0;
	u64 at;

	if (!map)
		return -ENOMEM;
	for (at = 0; at < phys_len && !err; at += SZ_2M) {
		if (!keeps(map + at))
			err = -ENXIO;
		cond_resched();
	}
	memunmap(map);
	return err;
}

/**
 * pl_reserved_init() - check and claim the region of the parameters
 *
 * Return: 0 also where none was given.
 */
int pl_reserved_init(void)
{
	u64 end;
	int err;

	if (!phys_len && !phys)
		return 0;
	if (!phys || !phys_len || !IS_ALIGNED(phys, SZ_2M) || !IS_ALIGNED(phys_len, SZ_2M) ||
	    check_add_overflow((u64)phys, (u64)phys_len, &end) ||
	    end >> boot_cpu_data.x86_phys_bits) {
		pr_err("phys and phys_len must be given together, as multiples of 2 MiB\n");
		return -EINVAL;
	}
	if (!set_aside(phys, phys_len)) {
		pr_err("phys and phys_len are not all Reserved: boot with memmap=SIZE$START\n");
		return -EINVAL;
	}
	claim = request_mem_region(phys, phys_len, "pagelab");
	if (!claim) {
		pr_err("a driver has the region of phys and phys_len\n");
		return -EBUSY;
	}
	err = probe_memory();
	if (err) {
		pr_err("there is no memory behind phys and phys_len (%d)\n", err);
		pl_reserved_exit();
	}
	return err;
}

/**
 * pl_reserved_exit() - give the claim back
 */
void pl_reserved_exit(void)
{
	if (claim)
		release_mem_region(phys, phys_len);
	claim = NULL;
}

/**
 * pl_reserved_extent() - where the region is
 * @start: first address, 0 where there is no region
 * @bytes: its length
 */
void pl_reserved_extent(u64 *start, u64 *bytes)
{
	*start = claim ? phys : 0;
	*bytes = claim ? phys_len : 0;
}

static bool take_extent(struct pl_region *region)
{
	phys_addr_t end = region->phys + ((phys_addr_t)region->nr_pages << PAGE_SHIFT);
	struct pl_region *other;
	bool free = true;

	mutex_lock(&extents_lock);
	list_for_each_entry(other, &extents, link) {
		phys_addr_t other_end = other->phys + ((phys_addr_t)other->nr_pages << PAGE_SHIFT);

		if (region->phys < other_end && other->phys < end)
			free = false;
	}
	if (free)
		list_add(&region->link, &extents);
	mutex_unlock(&extents_lock);
	return free;
}

static void give_extent(struct pl_region *region)
{
	mutex_lock(&extents_lock);
	list_del(&region->link);
	mutex_unlock(&extents_lock);
}

/*
 * Zeros, through a WB mapping that is gone before another type comes. Lines that this leaves in the
 * caches would be written back over what is stored past them, so they are flushed.
 */
static int zero_extent(const struct pl_region *region)
{
	size_t bytes = region->nr_pages << PAGE_SHIFT;
	char *map = memremap(region->phys, bytes, MEMREMAP_WB);
	size_t at;
	int err = 0;

	if (!map)
		return -ENOMEM;
	for (at = 0; at < bytes && !err; at += PAGE_SIZE) {
		clear_page(map + at);
		if (region->memtype != PAGELAB_WB)
			clflush_cache_range(map + at, PAGE_SIZE);
		if (at % (PL_BATCH * PAGE_SIZE))
			continue;
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	memunmap(map);
	vm_unmap_aliases(); /* as in pl_reserved_free() */
	return err;
}

static void __iomem *map_extent(const struct pl_region *region)
{
	size_t bytes = region->nr_pages << PAGE_SHIFT;

	switch (region->memtype) {
	case PAGELAB_WB:
		return ioremap_cache(region->phys, bytes);
	case PAGELAB_WC:
		return ioremap_wc(region->phys, bytes);
	case PAGELAB_WT:
		return ioremap_wt(region->phys, bytes);
	default:
		/* UC-; ioremap_uc() would be UC. */
		return ioremap(region->phys, bytes);
	}
}

/**
 * pl_reserved_free() - give an extent back
 * @region: nobody maps it any more
 */
void pl_reserved_free(struct pl_region *region)
{
	iounmap(region->map);
	/*
	 * Unmapping leaves entries in the TLBs until their addresses are used again. A processor may
	 * act on them, and would then know the same frames by two types.
	 */
	vm_unmap_aliases();
	give_extent(region);
	kfree(region->pfns);
	kfree(region);
}

/**
 * pl_reserved_alloc() - take, zero and type a part of the reserved region
 * @want: checked against the table of leaves
 *
 * Return: a region, or an error: -ENXIO, -EINVAL, -E2BIG, -EBUSY, -ENOMEM, -EINTR.
 */
struct pl_region *pl_reserved_alloc(const struct pagelab_alloc *want)
{
	u64 leaf = 1ULL << want->leaf_shift;
	struct pl_region *region;
	int err = -ENOMEM;

	if (!claim)
		return ERR_PTR(-ENXIO);
	if (want->node != NUMA_NO_NODE || !IS_ALIGNED(phys + want->offset, leaf))
		return ERR_PTR(-EINVAL);
	if (want->offset > phys_len || want->bytes > phys_len - want->offset)
		return ERR_PTR(-E2BIG);
	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	region->memtype = want->memtype;
	region->layout = want->layout;
	region->leaf_shift = want->leaf_shift;
	region->eager = want->flags & PAGELAB_EAGER;
	region->segment = want->flags & PAGELAB_SEGMENT;
	region->phys = phys + want->offset;
	region->nr_pages = want->bytes >> PAGE_SHIFT;
	region->block_pages = region->nr_pages;
	region->nr_blocks = 1;
	region->pfns = kmalloc(sizeof(*region->pfns), GFP_KERNEL_ACCOUNT);
	if (!region->pfns)
		goto free_region;
	region->pfns[0] = PHYS_PFN(region->phys);
	err = -EBUSY;
	if (!take_extent(region))
		goto free_pfns;
	err = want->flags & PAGELAB_ZERO_AT_FAULT ? 0 : zero_extent(region);
	if (err)
		goto give_extent;
	/* The kernel does not say why; as a rule somebody maps a part of it with another type. */
	err = -EBUSY;
	region->map = map_extent(region);
	if (!region->map)
		goto give_extent;
	return region;

give_extent:
	give_extent(region);
free_pfns:
	kfree(region->pfns);
free_region:
	kfree(region);
	return ERR_PTR(err);
}
