// SPDX-License-Identifier: Apache-2.0

// Package certificates finds the self-signed certificates of a deployment on its cluster, as the
// tenant, and issues in memory those that are missing or due. It writes nothing; package
// certificate decides when a certificate is due.
package certificates
