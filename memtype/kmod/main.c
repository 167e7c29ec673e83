// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/pagelab: memory of a chosen type, layout and leaf size for a process, and what the page
 * table says of it. uapi/pagelab.h is the whole conversation.
 *
 * Everything hangs off the open file and dies in release(): nothing is left after a crash.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

#include "pagelab.h"

static int get_uapi(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", PAGELAB_UAPI_VERSION);
}

static const struct kernel_param_ops uapi_ops = {
	.set = pl_refuse_param,
	.get = get_uapi,
};

module_param_cb(uapi, &uapi_ops, NULL, 0444);
MODULE_PARM_DESC(uapi, "Version of the interface (to read only)");

static int pl_open(struct inode *inode, struct file *file)
{
	struct pl_file *pf = kzalloc(sizeof(*pf), GFP_KERNEL_ACCOUNT);

	if (!pf)
		return -ENOMEM;
	mutex_init(&pf->lock);
	file->private_data = pf;
	return 0;
}

static void free_region(struct pl_region *region)
{
	pl_given_free(region);
	if (region->layout == PAGELAB_RESERVED)
		pl_reserved_free(region);
	else
		pl_frames_free(region);
}

/* The last descriptor and the last mapping are gone. */
static int pl_release(struct inode *inode, struct file *file)
{
	struct pl_file *pf = file->private_data;

	if (pf->region)
		free_region(pf->region);
	mutex_destroy(&pf->lock);
	kfree(pf);
	return 0;
}

static long ioctl_info(void __user *arg)
{
	struct pagelab_info info = {
		.version = PAGELAB_UAPI_VERSION,
		.page_size = PAGE_SIZE,
		.limit_bytes = pl_limit_bytes(),
	};
	u32 memtype, layout;

	pl_reserved_extent(&info.reserved_phys, &info.reserved_bytes);
	/* As QUERY has it. */
	if (!capable(CAP_SYS_ADMIN))
		info.reserved_phys = 0;
	for (memtype = 0; memtype < PAGELAB_MEMTYPES; memtype++)
		for (layout = 0; layout < PAGELAB_LAYOUTS; layout++)
			info.leaves[memtype][layout] = pl_leaves(memtype, layout);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static int check_alloc(const struct pagelab_alloc *want)
{
	if (want->flags & ~PAGELAB_ALLOC_FLAGS || want->pad0 ||
	    memchr_inv(want->pad, 0, sizeof(want->pad)))
		return -EINVAL;
	if (want->memtype >= PAGELAB_MEMTYPES || want->layout >= PAGELAB_LAYOUTS)
		return -EINVAL;
	if (want->node < NUMA_NO_NODE || want->node >= MAX_NUMNODES)
		return -EINVAL;
	if (want->leaf_shift != PAGE_SHIFT && want->leaf_shift != PMD_SHIFT &&
	    want->leaf_shift != PUD_SHIFT)
		return -EINVAL;
	if (want->flags & PAGELAB_SEGMENT ?
		    want->flags & PAGELAB_EAGER || want->memtype != PAGELAB_WB ||
			    want->layout == PAGELAB_SCATTERED :
		    want->flags & PAGELAB_ZERO_AT_FAULT)
		return -EINVAL;
	if (!want->bytes || !IS_ALIGNED(want->offset, 1ULL << want->leaf_shift))
		return -EINVAL;
	/* A segment ends anywhere: smaller leaves map what is left of it. */
	if (!IS_ALIGNED(want->bytes, want->flags & PAGELAB_SEGMENT ? PAGE_SIZE :
								     1ULL << want->leaf_shift))
		return -EINVAL;
	if (want->layout == PAGELAB_RESERVED ? want->node != NUMA_NO_NODE : want->offset != 0)
		return -EINVAL;
	if (!(pl_leaves(want->memtype, want->layout) & BIT_ULL(want->leaf_shift)))
		return -EOPNOTSUPP;
	return 0;
}

static long ioctl_alloc(struct pl_file *pf, const void __user *arg)
{
	struct pagelab_alloc want;
	struct pl_region *region;
	long err;

	/* Before the lock: a fault here takes the mmap lock. */
	if (copy_from_user(&want, arg, sizeof(want)))
		return -EFAULT;
	err = check_alloc(&want);
	if (err)
		return err;
	if (mutex_lock_killable(&pf->lock))
		return -EINTR;
	if (pf->region) {
		err = -EBUSY;
		goto unlock;
	}
	region = want.layout == PAGELAB_RESERVED ? pl_reserved_alloc(&want) :
						   pl_frames_alloc(&want);
	err = PTR_ERR_OR_ZERO(region);
	if (!err && want.flags & PAGELAB_SEGMENT) {
		err = pl_given_alloc(region, !(want.flags & PAGELAB_ZERO_AT_FAULT));
		if (err)
			free_region(region);
	}
	if (!err)
		/* Pairs with the acquire in pl_file_region(). */
		smp_store_release(&pf->region, region);
unlock:
	mutex_unlock(&pf->lock);
	return err;
}

static long pl_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case PAGELAB_IOC_VERSION:
		return put_user((u32)PAGELAB_UAPI_VERSION, (u32 __user *)user);
	case PAGELAB_IOC_INFO:
		return ioctl_info(user);
	case PAGELAB_IOC_ALLOC:
		return ioctl_alloc(file->private_data, user);
	case PAGELAB_IOC_QUERY:
		return pl_query(file, user);
	case PAGELAB_IOC_DROP:
		return pl_drop(file, user);
	case PAGELAB_IOC_FREEZE:
		return pl_freeze(file, user);
	case PAGELAB_IOC_COPY:
		return pl_copy(file, user);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations pl_fops = {
	.owner = THIS_MODULE,
	.open = pl_open,
	.release = pl_release,
	.unlocked_ioctl = pl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = pl_mmap,
	.get_unmapped_area = pl_get_unmapped_area,
};

static struct miscdevice pl_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "pagelab",
	.fops = &pl_fops,
	.mode = 0600,
};

static int __init pl_init(void)
{
	int err = pl_reserved_init();

	if (err)
		return err;
	err = pl_legacy_init();
	if (err)
		goto reserved;
	err = misc_register(&pl_misc);
	if (err)
		goto legacy;
	/* Nothing can fail any more, so that no file ever outlives what it is open on. */
	pl_legacy_admit();
	return 0;

legacy:
	pl_legacy_exit();
reserved:
	pl_reserved_exit();
	return err;
}

static void __exit pl_exit(void)
{
	misc_deregister(&pl_misc);
	pl_legacy_exit();
	pl_reserved_exit();
}

module_init(pl_init);
module_exit(pl_exit);

MODULE_DESCRIPTION("Memory of a chosen type, layout and leaf size, for the pagelab laboratory");
MODULE_VERSION("1.3.0");
MODULE_LICENSE("GPL");
