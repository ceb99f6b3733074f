/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_RUNTIME_SHIM_H
#define HF_KUBELET_RUNTIME_SHIM_H

/*
 * The helper processes of this program, which the kubelet starts. main.c calls hf_shim_helper_main
 * first, before it parses a command line or makes a loop:
 *
 *       int rc = hf_shim_helper_main(argc, argv);
 *       if (rc >= 0)
 *               return rc;
 *
 * The function handles the hidden verb "shim" (the shim of a pod, the set-up of the node's network)
 * and returns -1 for everything else.
 */
int hf_shim_helper_main(int argc, char **argv);

/* Runs the "shim" verb and returns its exit code; argv[0] is "shim". */
int hf_shim_main(int argc, char **argv);

#endif
