#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# banned_test.sh BANNED.H COMPILER…: each banned function is refused, and nothing else is.
banned=$1
shift
failed=0

# check compiles|refused CODE COMPILER…
check() {
	want=$1 code=$2
	shift 2
	got=refused
	printf '#include <%s>\n' alloca.h stdarg.h stdio.h stdlib.h string.h time.h unistd.h |
		{ cat; printf '%s\n' "$code"; } |
		"$@" -x c -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Walloca \
			-include "$banned" -S -o /dev/null - >/dev/null 2>&1 && got=compiles
	[ "$got" = "$want" ] && return
	printf '%s, not %s: %s\n' "$got" "$want" "$code"
	failed=1
}

# The headers alone, with and without what _FORTIFY_SOURCE adds, and the better functions.
check compiles 'int x;' "$@"
check compiles 'int x;' "$@" -O2 -D_FORTIFY_SOURCE=2
check compiles 'int f(char *b) { return snprintf(b, 3, "%d", 1); }' "$@"

for call in 'strcpy(b, c)' 'strcat(b, c)' 'stpcpy(b, c)' 'sprintf(b, "%d", 1)' \
	'vsprintf(b, c, ap)' 'gets(b)' 'strncpy(b, c, 3)' 'strncat(b, c, 3)' 'strtok(b, c)' \
	'rand()' 'srand(1)' 'atoi(c)' 'atol(c)' 'atoll(c)' 'atof(c)' 'tmpnam(b)' \
	'tempnam(b, c)' 'mktemp(b)' 'system(c)' 'popen(c, c)' 'alloca(3)'; do
	check refused "void f(char *b, const char *c, va_list ap);
		void f(char *b, const char *c, va_list ap)
		{ (void)b; (void)c; (void)ap; (void)($call); }" "$@"
done
check refused 'char *(*f)(char *, const char *) = strcpy;' "$@"

# Each of them is tried above.
names=$(sed -n 's/^[a-z].*[ *]\([a-z]*\)(.*/\1/p' "$banned" | sort -u)
[ -n "$names" ] || failed=1
for name in $names; do
	grep -q "[' ]$name(" "$0" || { echo "$name is not tried"; failed=1; }
done
exit $failed
