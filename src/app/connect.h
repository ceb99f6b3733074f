/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_CONNECT_H
#define HF_APP_CONNECT_H

#include "cli/cli.h"

/*
 * cli->connect: the server that --kubeconfig names, else $KUBECONFIG, else the `holdfast up`
 * of this user.  Makes cli->loop and cli->store at the first call and takes the context's
 * namespace where -n was not given.
 */
int hf_connect(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err);
/* What connect made; for the end of main. */
void hf_disconnect(struct hf_cli *cli);

#endif
