// SPDX-License-Identifier: Apache-2.0

// Package sshremote runs git-upload-pack on a server over SSH: host keys are those of known_hosts, and nothing of this
// machine is used. It does not read what the program says.
package sshremote
