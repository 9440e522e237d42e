// SPDX-License-Identifier: Apache-2.0

// Package bench measures the deployment controller beside a bare loop of
// server-side applies over the same objects, in one run on one control plane:
//
//	go test -run '^$' -bench . -benchtime 1x ./tests/bench
//
// A scaled-down run with the requests counted belongs to every test run.
package bench
