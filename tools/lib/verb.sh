# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# For tools/dev.d/NAME, from the root of the tree: what a verb says of itself.  Its help is its
# line "# dev: NAME …", and the lines "#   …" right below.

verb_usage() {
	sed -n '/^# dev: /,/^[^#]/{s/^# dev: /usage: .\/dev /p;s/^#   /  /p}' \
		"tools/dev.d/${0##*/}"
}

# verb_help ARG…: with -h or --help among them, say how it is used and end.
verb_help() {
	local arg
	for arg in "$@"; do
		case "$arg" in
		-h | --help)
			verb_usage
			exit 0
			;;
		esac
	done
}

# verb_wrong TEXT: it cannot be used like that.
verb_wrong() {
	printf 'dev: %s\n' "$1" >&2
	verb_usage >&2
	exit 2
}

# verb_compiler NAME: how to call it, through ccache where that is there.
verb_compiler() {
	if command -v ccache >/dev/null; then
		printf 'ccache %s\n' "$1"
	else
		printf '%s\n' "$1"
	fi
}

# verb_build_sim TARGET…: programs of tests/sim in build-sim, optimized, with asserts and without sanitizers
verb_build_sim() {
	tools/configure build-sim --buildtype=release && ninja -C build-sim "${@/#/tests/sim/}"
}
