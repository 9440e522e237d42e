// SPDX-License-Identifier: Apache-2.0

// Package steer holds the commands that change a BundleRollout: pause, resume, retry and abort.
package steer
