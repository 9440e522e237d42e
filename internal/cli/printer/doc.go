// SPDX-License-Identifier: Apache-2.0

// Package printer writes values: as JSON, YAML, tables and trees for terminals, with secrets removed and hidden
// characters escaped. It knows nothing of clusters and commands.
package printer
