#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# sdk_test.sh PROGRAM VENV: the unchanged Python SDK of Kubeflow Training against the plane, over
# TLS.  VENV is a folder of the build; the SDK is put there once, by pip.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"

program=$1
venv=$2
# Newer kubernetes packages than 31 break the SDK's create_job inside the client.
if [ ! -e "$venv/ready" ]; then
	rm -rf "$venv"
	if ! { python3 -m venv "$venv" &&
	       "$venv/bin/pip" install --quiet --disable-pip-version-check \
			'kubeflow-training==1.9.4' 'kubernetes<32'; } >"$venv.log" 2>&1; then
		echo "SKIPPED: kubeflow-training 1.9.4 cannot be had here: $(tail -1 "$venv.log")" >&2
		exit 77
	fi
	touch "$venv/ready"
fi
folder=$(mktemp -d)
trap 'stop; rm -rf "$folder"' EXIT
start "$program" "$folder/plane"
"$venv/bin/python" "$here/sdk_test.py"
