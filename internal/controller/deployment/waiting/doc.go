// SPDX-License-Identifier: Apache-2.0

// Package waiting remembers what deployments wait for: names in their namespace, and kinds that their
// cluster does not serve yet.
package waiting
