// SPDX-License-Identifier: GPL-2.0
/*
 * mmap and page faults.
 *
 * Mappings are VM_PFNMAP, with special entries: nobody can take a reference on a frame through
 * them (GUP refuses), so unmapping is the end of every use, and the kernel itself looks up the
 * memory type that the frame has and puts it into the entry. A mapping consists of whole leaves:
 * splits inside a leaf are refused, as hugetlb does, so what is mapped large stays large. Those of
 * a segment may be split: the leaf is taken out, and faults bring what fits.
 *
 * A child of fork() shares the mapping, as MAP_SHARED says, but for a segment; each VMA holds the
 * file.
 */
#include <linux/file.h>
#include <linux/mman.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "pagelab.h"

static unsigned long leaf_size(const struct pl_region *region)
{
	return 1UL << region->leaf_shift;
}

/*
 * -EINVAL: VMAs begin and end between leaves. Those of a segment do not; the kernel takes out a
 * leaf of 2M that is split, and not one of 1G. The VMA is locked for writing first: a fault, which
 * takes the lock of the VMA only, would install the leaf again before the split.
 */
static int pl_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	const struct pl_region *region = pl_file_region(vma->vm_file);

	if (IS_ALIGNED(addr, leaf_size(region)))
		return 0;
	if (!region->segment)
		return -EINVAL;
	if (region->leaf_shift < PUD_SHIFT)
		return 0;
	pl_vma_start_write(vma);
	if (pl_is_giant(vma->vm_mm, addr))
		pl_zap_vma(vma, ALIGN_DOWN(addr, PUD_SIZE), PUD_SIZE);
	return 0;
}

static vm_fault_t pl_fault(struct vm_fault *vmf)
{
	const struct pl_region *region = pl_file_region(vmf->vma->vm_file);
	vm_fault_t fault = VM_FAULT_NOPAGE;
	int err;

	/* mmap has checked it, and nothing can make a VMA longer: VM_DONTEXPAND. */
	if (vmf->pgoff >= region->nr_pages)
		return VM_FAULT_SIGBUS;
	/*
	 * A marker of userfaultfd (write protection of what is not mapped yet). No function that is
	 * exported replaces it: the fault would repeat for ever.
	 */
	if (vmf->flags & FAULT_FLAG_ORIG_PTE_VALID && !pte_none(vmf->orig_pte))
		return VM_FAULT_SIGBUS;
	err = pl_give(region, vmf->pgoff, 1);
	if (!err)
		fault = vmf_insert_pfn(vmf->vma, vmf->address, pl_region_pfn(region, vmf->pgoff));
	pl_gave(region);
	return err == -EAGAIN ? pl_wait(vmf) : fault;
}

#if PL_HUGE_PMD
/*
 * While this fault zeroed the leaf, another thread may have installed a page table in its place:
 * PR_SET_THP_DISABLE needs no lock that a fault holds. The next fault uses that table. It may also
 * come after the check here, and the kernel warns if it is asked to make an entry writable that is
 * another; so that is asked only where the leaf is present. A new leaf gets the protection of the
 * VMA, and its dirty bit from the processor.
 */
static vm_fault_t insert_large(struct vm_fault *vmf, unsigned long pfn, unsigned int order)
{
	bool write = vmf->flags & FAULT_FLAG_WRITE;
	pmd_t pmd;
#if PL_HUGE_PUD
	pud_t pud = READ_ONCE(*vmf->pud);

	if (order == PL_PUD_ORDER) {
		if (!pud_none(pud) && !pud_leaf(pud))
			return VM_FAULT_NOPAGE;
		return vmf_insert_pfn_pud(vmf, pl_pfn(pfn), write && !pud_none(pud));
	}
#endif
	pmd = READ_ONCE(*vmf->pmd);
	if (!pmd_none(pmd) && !pmd_leaf(pmd))
		return VM_FAULT_NOPAGE;
	return vmf_insert_pfn_pmd(vmf, pl_pfn(pfn), write && !pmd_none(pmd));
}

/*
 * Fails only where the kernel has vetoed large leaves for this process or VMA; it then asks for a
 * smaller one, down to pl_fault(). QUERY tells what came of it.
 */
