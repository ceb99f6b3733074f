/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Debian 12 has PyTorch 1.13 and Python 3.11. Its torchrun always fails: AttributeError: 'NoneType' object
 * has no attribute 'get'. The cause: since 3.11 an enumeration does not list its member with value 0, so
 * Std.from_str("0") finds nothing. For such a torchrun, pods get one that runs it with that function mended.
 */
#define HEAD_BYTES_MAX ((size_t)64 << 10)
#define BROKEN "torch==1.13"
#define INTERPRETER "python3.11"

static const char stand_in[] =
	"# Runs the torchrun of Debian 12, which fails by itself (src/kubelet/torchrun.c).\n"
	"import sys\n"
	"import torch.distributed.elastic.multiprocessing.api as api\n"
	"plain = api.Std.from_str\n"
	"def from_str(cls, text):\n"
	"    found = plain(text)\n"
	"    if isinstance(found, dict):\n"
	"        return {k: api.Std.NONE if v is None else v for k, v in found.items()}\n"
	"    return api.Std.NONE if found is None else found\n"
	"api.Std.from_str = classmethod(from_str)\n"
	"print('holdfast: the torchrun of PyTorch 1.13 fails with Python 3.11, so Holdfast mends it "
	"for this pod', file=sys.stderr, flush=True)\n"
	"from torch.distributed.run import main\n"
	"main()\n";

/* Reads the torchrun that a pod's PATH would find. */
static int read_torchrun(struct hf_strbuf *text)
{
	HF_AUTOFREE char *path = hf_xstrdup(hf_str_or(getenv("PATH"), ""));
	char *rest = path, *dir;

	while ((dir = strsep(&rest, ":"))) {
		HF_AUTOFREE char *file = hf_xasprintf("%s/torchrun", dir);

		if (dir[0] == '/' && access(file, X_OK) == 0)
			return hf_fs_read_regular(file, text, NULL);
	}
	return HF_E_NOT_FOUND;
}

static bool is_broken(const struct hf_strbuf *text)
{
	size_t line = strcspn(text->data, "\n");

	return text->len > 2 && memcmp(text->data, "#!/", 3) == 0 &&
	       memmem(text->data, line, INTERPRETER, strlen(INTERPRETER)) &&
	       strstr(text->data, BROKEN);
}

void hf_kubelet_mend_torchrun(const char *bin_dir)
{
	HF_AUTO_STRBUF found = HF_STRBUF_INIT(HEAD_BYTES_MAX);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HEAD_BYTES_MAX + sizeof(stand_in));
	HF_AUTOFREE char *path = hf_xasprintf("%s/torchrun", bin_dir);

	if (read_torchrun(&found) != 0 || !is_broken(&found)) {
		(void)unlink(path);
		return;
	}
	hf_strbuf_add(&text, found.data, strcspn(found.data, "\n") + 1);
	hf_strbuf_addstr(&text, stand_in);
	/* Ignore an error: without the mended file, pods find the torchrun that fails. */
	(void)!hf_fs_write_changed(path, text.data, text.len, 0755, NULL);
}
