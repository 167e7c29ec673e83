// SPDX-License-Identifier: GPL-2.0
/*
 * Prints ../uapi/layout.txt: size and offset of everything in pagelab.h, as this compiler sees it.
 *
 * `cargo xtask test` compiles it, runs it and compares; the Rust half of the header is compared
 * with the same file. A difference that is meant raises PAGELAB_UAPI_VERSION.
 */
#include <stddef.h>
#include <stdio.h>

#include "../uapi/pagelab.h"

#define CONST(name) printf("const %s %llu\n", #name, (unsigned long long)(name))
#define IOCTL(name) printf("ioctl %s 0x%08lx\n", #name, (unsigned long)(name))
#define STRUCT(name) printf("struct %s size %zu\n", #name, sizeof(struct name))
#define FIELD(name, field)                                                                         \
	printf("field %s.%s offset %zu size %zu\n", #name, #field, offsetof(struct name, field),   \
	       sizeof(((struct name *)0)->field))

int main(void)
{
	CONST(PAGELAB_UAPI_VERSION);
	CONST(PAGELAB_IOC_MAGIC);
	CONST(PAGELAB_WB);
	CONST(PAGELAB_UC_MINUS);
	CONST(PAGELAB_WC);
	CONST(PAGELAB_WT);
	CONST(PAGELAB_UC);
	CONST(PAGELAB_WP);
	CONST(PAGELAB_MEMTYPES);
	CONST(PAGELAB_SCATTERED);
	CONST(PAGELAB_CONTIGUOUS);
	CONST(PAGELAB_RESERVED);
	CONST(PAGELAB_LAYOUTS);
	CONST(PAGELAB_EAGER);
	CONST(PAGELAB_SEGMENT);
	CONST(PAGELAB_ZERO_AT_FAULT);
	CONST(PAGELAB_ALLOC_FLAGS);
	CONST(PAGELAB_FREEZE_MOST);

	STRUCT(pagelab_info);
	FIELD(pagelab_info, version);
	FIELD(pagelab_info, page_size);
	FIELD(pagelab_info, limit_bytes);
	FIELD(pagelab_info, reserved_phys);
	FIELD(pagelab_info, reserved_bytes);
	FIELD(pagelab_info, leaves);
	FIELD(pagelab_info, pad);

	STRUCT(pagelab_alloc);
	FIELD(pagelab_alloc, bytes);
	FIELD(pagelab_alloc, node);
	FIELD(pagelab_alloc, memtype);
	FIELD(pagelab_alloc, layout);
	FIELD(pagelab_alloc, leaf_shift);
	FIELD(pagelab_alloc, flags);
	FIELD(pagelab_alloc, pad0);
	FIELD(pagelab_alloc, offset);
	FIELD(pagelab_alloc, pad);

	STRUCT(pagelab_query);
	FIELD(pagelab_query, addr);
	FIELD(pagelab_query, memtype);
	FIELD(pagelab_query, leaf_shift);
	FIELD(pagelab_query, entry);
	FIELD(pagelab_query, phys);
	FIELD(pagelab_query, pad);

	STRUCT(pagelab_drop);
	FIELD(pagelab_drop, offset);
	FIELD(pagelab_drop, bytes);
	FIELD(pagelab_drop, pad);

	STRUCT(pagelab_freeze);
	FIELD(pagelab_freeze, milliseconds);
	FIELD(pagelab_freeze, pad0);
	FIELD(pagelab_freeze, pad);

	STRUCT(pagelab_copy);
	FIELD(pagelab_copy, addr);
	FIELD(pagelab_copy, bytes);
	FIELD(pagelab_copy, to);
	FIELD(pagelab_copy, copied);
	FIELD(pagelab_copy, pad);

	IOCTL(PAGELAB_IOC_VERSION);
	IOCTL(PAGELAB_IOC_INFO);
	IOCTL(PAGELAB_IOC_ALLOC);
	IOCTL(PAGELAB_IOC_QUERY);
	IOCTL(PAGELAB_IOC_DROP);
	IOCTL(PAGELAB_IOC_FREEZE);
	IOCTL(PAGELAB_IOC_COPY);
	return 0;
}
