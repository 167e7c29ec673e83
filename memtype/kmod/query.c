// SPDX-License-Identifier: GPL-2.0
/*
 * The page table, read back: what a mapping is, whatever was asked for.
 *
 * The type is decoded as the processor does: PAT, PCD and PWT of the leaf are an index into the
 * bytes of the IA32_PAT register, which is read here and not taken from the kernel's tables.
 * Types of MTRRs, which combine with it, are not in the page table and not told.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/msr.h>

#include "pagelab.h"

struct leaf {
	u64 entry; /* without the frame number */
	unsigned int shift; /* 0: nothing is mapped */
	unsigned int index; /* into IA32_PAT */
	phys_addr_t phys; /* of the leaf's first byte */
};

/* PAT has another bit in large leaves than in small ones. */
static struct leaf leaf_of(u64 entry, u64 pat_bit, unsigned int shift, unsigned long pfn)
{
	unsigned int index = (entry & pat_bit ? 4 : 0) | (entry & _PAGE_PCD ? 2 : 0) |
			     (entry & _PAGE_PWT ? 1 : 0);

	return (struct leaf){ entry, shift, index, PFN_PHYS(pfn) };
}

/*
 * Under the mmap lock, page tables of a VMA are added to but not freed: each level is read once,
 * and a table that was there stays.
 */
static struct leaf find_leaf(struct mm_struct *mm, unsigned long addr)
{
	const struct leaf none = {};
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;
	pud_t *pudp, pud;
	pmd_t *pmdp, pmd;
	pte_t pte;

	if (!pgd_present(*pgd))
		return none;
	p4d = p4d_offset(pgd, addr);
	if (!p4d_present(*p4d))
		return none;
	pudp = pud_offset(p4d, addr);
	pud = READ_ONCE(*pudp);
	if (!(pud_flags(pud) & _PAGE_PRESENT))
		return none;
	if (pud_leaf(pud))
		return leaf_of(pud_flags(pud), _PAGE_PAT_LARGE, PUD_SHIFT, pud_pfn(pud));
	pmdp = pmd_offset(&pud, addr);
	pmd = READ_ONCE(*pmdp);
	if (!(pmd_flags(pmd) & _PAGE_PRESENT))
		return none;
	if (pmd_leaf(pmd))
		return leaf_of(pmd_flags(pmd), _PAGE_PAT_LARGE, PMD_SHIFT, pmd_pfn(pmd));
	pte = READ_ONCE(*pte_offset_kernel(&pmd, addr));
	if (!(pte_flags(pte) & _PAGE_PRESENT))
		return none;
	return leaf_of(pte_flags(pte), _PAGE_PAT, PAGE_SHIFT, pte_pfn(pte));
}

/**
 * pl_is_giant() - is a leaf of 1G behind an address, accessible or not?
 * @mm: with its mmap lock held
 * @addr: in a VMA of this module that is locked for writing
 */
bool pl_is_giant(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d = pgd_present(*pgd) ? p4d_offset(pgd, addr) : NULL;

	/* A leaf under PROT_NONE is not present. */
	return p4d && p4d_present(*p4d) && pud_flags(*pud_offset(p4d, addr)) & _PAGE_PSE;
}

static u32 memtype_of(unsigned int index)
{
	/* Encodings of the SDM, "Memory types that can be encoded in the IA32_PAT MSR". */
	static const u32 types[8] = {
		[0] = PAGELAB_UC, [1] = PAGELAB_WC, [2] = PAGELAB_UC,	    [3] = PAGELAB_UC,
		[4] = PAGELAB_WT, [5] = PAGELAB_WP, [6] = PAGELAB_WB, [7] = PAGELAB_UC_MINUS,
	};
	u32 pat[2];

	rdmsr(MSR_IA32_CR_PAT, pat[0], pat[1]);
	return types[(pat[index / 4] >> (index % 4 * 8)) & 7];
}

/* The leaf behind query->addr of the caller, which must be in a mapping of the file. */
static int query_leaf(struct file *file, struct pagelab_query *query)
{
	unsigned long addr = query->addr;
	struct mm_struct *mm = current->mm;
	struct leaf leaf;
	bool ours;

	if (!mm)
		return -EFAULT;
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	ours = pl_vma_is_of(vma_lookup(mm, addr), file);
	if (ours)
		leaf = find_leaf(mm, addr);
	mmap_read_unlock(mm);
	if (!ours)
		return -EFAULT;

	query->leaf_shift = leaf.shift;
	query->memtype = leaf.shift ? memtype_of(leaf.index) : 0;
	query->entry = leaf.entry;
	query->phys = 0;
	if (leaf.shift && capable(CAP_SYS_ADMIN))
		query->phys = leaf.phys + (addr & ((1UL << leaf.shift) - 1));
	return 0;
}

/**
 * pl_query() - the ioctl PAGELAB_IOC_QUERY
 * @file: of any node of this module; the address must be in a mapping of it, else -EFAULT
 * @arg: a struct pagelab_query
 */
int pl_query(struct file *file, void __user *arg)
{
	struct pagelab_query query;
	int err;

	if (copy_from_user(&query, arg, sizeof(query)))
		return -EFAULT;
	if (memchr_inv(query.pad, 0, sizeof(query.pad)))
		return -EINVAL;
	err = query_leaf(file, &query);
	if (err)
		return err;
	return copy_to_user(arg, &query, sizeof(query)) ? -EFAULT : 0;
}
