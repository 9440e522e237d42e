// SPDX-License-Identifier: Apache-2.0

// Package commands measures how long the commands of satchel take on a cluster with many
// deployments. The statuses are written by the test, so that no controller is needed:
//
//	SATCHEL_FULL=1 go test -count=1 -v -timeout 30m -run TestCommands ./tests/bench/commands
//
// prints the median wall time of each command of the built binary against 1,000 deployments
// in one namespace. A scaled-down run belongs to every test run. Each command has a line in
// the table, or one that says why it is not measured.
package commands
