// SPDX-License-Identifier: Apache-2.0

// Package view is what people are shown about deployments and sources: the pipeline of a deployment, summaries,
// pending approvals, what comes next, and how dangerous a permission is. It turns API objects into values and texts,
// and knows neither a cluster nor a terminal.
package view
