/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/local_page.h"

#include "app/operator_flags.h"
#include "base/str.h"
#include "page/origin.h"

const char *hf_local_page_address(const struct hf_cli *cli)
{
	const char *address = hf_cli_flag(cli, "page-listen");

	if (address == NULL)
		return hf_cli_has(cli, "page") ? HF_LOCAL_PAGE_DEFAULT : NULL;
	return hf_streq(address, "none") ? NULL : address;
}

int hf_local_page_check(struct hf_cli *cli)
{
	const char *address = hf_local_page_address(cli);
	char host[HF_HOST_BYTES_MAX];
	struct hf_error err;
	uint16_t port;

	if (address == NULL)
		return 0;
	if (hf_cli_has(cli, "no-operator"))
		return hf_cli_usage(cli,
				    "--page shows what the operator of this process knows, so it "
				    "cannot be used with --no-operator");
	if (hf_bind_address_parse(address, host, &port, &err) != 0)
		return hf_cli_usage(cli, "--page-listen: %s", err.text);
	if (!hf_page_is_loopback(host))
		return hf_cli_usage(cli,
				    "--page-listen: only 127.0.0.1, ::1 and localhost are allowed, "
				    "because the page can stop jobs of yours");
	return 0;
}
