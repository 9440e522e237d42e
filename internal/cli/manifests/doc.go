// SPDX-License-Identifier: Apache-2.0

// Package manifests reads the files of the flag -f: a BundleDeployment, and what it refers to. It validates them by the CRDs,
// so that a manifest that it accepts is accepted by an API server.
package manifests
