// SPDX-License-Identifier: Apache-2.0

// Package helm renders Helm charts that nobody vouches for, with Helm's own library.
//
// That library loads the chart from memory, joins its values and prepares what each template sees. The templates
// themselves are run here, by the same text/template, since Helm's engine cannot be stopped: a chart of a few bytes keeps
// it busy for ever or has it take all memory. Every node of a template that is run counts against a budget, and so does
// every byte that is made; both are counted, not timed, so that the same chart is refused everywhere or nowhere. What
// would make two renders differ (random values, the clock, the cluster, the machine) is refused where it is run.
package helm
