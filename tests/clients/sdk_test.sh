#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# sdk_test.sh PROGRAM VENV: the unchanged Python SDK of Kubeflow Training against the plane, over
# TLS.  The SDK is installed once into VENV, a folder of the build.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"

program=$1
if ! python=$("$here/get_sdk.sh" "$2"); then
	echo 'SKIPPED: no SDK' >&2
	exit 77
fi
folder=$(mktemp -d)
trap 'stop; rm -rf "$folder"' EXIT
start "$program" "$folder/plane"
"$python" "$here/sdk_test.py"
