#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# mpi_test.sh HOLDFAST: runs the MPIJob example with this machine's mpirun.
set -uo pipefail
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
program=$1
examples=$(dirname "$0")/../../examples
dir=$(mktemp -d)
export HOLDFAST_DIR=$dir/state
trap 'rm -rf "$dir"' EXIT
if ! command -v mpirun >/dev/null || ! /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
	echo "SKIPPED: needs openmpi-bin and python3-mpi4py"
	exit 77
fi

expect "lint finds nothing to say" "" "$program" lint "$examples/mpi-pi.yaml"
expect "both ranks compute" "rank 1 of 2 on mpi-pi-worker-1: pi is 3.14159" \
	"$program" run "$examples/mpi-pi.yaml"
finish
