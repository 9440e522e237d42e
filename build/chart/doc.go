// SPDX-License-Identifier: Apache-2.0

// Package chart makes a Helm chart of the manifests of an installation. Its templates are the manifests of config/default
// with the parts replaced that values decide, so that the two cannot go apart.
package chart
