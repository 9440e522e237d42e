// SPDX-License-Identifier: Apache-2.0

// Package forecast says what a run of a rollout would do, wave by wave, by the decisions of the run itself. It is for readers without
// the memory of the controller, such as the command line.
package forecast
