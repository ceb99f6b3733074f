/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs a harness with every file of a folder as input. The files are seeds, and inputs that once
 * failed; so builds without libFuzzer run them as regression tests. */

#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_BYTES_MAX (1 << 20)

static int replay(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *data = malloc(INPUT_BYTES_MAX);
	size_t size;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path) || !data)
		return 1;
	file = fopen(path, "rb");
	if (!file) {
		perror(path);
		free(data);
		return 1;
	}
	size = fread(data, 1, INPUT_BYTES_MAX, file);
	fclose(file);
	/* Allocate exactly the size of the file, so that the sanitizer finds a read past its
	 * end. */
	uint8_t *exact = realloc(data, size ? size : 1);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	int bad = 0, count = 0;

	if (!dir) {
		fprintf(stderr, "usage: replay FOLDER\n");
		return 2;
	}
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.') {
			bad |= replay(argv[1], entry->d_name);
			count++;
		}
	closedir(dir);
	printf("%d inputs\n", count);
	return bad || count == 0;
}
