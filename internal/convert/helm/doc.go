// SPDX-License-Identifier: Apache-2.0

// Package helm renders untrusted Helm charts with Helm's own library.
//
// That library loads the chart from memory, joins its values, and runs the templates. It cannot be stopped, and a chart of a
// few bytes can use CPU time without end or exhaust the memory: callers run this package in a worker process with limited CPU
// time and memory. Everything that makes two renders differ (random values, the clock, the cluster, the machine) is replaced
// here, and refused where an object depends on it. See docs/adr/0015.
package helm