static vm_fault_t pl_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	const struct pl_region *region = pl_file_region(vmf->vma->vm_file);
	unsigned long start = ALIGN_DOWN(vmf->address, PAGE_SIZE << order);
	unsigned long page = ALIGN_DOWN(vmf->pgoff, 1UL << order);
	vm_fault_t fault = VM_FAULT_SIGBUS;
	unsigned long pfn;
	int err;

	if (order > region->leaf_shift - PAGE_SHIFT)
		return VM_FAULT_FALLBACK;
	if (start < vmf->vma->vm_start || vmf->vma->vm_end - start < PAGE_SIZE << order)
		return VM_FAULT_FALLBACK;
	if (page >= region->nr_pages || region->nr_pages - page < 1UL << order)
		return VM_FAULT_FALLBACK;
	/* Both are true of every mapping of whole leaves; those of a segment may lie askew. */
	pfn = pl_region_pfn(region, page);
	if (vmf->pgoff - page != (vmf->address - start) >> PAGE_SHIFT ||
	    !IS_ALIGNED(pfn, 1UL << order))
		return VM_FAULT_FALLBACK;
	if (order != PL_PMD_ORDER && !(PL_HUGE_PUD && order == PL_PUD_ORDER))
		return VM_FAULT_FALLBACK;
	/* With a fatal signal SIGBUS: a copy_to_user() ends with EFAULT, and the process dies. */
	err = pl_give(region, page, 1UL << order);
	if (!err)
		fault = insert_large(vmf, pfn, order);
	pl_gave(region);
	return err == -EAGAIN ? pl_wait(vmf) : fault;
}
#endif

static const struct vm_operations_struct pl_vm_ops;

/**
 * pl_vma_is_of() - is this a mapping of this open file?
 * @vma: may be NULL
 * @file: an open /dev/pagelab
 */
bool pl_vma_is_of(const struct vm_area_struct *vma, const struct file *file)
{
	return vma && vma->vm_file == file && vma->vm_ops == &pl_vm_ops;
}

#if PL_HUGE_PUD
/*
 * mremap does not know leaves of 1G: it clears them with a complaint ("bad pud"). It calls this for
 * the new VMA before it moves the entries of the old one, so they are taken out here, and faults
 * bring them back where they are wanted. The child's VMA of a fork is left alone, and so is half of
 * one that is split, which lies where the whole did.
 */
static void pl_vma_open(struct vm_area_struct *vma)
{
	const struct pl_region *region = pl_file_region(vma->vm_file);
	unsigned long end = vma->vm_pgoff + vma_pages(vma);
	struct vm_area_struct *old;

	VMA_ITERATOR(vmi, vma->vm_mm, 0);

	if (region->leaf_shift < PUD_SHIFT || vma->vm_mm != current->mm)
		return;
	for_each_vma(vmi, old) {
		if (old == vma || !pl_vma_is_of(old, vma->vm_file))
			continue;
		if (vma->vm_start < old->vm_end && old->vm_start < vma->vm_end)
			continue;
		if (old->vm_pgoff < end && vma->vm_pgoff < old->vm_pgoff + vma_pages(old))
			pl_zap_vma(old, old->vm_start, old->vm_end - old->vm_start);
	}
}
#endif

static const struct vm_operations_struct pl_vm_ops = {
#if PL_HUGE_PUD
	.open = pl_vma_open,
#endif
	.may_split = pl_may_split,
	.fault = pl_fault,
#if PL_HUGE_PMD
	.huge_fault = pl_huge_fault,
#endif
};

