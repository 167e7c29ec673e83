// SPDX-License-Identifier: GPL-2.0
/*
 * The table of what this kernel can do: memory type x layout -> sizes of leaves.
 *
 * INFO prints it and ALLOC obeys it, so that the two cannot differ.
 */
#include <linux/bits.h>
#include <linux/cc_platform.h>
#include <asm/cpufeature.h>
#include <asm/memtype.h>

#include "pagelab.h"

static u64 sizes_of_leaves(void)
{
	u64 sizes = BIT_ULL(PAGE_SHIFT);

	if (PL_HUGE_PMD && boot_cpu_has(X86_FEATURE_PSE))
		sizes |= BIT_ULL(PMD_SHIFT);
	if (PL_HUGE_PUD && boot_cpu_has(X86_FEATURE_GBPAGES))
		sizes |= BIT_ULL(PUD_SHIFT);
	return sizes;
}

/**
 * pl_leaves() - sizes of leaves for a memory type in a layout
 * @memtype: less than PAGELAB_MEMTYPES
 * @layout: less than PAGELAB_LAYOUTS
 *
 * Return: bit n is set where leaves of 2^n bytes are possible; 0 where nothing is.
 */
u64 pl_leaves(u32 memtype, u32 layout)
{
	/* Without PAT the page table knows WB, UC- and UC only. */
	if ((memtype == PAGELAB_WC || memtype == PAGELAB_WT) && !pat_enabled())
		return 0;
	/* The kernel exports no way to make its own mapping of RAM write-through. */
	if (memtype == PAGELAB_WT && layout != PAGELAB_RESERVED)
		return 0;
	/* What ioremap() maps is not encrypted, what a process maps is: two contents. */
	if (layout == PAGELAB_RESERVED && cc_platform_has(CC_ATTR_MEM_ENCRYPT))
		return 0;
	/*
	 * WT needs the PAT bit, which is another bit in large leaves, and what inserts those takes
	 * the bits of small ones: QUERY found such leaves to be UC, on 6.12 and 7.3.
	 */
	if (memtype == PAGELAB_WT)
		return BIT_ULL(PAGE_SHIFT);
	return sizes_of_leaves();
}
