// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors

//go:build tools

// Package tools names what is built from this module.
package tools

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
