// SPDX-License-Identifier: Apache-2.0

// Package session runs the command line as a person would, from seeing that something is
// wrong to knowing who signed what runs, and keeps what it printed as a transcript.
package session
