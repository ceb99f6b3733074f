#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# man_test.sh HOLDFAST: there is a man page for every verb, without errors, and meson.build names all of them.
set -uo pipefail
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
program=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

if ! command -v scdoc >/dev/null; then
	echo 'scdoc is not installed, so no man page was made'
	exit 0
fi
mapfile -t verbs < <(sed -n "/^  verbs = \[/,/\]/p" "$root/meson.build" | grep -o "'[a-z-]*'" | tr -d "'")
pages_of_meson() { "$root/tools/man-pages" "$program" "$dir" "${verbs[@]}" && ls "$dir"; }
lint() { local page; for page in "$dir"/*.1; do mandoc -T lint -W error "$page" || return 1; done; echo no errors; }
text_of() { mandoc -T utf8 "$dir/$1" | sed 's/.\x08//g'; }

expect 'each verb of meson.build has a page' 'holdfast-plot.1.*holdfast-run.1.*holdfast.1' pages_of_meson
refuse 'another list is an error' 'meson.build names the verbs nosuch run; the program has agent' \
	"$root/tools/man-pages" "$program" "$dir" run nosuch
if command -v mandoc >/dev/null; then
	expect 'mandoc finds no error' '^no errors' lint
	expect 'a page has the usage, the flags with their defaults, and the examples' \
		'holdfast run FILE .*--timeout SPAN.*\(default:[[:space:]]+0\).*EXAMPLES.*holdfast run --nproc 2 train.py' text_of holdfast-run.1
	expect 'the first page lists the verbs and the exit codes' \
		'holdfast-why\(1\).*EXIT STATUS.*124.*HOLDFAST_DIR' text_of holdfast.1
fi
finish
