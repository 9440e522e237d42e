// SPDX-License-Identifier: Apache-2.0

// Package inspect has the commands render, validate and inspect, which read a bundle and ask no cluster.
package inspect
