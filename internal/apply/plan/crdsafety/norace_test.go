// SPDX-License-Identifier: Apache-2.0

//go:build !race

package crdsafety_test

// raceDetector tells that measured time and memory are meaningless.
const raceDetector = false
