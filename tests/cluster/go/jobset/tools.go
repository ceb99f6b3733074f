// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors

//go:build tools

// Package tools names what is built from this module.
package tools

import (
	_ "sigs.k8s.io/jobset"
)
