// SPDX-License-Identifier: Apache-2.0

// Package artifacts has the command artifact: what an artifact in the cluster holds.
package artifacts
