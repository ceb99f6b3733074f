// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors

package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
