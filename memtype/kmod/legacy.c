// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/memcache_wb, _uc and _wc: the nodes of an older driver, for programs written for it.
 *
 * Three regions of scattered pages, made at load. ioctl 0 writes the length as u64; mmap maps up to
 * that length and always starts at page 0, whatever its offset. Unlike the older driver's, the
 * types are those of every mapping of the pages, and MAP_PRIVATE is refused: its first store would
 * go to an ordinary page. What programs that have a node open at the same time store, they share;
 * whoever opens it after the last of them finds zeroes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "pagelab.h"

#define LEGACY_MB 16
#define LEGACY_SIZE 0 /* a raw number, without direction or length */

/* The name that their scripts load and unload, by modprobe and modprobe -r. */
MODULE_ALIAS("memcache_test");

static uint size_mb;
module_param(size_mb, uint, 0444);
MODULE_PARM_DESC(size_mb, "MiB behind each of /dev/memcache_{wb,uc,wc} (16 where not given)");

static bool legacy = true;
module_param(legacy, bool, 0444);
MODULE_PARM_DESC(legacy, "Make the nodes /dev/memcache_* without size_mb and numa_node, too");

static int legacy_nid = NUMA_NO_NODE;
module_param_named(numa_node, legacy_nid, int, 0444);
MODULE_PARM_DESC(numa_node, "Node of the memory of /dev/memcache_*; makes them like legacy does");

/**
 * struct legacy_node - one of the three
 * @misc: the device
 * @memtype: of its region
 * @file: what pl_file_region() reads; its lock guards @opens and @zeroing
 * @opens: open files; one that is mapped is open
 * @zeroing: the last close is zeroing the region
 * @registered: by misc_register()
 */
struct legacy_node {
	struct miscdevice misc;
	u32 memtype;
	struct pl_file file;
	unsigned long opens;
	bool zeroing;
	bool registered;
};

/* Until the module has loaded, opening fails: what fails to load frees the regions. */
static bool admitted;

static int legacy_open(struct inode *inode, struct file *file)
{
	struct legacy_node *node = container_of(file->private_data, struct legacy_node, misc);
	int err = 0;

	/* Pairs with the release in pl_legacy_admit(). */
	if (!smp_load_acquire(&admitted))
		return -ENODEV;
	mutex_lock(&node->file.lock);
	if (node->zeroing)
		err = -EBUSY;
	else
		node->opens++;
	mutex_unlock(&node->file.lock);
	file->private_data = &node->file;
	return err;
}

/*
 * The last close zeroes the region. An open meanwhile is -EBUSY: misc_open() calls a driver with
 * the lock of all misc devices held, so a wait would block them all.
 */
static int legacy_release(struct inode *inode, struct file *file)
{
	struct legacy_node *node = container_of(file->private_data, struct legacy_node, file);
	const struct pl_region *region = pl_file_region(file);
	unsigned long page;
	bool is_last;

	mutex_lock(&node->file.lock);
	is_last = !--node->opens;
	node->zeroing = is_last;
	mutex_unlock(&node->file.lock);
	if (!is_last)
		return 0;
	for (page = 0; page < region->nr_pages; page++) {
		clear_highpage(pfn_to_page(pl_region_pfn(region, page)));
		if (!(page % PL_BATCH))
			cond_resched();
	}
	mutex_lock(&node->file.lock);
	node->zeroing = false;
	mutex_unlock(&node->file.lock);
	return 0;
}

static long legacy_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	u64 bytes = (u64)pl_file_region(file)->nr_pages << PAGE_SHIFT;

	/* A program of the older driver's time knows only the other one. */
	if (cmd == PAGELAB_IOC_QUERY)
		return pl_query(file, (void __user *)arg);
	if (cmd != LEGACY_SIZE)
		return -ENOTTY;
	return copy_to_user((void __user *)arg, &bytes, sizeof(bytes)) ? -EFAULT : 0;
}

static int legacy_mmap(struct file *file, struct vm_area_struct *vma)
{
	pr_info_ratelimited("mmap of %pD: %lu bytes\n", file, vma->vm_end - vma->vm_start);
	return pl_mmap(file, vma);
}

static const struct file_operations legacy_fops = {
	.owner = THIS_MODULE,
	.open = legacy_open,
	.release = legacy_release,
	.unlocked_ioctl = legacy_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = legacy_mmap,
};

#define LEGACY_NODE(suffix, type)                                                                  \
	{                                                                                          \
		.misc = { .minor = MISC_DYNAMIC_MINOR,                                             \
			  .name = "memcache_" suffix,                                              \
			  .fops = &legacy_fops,                                                    \
			  .mode = 0600 },                                                          \
		.memtype = (type),                                                                 \
	}

static struct legacy_node nodes[] = {
	LEGACY_NODE("wb", PAGELAB_WB),
	LEGACY_NODE("uc", PAGELAB_UC_MINUS),
	LEGACY_NODE("wc", PAGELAB_WC),
};

static int make_node(struct legacy_node *node)
{
	struct pagelab_alloc want = {
		.bytes = (u64)size_mb * SZ_1M,
		.node = legacy_nid,
		.memtype = node->memtype,
		.layout = PAGELAB_SCATTERED,
		.leaf_shift = PAGE_SHIFT,
		.flags = PAGELAB_EAGER,
	};
	struct pl_region *region;
	int err;

	if (!pl_leaves(want.memtype, want.layout))
		return -EOPNOTSUPP;
	region = pl_frames_alloc(&want);
	if (IS_ERR(region))
		return PTR_ERR(region);
	region->ignore_offset = true;
	mutex_init(&node->file.lock);
	smp_store_release(&node->file.region, region);
	err = misc_register(&node->misc);
	if (err)
		return err;
	node->registered = true;
	pr_info("/dev/%s: %llu bytes, node %d\n", node->misc.name, want.bytes, want.node);
	return 0;
}

/**
 * pl_legacy_init() - make the nodes that the parameters ask for
 *
 * Return: 0 also where they ask for none.
 */
int pl_legacy_init(void)
{
	unsigned int i;
	int err;

	if (legacy_nid < NUMA_NO_NODE || legacy_nid >= MAX_NUMNODES) {
		pr_err("numa_node=%d is not a node\n", legacy_nid);
		return -EINVAL;
	}
	if (!size_mb && (legacy || legacy_nid != NUMA_NO_NODE))
		size_mb = LEGACY_MB;
	for (i = 0; size_mb && i < ARRAY_SIZE(nodes); i++) {
		err = make_node(&nodes[i]);
		if (err) {
			pr_err("/dev/%s of %u MiB cannot be made (%d)\n", nodes[i].misc.name,
			       size_mb, err);
			pl_legacy_exit();
			return err;
		}
	}
	return 0;
}

/**
 * pl_legacy_admit() - let the nodes be opened: the module cannot fail to load any more
 */
void pl_legacy_admit(void)
{
	smp_store_release(&admitted, true);
}

/**
 * pl_legacy_exit() - nobody has any of the nodes open
 */
void pl_legacy_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nodes); i++) {
		if (nodes[i].registered)
			misc_deregister(&nodes[i].misc);
		nodes[i].registered = false;
		if (nodes[i].file.region)
			pl_frames_free(nodes[i].file.region);
		nodes[i].file.region = NULL;
	}
}
