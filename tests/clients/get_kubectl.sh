#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# get_kubectl.sh FOLDER: prints the path of a kubectl: the machine's own, or one built from its
# Go module into FOLDER (once; about 100 MB of modules).  Exit code 1: there is no kubectl and it cannot be built.
set -euo pipefail
version=v0.34.1

if [ -x "$1/kubectl" ]; then
	echo "$1/kubectl"
	exit 0
fi
if [ -z "${HOLDFAST_BUILD_KUBECTL:-}" ] && command -v kubectl; then
	exit 0
fi
if ! command -v go >/dev/null; then
	echo "no kubectl here, and no Go to build one" >&2
	exit 1
fi
mkdir -p "$1/source"
cd "$1/source"
cat >main.go <<'END'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}
END
{
	[ -f go.mod ] || go mod init kubectl
	go get "k8s.io/kubectl@$version" "k8s.io/component-base@$version" "k8s.io/client-go@$version"
	go mod tidy
	v=k8s.io/component-base/version
	go build -p 2 -trimpath -ldflags "-s -w -X $v.gitVersion=v1${version#v0} -X $v.gitMajor=1 -X $v.gitMinor=$(cut -d. -f2 <<<"$version")" -o ../kubectl .
} >"../log" 2>&1 || { tail -3 ../log >&2; exit 1; }
echo "$1/kubectl"
