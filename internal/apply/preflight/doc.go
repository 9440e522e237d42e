// SPDX-License-Identifier: Apache-2.0

// Package preflight finds the permissions that an account lacks for a plan: by the rules that the API server reports
// (rules.go), by access reviews of single permissions (reviews.go), and by dry runs of roles and bindings (dryruns.go).
// The number of requests is bounded. Which permissions a bundle needs is computed by package rights.
package preflight
