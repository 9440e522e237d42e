// SPDX-License-Identifier: Apache-2.0

package protocol

// Service is the program of a Git server that sends packs.
const Service = "git-upload-pack"

// Agent is the user agent of requests; some servers serve Git only to names like this.
const Agent = "git/2.40.0-satchel"

// VersionTwo offers version 2 of the protocol (gitprotocol-v2(5)).
const VersionTwo = "version=2"
