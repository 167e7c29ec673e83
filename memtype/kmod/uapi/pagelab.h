/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The whole conversation with /dev/pagelab.
 *
 * One open file owns at most one allocation: open, PAGELAB_IOC_ALLOC, mmap (MAP_SHARED), close.
 * Closing the last descriptor and the last mapping frees it and makes its frames WB again.
 * PAGELAB_IOC_QUERY reads the page table: it says what a mapping is, not what was asked for.
 *
 * mmap before ALLOC is ENXIO; of a segment that another process mapped, EPERM. MAP_PRIVATE, what
 * is not inside the region, and offsets, lengths and fixed addresses that are no multiples of the
 * leaf are EINVAL. So are munmap, mprotect and mremap with an edge inside a leaf; an mremap that
 * makes a mapping longer is EFAULT. A segment (PAGELAB_SEGMENT) is memory of a program: its edges
 * may lie anywhere.
 *
 * Every structure has a fixed layout on every architecture (layout.txt). Unknown
 * flags and reserved fields that are not zero are refused with EINVAL, so that they can get a
 * meaning later.
 */
#ifndef PAGELAB_UAPI_H
#define PAGELAB_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes whenever a structure or the meaning of a field does. */
#define PAGELAB_UAPI_VERSION 2

#define PAGELAB_IOC_MAGIC 0xDC

/* Memory types, as the page table names them. "UC" of pgprot_noncached() is UC-. */
#define PAGELAB_WB 0
#define PAGELAB_UC_MINUS 1
#define PAGELAB_WC 2
#define PAGELAB_WT 3 /* on reserved memory only, in leaves of 4K */
/* Only ever answered, by PAGELAB_IOC_QUERY. */
#define PAGELAB_UC 4
#define PAGELAB_WP 5
#define PAGELAB_MEMTYPES 4 /* that can be asked for */

/* Where the frames come from. */
#define PAGELAB_SCATTERED 0  /* single leaves, wherever they are free */
#define PAGELAB_CONTIGUOUS 1 /* one physically contiguous run, aligned as its leaves are */
#define PAGELAB_RESERVED 2   /* the region given by the module's parameters phys and phys_len */
#define PAGELAB_LAYOUTS 3

/* pagelab_alloc.flags */
/*
 * mmap fills the page table; without it each fault does. Leaves of 4K are filled without a fault,
 * larger ones by one fault each, which the caller takes before mmap returns.
 */
#define PAGELAB_EAGER (1U << 0)
/*
 * A segment: contiguous or reserved memory of type WB, of any number of base pages, mapped by the
 * largest leaf that fits at each touch: 1G, 2M, 4K, up to 1 << leaf_shift. A mapping may begin, end
 * and be split inside a leaf; a leaf that is split is taken out, and faults bring smaller ones. It
 * belongs to the process that maps it first. A child of fork does not get it. Not with
 * PAGELAB_EAGER.
 */
#define PAGELAB_SEGMENT (1U << 1)
/* With PAGELAB_SEGMENT: frames are zeroed by the fault that first maps them, not by ALLOC. */
#define PAGELAB_ZERO_AT_FAULT (1U << 2)
#define PAGELAB_ALLOC_FLAGS (PAGELAB_EAGER | PAGELAB_SEGMENT | PAGELAB_ZERO_AT_FAULT)

struct pagelab_info {
	__u32 version;   /* PAGELAB_UAPI_VERSION of the module */
	__u32 page_size; /* of the base page, bytes */
	__u64 limit_bytes;    /* most ordinary memory for all open files together */
	__u64 reserved_phys;  /* the reserved region, 0 without CAP_SYS_ADMIN; both 0 where none is */
	__u64 reserved_bytes;
	/* Bit n of leaves[type][layout]: leaves of 2^n bytes are possible. */
	__u64 leaves[PAGELAB_MEMTYPES][PAGELAB_LAYOUTS];
	__u64 pad[4]; /* 0 */
};

struct pagelab_alloc {
	__u64 bytes;      /* a multiple of 1 << leaf_shift (a segment: of 4K), not 0 */
	__s32 node;       /* a memory node, or -1 for the nearest; -1 with PAGELAB_RESERVED */
	__u32 memtype;    /* PAGELAB_WB, _UC_MINUS, _WC, _WT */
	__u32 layout;     /* PAGELAB_SCATTERED, _CONTIGUOUS, _RESERVED */
	__u32 leaf_shift; /* 12, 21 or 30: the size of a page-table leaf */
	__u32 flags;      /* PAGELAB_EAGER, or PAGELAB_SEGMENT with or without _ZERO_AT_FAULT */
	__u32 pad0;       /* 0 */
	__u64 offset;     /* into the reserved region; 0 otherwise */
	__u64 pad[3];     /* 0 */
};

