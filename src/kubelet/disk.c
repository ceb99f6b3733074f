/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/statvfs.h>

/*
 * Decides when the disk is nearly full, for the Node's condition DiskPressure. Upstream's kubelet
 * evicts pods when less than a tenth of the disk or a twentieth of the inodes is free, because
 * other nodes can run them. Here there is no other node, and many machines run with less for years.
 * The free space must therefore also be small in absolute terms (LITTLE_BYTES, LITTLE_FILES).
 */
#define SHARE 10
#define LITTLE_BYTES ((uint64_t)1 << 30)
#define SHARE_FILES 20
#define LITTLE_FILES ((uint64_t)10000)

static uint64_t limit_of(uint64_t all, uint64_t share, uint64_t little)
{
	return all / share < little ? all / share : little;
}

/* Compares the free space with the limit. Once DiskPressure is set, it ends only at a quarter
 * above the limit, so that the condition does not alternate. */
static bool is_short(uint64_t left, uint64_t limit, bool before)
{
	return left < (before ? limit + limit / 4 : limit);
}

bool hf_kubelet_disk_is_short(const struct hf_kubelet_disk *disk, bool before)
{
	/* Check the inodes only if the file system counts them. */
	return is_short(disk->free_bytes, limit_of(disk->bytes, SHARE, LITTLE_BYTES), before) ||
	       (disk->files > 0 &&
		is_short(disk->free_files, limit_of(disk->files, SHARE_FILES, LITTLE_FILES),
			 before));
}

bool hf_kubelet_disk_read(const char *dir, struct hf_kubelet_disk *ret_disk)
{
	struct statvfs st;

	if (statvfs(dir, &st) < 0)
		return false;
	*ret_disk = (struct hf_kubelet_disk){.bytes = (uint64_t)st.f_blocks * st.f_frsize,
					     .free_bytes = (uint64_t)st.f_bavail * st.f_frsize,
					     .files = st.f_files,
					     .free_files = st.f_favail};
	return true;
}

void hf_kubelet_disk_text(const struct hf_kubelet_disk *disk, const char *dir, char *text,
			  size_t size)
{
	bool small = disk->bytes < (uint64_t)1 << 30;
	uint64_t unit = small ? 1024 : (uint64_t)1 << 20;

	/* Report the inodes if there is enough free space in bytes, else the bytes. If both have
	 * recovered since the check, the text reports the bytes. */
	if (disk->files > 0 &&
	    !is_short(disk->free_bytes, limit_of(disk->bytes, SHARE, LITTLE_BYTES), true))
		(void)snprintf(text, size,
			       "the disk that holds %s is nearly full: %" PRIu64 " of %" PRIu64
			       " inodes are free",
			       dir, disk->free_files, disk->files);
	else
		(void)snprintf(text, size,
			       "the disk that holds %s is nearly full: %" PRIu64 " of %" PRIu64
			       " %s are free",
			       dir, disk->free_bytes / unit, disk->bytes / unit,
			       small ? "KiB" : "MiB");
}
