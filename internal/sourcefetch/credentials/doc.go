// SPDX-License-Identifier: Apache-2.0

// Package credentials reads the Secrets that a source references, in its namespace only, and turns them into what adapters
// take: logins, certificates, proxies and verifiers. It notes which versions it read. It connects to no upstream.
package credentials
