/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec.h"

/* `holdfast-exec`: the same as `holdfast exec`, as a program that needs only the C library. */
int main(int argc, char **argv)
{
	return hf_exec_main(argc, argv);
}
