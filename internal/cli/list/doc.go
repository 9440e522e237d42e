// SPDX-License-Identifier: Apache-2.0

// Package list is the command get: tables of objects, their changes as they happen, and the output formats of kubectl.
package list
