#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# get_sdk.sh VENV: the unchanged Python SDK of Kubeflow Training in a virtual environment of that
# name, put there once, by pip; prints its Python.  Exit code 1: it cannot be had.
set -euo pipefail
venv=$1
# Newer kubernetes packages than 31 break the SDK's create_job inside the client.
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
