// SPDX-License-Identifier: Apache-2.0

// Package connection protects a controller from the API servers that it talks to: answers are read up to limits of bytes
// and values, and a server that does not answer in time is not asked again for a while. Which user a request impersonates
// is decided by package tenant.
package connection
