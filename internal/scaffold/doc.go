// SPDX-License-Identifier: Apache-2.0

// Package scaffold makes the files of a bundle out of what an author has: manifests, a folder of a known format, a
// project of Operator SDK, or nothing yet. It reads what it is given and writes nowhere.
package scaffold
