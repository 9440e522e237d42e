// SPDX-License-Identifier: Apache-2.0

// Package links names the links of an upstream, which are not followed: which of them look like files of a bundle, and how an archive
// and a user are told of them.
package links
