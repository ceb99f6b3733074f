/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Resolves names for containers that share the machine's mounts. This shared object is preloaded
 * into every program of such a container. Its getaddrinfo looks up names in the pod's hosts file
 * ($HOLDFAST_HOSTS) and passes the address to the C library's getaddrinfo. It uses only the C
 * library and keeps no state.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*getaddrinfo_fn)(const char *, const char *, const struct addrinfo *,
			      struct addrinfo **);

/* Finds the line of a hosts file that has the name, and copies the address of the line. False: no
 * line has the name. */
static int find_name(const char *name, char address[64])
{
	const char *path = getenv("HOLDFAST_HOSTS");
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[1024];
	int found = 0;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *rest = NULL;
		const char *first = strtok_r(line, " \t\n", &rest);
		const char *word;

		while (first && first[0] != '#' && !found &&
		       (word = strtok_r(NULL, " \t\n", &rest)))
			found = strcasecmp(word, name) == 0;
		if (found)
			(void)snprintf(address, 64, "%s", first);
	}
	if (file)
		(void)fclose(file);
	return found;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
						       const struct addrinfo *hints,
						       struct addrinfo **result)
{
	getaddrinfo_fn real = (getaddrinfo_fn)dlsym(RTLD_NEXT, "getaddrinfo");
	char address[64];

	if (!real)
		return EAI_SYSTEM;
	return real(name && find_name(name, address) ? address : name, service, hints, result);
}
