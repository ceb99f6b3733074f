/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec.h"

/* `holdfast-exec`: what `holdfast exec` is, in a program that needs the C library alone. */
int main(int argc, char **argv)
{
	return hf_exec_main(argc, argv);
}
