// SPDX-License-Identifier: Apache-2.0

// Package helm renders untrusted Helm charts with Helm's own library.
//
// That library loads the chart from memory, joins its values, and runs the templates. It cannot be stopped, and a chart of a
// few bytes keeps it busy for ever or has it take all memory: callers run this package in a worker process, whose CPU time and
// memory are limited. What would make two renders differ (random values, the clock, the cluster, the machine) is replaced
// here, and refused where an object depends on it. See docs/adr/0015.
package helm
