// SPDX-License-Identifier: Apache-2.0

// Package cache keeps downloaded archives on the volume of the deployment controller, up to a number of bytes, and evicts
// those last that deployments pin. It checks digests when it opens an archive; what may be downloaded is a matter of package
// loader.
package cache
