// SPDX-License-Identifier: Apache-2.0

// Package clirig runs command lines of Satchel in the process of a test: against a namespace of the shared control plane, in
// which the test plays the controllers, or without a cluster. It has the objects that such tests show, and golden files.
package clirig
