// SPDX-License-Identifier: Apache-2.0

// Package steer holds the commands that change a BundleRollout: suspend, resume, retry, abort and approve.
package steer
