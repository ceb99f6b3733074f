/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/kubelet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/statvfs.h>

/*
 * When the disk counts as short.  Upstream's kubelet evicts below a tenth free, or a twentieth
 * of the inodes; it has other nodes to send the work to.  Here there is one machine, which is
 * often fuller than that for years, so less than a tenth is short only where it is also little.
 */
#define SHARE 10
#define LITTLE_BYTES ((uint64_t)1 << 30)
#define SHARE_FILES 20
#define LITTLE_FILES ((uint64_t)10000)

static uint64_t limit(uint64_t all, uint64_t share, uint64_t little)
{
	return all / share < little ? all / share : little;
}

/* Over again only with a quarter more than it began with: nothing flaps around the limit. */
static bool is_short(uint64_t left, uint64_t limit, bool before)
{
	return left < (before ? limit + limit / 4 : limit);
}

bool hf_kdisk_is_short(const struct hf_kdisk *disk, bool before)
{
	/* Some file systems count no inodes. */
	return is_short(disk->free_bytes, limit(disk->bytes, SHARE, LITTLE_BYTES), before) ||
	       (disk->files > 0 &&
		is_short(disk->free_files, limit(disk->files, SHARE_FILES, LITTLE_FILES), before));
}

bool hf_kdisk_read(const char *dir, struct hf_kdisk *ret_disk)
{
	struct statvfs st;

	if (statvfs(dir, &st) < 0)
		return false;
	*ret_disk = (struct hf_kdisk){.bytes = (uint64_t)st.f_blocks * st.f_frsize,
				      .free_bytes = (uint64_t)st.f_bavail * st.f_frsize,
				      .files = st.f_files,
				      .free_files = st.f_favail};
	return true;
}

void hf_kdisk_text(const struct hf_kdisk *disk, const char *dir, char *text, size_t size)
{
	bool small = disk->bytes < (uint64_t)1 << 30;
	uint64_t unit = small ? 1024 : (uint64_t)1 << 20;

	/* One of the two is; with room of both kinds it has just become more. */
	if (disk->files > 0 &&
	    !is_short(disk->free_bytes, limit(disk->bytes, SHARE, LITTLE_BYTES), true))
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
