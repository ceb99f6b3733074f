# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A real Kubernetes on one machine, for tests: see ../README.md."""
