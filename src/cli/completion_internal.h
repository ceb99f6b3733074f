/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_COMPLETION_INTERNAL_H
#define HF_CLI_COMPLETION_INTERNAL_H

/* Returns the completion script for "bash", "zsh" or "fish"; NULL: the shell has another name. */
const char *hf_completion_script(const char *shell);

#endif
