// SPDX-License-Identifier: Apache-2.0

// Package planning makes the plan of a BundleDeployment: it observes the cluster, and compares what it finds with the converted
// bundle. The deployment controller and previews call it, so that what is previewed is what is executed. No other package calls
// plan.Make; tests/arch checks this.
package planning
