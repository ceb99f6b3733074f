/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_COMPLETION_INTERNAL_H
#define HF_CLI_COMPLETION_INTERNAL_H

/* The script for "bash", "zsh" or "fish"; NULL: another word. */
const char *hf_completion_script(const char *shell);

#endif
