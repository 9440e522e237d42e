// SPDX-License-Identifier: Apache-2.0

// Package pack reads Git packs with the scanner of go-git, without an object store in memory: objects stay in the file of
// the pack, and those stored as deltas are rebuilt once into a second file. It does not know what commits and trees mean.
package pack
