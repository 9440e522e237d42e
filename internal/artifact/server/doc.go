// SPDX-License-Identifier: Apache-2.0

// Package server serves the artifacts of a store over HTTP: exact paths only, to the readers of their namespace. It neither
// lists nor changes what is stored, and leader election and TLS certificates are matters of the source controller.
package server
