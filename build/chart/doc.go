// SPDX-License-Identifier: Apache-2.0

// Package chart makes a Helm chart of the manifests of an installation. Its templates are the manifests of config/default
// in which chart values set the variable parts, so that the two cannot diverge.
package chart
