// SPDX-License-Identifier: Apache-2.0

// Package catalog has the commands catalog: what local catalogs have, their upgrade graphs, and their problems.
package catalog
