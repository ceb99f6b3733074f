#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# get_prometheus.sh FOLDER: prints a folder with prometheus and promtool: that of the machine's own, or
# FOLDER/usr/bin, into which the programs of Debian's package are unpacked (once; 20 MB to download). The
# package is not installed, because it would start a server. Exit code 1: neither can be had.
set -euo pipefail

if [ -x "$1/usr/bin/prometheus" ]; then
	echo "$1/usr/bin"
	exit 0
fi
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
	dirname "$(command -v prometheus)"
	exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "no prometheus here, and no apt-get to download its package" >&2
	exit 1
fi
mkdir -p "$1"
temporary=$(mktemp -d "$1/get.XXXXXX")
trap 'rm -rf "$temporary"' EXIT
# The package's signature is checked by apt-get.
(cd "$temporary" && apt-get -qq download prometheus >log 2>&1) || { tail -3 "$temporary/log" >&2; exit 1; }
dpkg-deb -x "$temporary"/prometheus_*.deb "$temporary/root"
mkdir -p "$1/usr/bin"
mv "$temporary/root/usr/bin/promtool" "$temporary/root/usr/bin/prometheus" "$1/usr/bin"
echo "$1/usr/bin"
