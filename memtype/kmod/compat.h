/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every difference between kernels, from 6.1 on, in one place.
 *
 * The other files say what they want by one name. Where a header itself shows which form it has,
 * that is asked and not the version: distributions carry changes back.
 */
#ifndef PAGELAB_COMPAT_H
#define PAGELAB_COMPAT_H

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/version.h>

/* 6.3 made vm_flags read-only, with setters that take the lock of the VMA. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void pl_vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#else
#define pl_vm_flags_set(vma, flags) vm_flags_set(vma, flags)
#endif

/* Since 6.4 a fault may hold the lock of its VMA instead of the mmap lock. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define pl_vma_start_write(vma) mmap_assert_write_locked((vma)->vm_mm)
#else
#define pl_vma_start_write(vma) vma_start_write(vma)
#endif

/* Before 6.7 no fault of a file holds the lock of its VMA. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define pl_release_fault_lock(vmf) mmap_read_unlock((vmf)->vma->vm_mm)
#else
#define pl_release_fault_lock(vmf) release_fault_lock(vmf)
#endif

/* The largest order of the buddy allocator: MAX_ORDER was one more until 6.4, renamed in 6.8. */
#ifdef MAX_PAGE_ORDER
#define PL_BUDDY_ORDER MAX_PAGE_ORDER
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define PL_BUDDY_ORDER (MAX_ORDER - 1)
#else
#define PL_BUDDY_ORDER MAX_ORDER
#endif

/* The third argument was a migrate type until flags replaced it. */
#ifdef ACR_FLAGS_NONE
#define pl_alloc_contig_range(start, end, gfp) alloc_contig_range(start, end, ACR_FLAGS_NONE, gfp)
#else
#define pl_alloc_contig_range(start, end, gfp) alloc_contig_range(start, end, MIGRATE_MOVABLE, gfp)
#endif

/*
 * Leaves above 4K. Before 6.12 there is no special bit for them: fast GUP would take references
 * on frames that are ours (6.1 does not even call huge_fault for a device that is not DAX).
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0) && defined(CONFIG_TRANSPARENT_HUGEPAGE)
#define PL_HUGE_PMD 1
#else
#define PL_HUGE_PMD 0
#endif
#if PL_HUGE_PMD && defined(CONFIG_HAVE_ARCH_TRANSPARENT_HUGEPAGE_PUD)
#define PL_HUGE_PUD 1
#else
#define PL_HUGE_PUD 0
#endif

/* 6.17 dropped pfn_t. PFN_DEV without PFN_MAP makes a special entry, which GUP leaves alone. */
#if PL_HUGE_PMD
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#include <linux/pfn_t.h>
#define pl_pfn(pfn) __pfn_to_pfn_t(pfn, PFN_DEV)
#else
#define pl_pfn(pfn) (pfn)
#endif
#endif

/* Takes out every entry of a part of a VM_PFNMAP VMA; renamed in 7.1. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define pl_zap_vma(vma, start, bytes) zap_vma_ptes(vma, start, bytes)
#else
#define pl_zap_vma(vma, start, bytes) zap_special_vma_range(vma, start, bytes)
#endif

#endif /* PAGELAB_COMPAT_H */
