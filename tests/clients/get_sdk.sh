#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# get_sdk.sh VENV: installs the unchanged Python SDK of Kubeflow Training with pip into the virtual
# environment VENV, once, and prints the path of its Python.  Exit code 1: it cannot be installed.
set -euo pipefail
venv=$1
# With a kubernetes package newer than 31, create_job of the SDK fails inside the client.
if [ ! -e "$venv/ready" ]; then
	rm -rf "$venv"
	mkdir -p "$(dirname "$venv")"
	if ! { python3 -m venv "$venv" &&
	       "$venv/bin/pip" install --quiet --disable-pip-version-check \
			'kubeflow-training==1.9.4' 'kubernetes<32'; } >"$venv.log" 2>&1; then
		echo "kubeflow-training 1.9.4 cannot be had here: $(tail -1 "$venv.log")" >&2
		exit 1
	fi
	touch "$venv/ready"
fi
echo "$venv/bin/python"
