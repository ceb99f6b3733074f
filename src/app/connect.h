/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_CONNECT_H
#define HF_APP_CONNECT_H

#include "cli/cli.h"

/*
 * The function for cli->connect.  Uses the server of --kubeconfig, else of $KUBECONFIG, else this user's
 * `holdfast up`.  A verb that reads kept runs opens the kept run that its first argument names: "@1" always,
 * other names if no server is named and no `up` runs.  The first call creates cli->loop and cli->store.  Without
 * -n, cli->ns becomes the namespace of the context.
 */
int hf_connect(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err);
/* True if a job's name means a job on a server, so that only "@1" names a kept run. */
bool hf_connect_prefers_server(const struct hf_cli *cli);
/* Free what hf_connect created; main calls this at the end. */
void hf_disconnect(struct hf_cli *cli);

#endif
