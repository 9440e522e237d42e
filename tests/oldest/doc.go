// SPDX-License-Identifier: Apache-2.0

// Package oldest installs a bundle on the oldest supported version of Kubernetes, as the present API server emulates it.
package oldest