static int fill_small(struct vm_area_struct *vma, const struct pl_region *region)
{
	unsigned long nr_pages = vma_pages(vma);
	unsigned long i;

	for (i = 0; i < nr_pages; i++) {
		vm_fault_t fault;

		fault = vmf_insert_pfn(vma, vma->vm_start + (i << PAGE_SHIFT),
				       pl_region_pfn(region, vma->vm_pgoff + i));
		if (fault != VM_FAULT_NOPAGE)
			return fault & VM_FAULT_OOM ? -ENOMEM : -EFAULT;
		if (i % PL_BATCH)
			continue;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

#if PL_HUGE_PMD
/*
 * A large leaf can be made by a fault only, and a fault only after mmap is done. So the faults are
 * taken by the caller of mmap on its way back to user space.
 */
struct fill_large {
	struct callback_head work;
	struct file *file;
	unsigned long start;
	unsigned long end;
};

static void fill_large(struct callback_head *work)
{
	struct fill_large *fill = container_of(work, struct fill_large, work);
	unsigned long step = leaf_size(pl_file_region(fill->file));
	struct mm_struct *mm = current->mm;
	unsigned long addr;

	for (addr = fill->start; mm && addr < fill->end; addr += step) {
		struct vm_area_struct *vma;
		bool unlocked = false;
		int err = -EFAULT;

		if (fatal_signal_pending(current) || mmap_read_lock_killable(mm))
			break;
		/* Another thread may have replaced the mapping by now. */
		vma = vma_lookup(mm, addr);
		if (pl_vma_is_of(vma, fill->file))
			err = fixup_user_fault(mm, addr,
					       vma->vm_flags & VM_WRITE ? FAULT_FLAG_WRITE : 0,
					       &unlocked);
		mmap_read_unlock(mm);
		if (err)
			break;
		cond_resched();
	}
	fput(fill->file);
	kfree(fill);
}

static int fill_large_later(struct file *file, struct vm_area_struct *vma)
{
	struct fill_large *fill = kmalloc(sizeof(*fill), GFP_KERNEL_ACCOUNT);
	int err;

	if (!fill)
		return -ENOMEM;
	init_task_work(&fill->work, fill_large);
	fill->file = get_file(file);
	fill->start = vma->vm_start;
	fill->end = vma->vm_end;
	err = task_work_add(current, &fill->work, TWA_RESUME);
	if (err) {
		fput(file);
		kfree(fill);
	}
	return err;
}
#else
static int fill_large_later(struct file *file, struct vm_area_struct *vma)
{
	return -EOPNOTSUPP;
}
#endif

static pgprot_t type_of_prot(pgprot_t prot, u32 memtype)
{
	switch (memtype) {
	case PAGELAB_UC_MINUS:
		return pgprot_noncached(prot);
	case PAGELAB_WC:
		return pgprot_writecombine(prot);
	case PAGELAB_WT:
		return pgprot_writethrough(prot);
	default:
		return prot;
	}
}

/**
 * pl_mmap() - map a part of the region, in whole leaves unless it is a segment
 * @file: with a region, else -ENXIO
 * @vma: MAP_SHARED, within the region
 */
int pl_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct pl_region *region = pl_file_region(file);
	unsigned long leaf_pages, nr_pages = vma_pages(vma);
	vm_flags_t flags = VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP;
	int err;

	if (!region)
		return -ENXIO;
	/* Not VM_SHARED, which a file opened for reading only never gets. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (region->ignore_offset)
		vma->vm_pgoff = 0;
	leaf_pages = leaf_size(region) >> PAGE_SHIFT;
	if (!region->segment && (!IS_ALIGNED(vma->vm_start, leaf_size(region)) ||
				 !IS_ALIGNED(nr_pages | vma->vm_pgoff, leaf_pages)))
		return -EINVAL;
	if (vma->vm_pgoff >= region->nr_pages || nr_pages > region->nr_pages - vma->vm_pgoff)
		return -EINVAL;
	/* Older kernels ask for this before they offer large leaves to a fault. */
	if (leaf_pages > 1)
		flags |= VM_HUGEPAGE;
	/*
	 * Its contents are one program's: what fork owes a child is the business of whoever forks.
	 * With VM_IO MADV_DOFORK is EINVAL.
	 */
	if (region->segment)
		flags |= VM_DONTCOPY | VM_IO;
	err = pl_bind(region, vma->vm_mm);
	if (err)
		return err;
	pl_vm_flags_set(vma, flags);
	vma->vm_page_prot = type_of_prot(vma->vm_page_prot, region->memtype);
	vma->vm_ops = &pl_vm_ops;
	/* PROT_NONE: filled by faults, once it is made accessible. */
	if (!region->eager || !(vma->vm_flags & (VM_READ | VM_WRITE | VM_EXEC)))
		return 0;
	return leaf_pages > 1 ? fill_large_later(file, vma) : fill_small(vma, region);
}

#if PL_HUGE_PMD
/**
 * pl_get_unmapped_area() - an address that is to the leaves of the region as the offset is
 * @file: /dev/pagelab
 * @addr: a wish, or with MAP_FIXED an order
 * @len: bytes
 * @pgoff: of the mapping
 * @flags: of mmap
 *
 * Also asked by mremap, before it moves a mapping.
 */
unsigned long pl_get_unmapped_area(struct file *file, unsigned long addr, unsigned long len,
				   unsigned long pgoff, unsigned long flags)
{
	const struct pl_region *region = pl_file_region(file);
	unsigned long leaf = region ? leaf_size(region) : PAGE_SIZE;
	unsigned long askew = pgoff << PAGE_SHIFT;
	unsigned long padded, found;

	if (leaf == PAGE_SIZE)
		return thp_get_unmapped_area(file, addr, len, pgoff, flags);
	if (flags & MAP_FIXED) {
		if (!region->segment && !IS_ALIGNED(addr, leaf))
			return -EINVAL;
		return thp_get_unmapped_area(file, addr, len, pgoff, flags);
	}
	if (addr) {
		found = thp_get_unmapped_area(file, addr, len, pgoff, flags);
		if (IS_ERR_VALUE(found) || IS_ALIGNED(found - askew, leaf))
			return found;
	}
	if (check_add_overflow(len, leaf, &padded))
		return -ENOMEM;
	found = thp_get_unmapped_area(file, 0, padded, pgoff, flags);
	return IS_ERR_VALUE(found) ? found : found + ((askew - found) & (leaf - 1));
}
#endif
