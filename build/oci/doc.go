// SPDX-License-Identifier: Apache-2.0

// Package oci packs static binaries into container images from scratch, without Docker. An image holds the binary, the root
// certificates of the NSS trust store, and an unprivileged user; it is the same for the same binary.
package oci
