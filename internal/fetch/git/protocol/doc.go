// SPDX-License-Identifier: Apache-2.0

// Package protocol reads and writes the lines that Git's protocol is made of (gitprotocol-common(5)), and takes packs out
// of the channels in which servers send them. What a conversation consists of is a matter of package git.
package protocol
