// SPDX-License-Identifier: Apache-2.0

// Package figures registers the metrics of the source controller: of the store and its server, and of
// the time spent on upstreams and storage.
package figures