struct pagelab_query {
	__u64 addr;       /* in: an address in a mapping of this file, in this process */
	__u32 memtype;    /* out: the type of the leaf in force */
	__u32 leaf_shift; /* out: its size; 0 where nothing is mapped, and then memtype means nothing */
	__u64 entry;      /* out: the leaf entry without its frame number */
	__u64 phys;       /* out: the physical address behind addr; 0 without CAP_SYS_ADMIN */
	__u64 pad[2];     /* 0 */
};

struct pagelab_drop {
	__u64 offset; /* into the region; both multiples of 4K */
	__u64 bytes;  /* not 0 */
	__u64 pad[2]; /* 0 */
};

/* The longest that PAGELAB_IOC_FREEZE may be asked for: ten minutes. */
#define PAGELAB_FREEZE_MOST 600000

struct pagelab_freeze {
	__u32 milliseconds; /* from now on, at most PAGELAB_FREEZE_MOST; 0 thaws */
	__u32 pad0;         /* 0 */
	__u64 pad[3];       /* 0 */
};

struct pagelab_copy {
	__u64 addr;   /* in: in mappings of this file, in this process; both multiples of 4K */
	__u64 bytes;  /* in: not 0 */
	__u64 to;     /* in: where the copy of addr goes */
	__u64 copied; /* in: 0; out: bytes that were copied */
	__u64 pad[2]; /* 0 */
};

/* Never changes, in any version. */
#define PAGELAB_IOC_VERSION _IOR(PAGELAB_IOC_MAGIC, 0, __u32)
#define PAGELAB_IOC_INFO _IOR(PAGELAB_IOC_MAGIC, 1, struct pagelab_info)
/*
 * EINVAL a field out of range, EBUSY this file has an allocation or the region is taken,
 * EOPNOTSUPP this kernel cannot do this type, layout and leaf together, ENXIO no reserved region,
 * ENODEV the node is offline or has no memory, E2BIG more than limit_bytes or the region,
 * ENOMEM no such frames are free now, EINTR the caller is being killed.
 */
#define PAGELAB_IOC_ALLOC _IOW(PAGELAB_IOC_MAGIC, 2, struct pagelab_alloc)
/* EFAULT the address is in no mapping of this file. The nodes /dev/memcache_* answer it, too. */
#define PAGELAB_IOC_QUERY _IOWR(PAGELAB_IOC_MAGIC, 3, struct pagelab_query)
/*
 * Forgets what is in a part of a segment: whole leaves with a page of it leave the mappings of this
 * process, and the next touch of a page of it finds zeroes; the rest keeps its contents. EINVAL a
 * field out of range, ENXIO no segment, EPERM one that another process mapped, EINTR the caller is
 * being killed.
 */
#define PAGELAB_IOC_DROP _IOW(PAGELAB_IOC_MAGIC, 4, struct pagelab_drop)
/*
 * Freezes a segment until it is thawed or the time is over: it leaves the mappings of this process,
 * and whatever touches it waits, but for the calling thread: a leaf that it touches is open to all.
 * Asked once more by that thread it sets the time anew. A fatal signal ends every wait; a signal
 * that a program handles ends that of a touch by the program itself, which begins again afterwards.
 * EINVAL a field out of range, ENXIO no segment, EPERM one that this process has
 * not mapped first, EBUSY frozen by another thread, ETIME (of a thaw, or of a time that was to be
 * set anew) the time was over before: it is thawed. Modules before 1.3.0 answer ENOTTY.
 */
#define PAGELAB_IOC_FREEZE _IOW(PAGELAB_IOC_MAGIC, 5, struct pagelab_freeze)
/*
 * Copies a part of a segment without its page table, frozen or not. What was never touched, or was
 * dropped, is left out: the place of its copy stays as it is. EINVAL a field out of range, ENXIO no
 * segment, EFAULT an address that is in no mapping of this file, or a place that cannot be written
 * to; a part may have been copied by then. EINTR the caller is being killed.
 */
#define PAGELAB_IOC_COPY _IOWR(PAGELAB_IOC_MAGIC, 6, struct pagelab_copy)

#endif /* PAGELAB_UAPI_H */
