# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# Helpers for tools/dev.d/NAME, which runs in the root of the tree. The help of a verb is its line
# "# dev: NAME …" and the lines "# …" directly below.

verb_usage() {
	sed -n '/^# dev: /,/^[^#]/{s/^# dev: /usage: .\/dev /p;s/^#   /  /p}' \
		"tools/dev.d/${0##*/}"
}

# verb_help ARG…: if -h or --help is among the arguments, prints the usage and exits.
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

# verb_wrong TEXT: prints an error about the command line and the usage, and exits with 2.
verb_wrong() {
	printf 'dev: %s\n' "$1" >&2
	verb_usage >&2
	exit 2
}

# verb_compiler NAME: prints the command for a compiler, with ccache if that is installed.
verb_compiler() {
	if command -v ccache >/dev/null; then
		printf 'ccache %s\n' "$1"
	else
		printf '%s\n' "$1"
	fi
}

# verb_build_sim TARGET…: builds in build-sim, optimized, with asserts and without sanitizers.
# simulator is all programs of tests/sim, tests/sim/NAME is one.
verb_build_sim() {
	tools/configure build-sim --buildtype=release && ninja -C build-sim "$@"
}
