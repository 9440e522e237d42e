// SPDX-License-Identifier: Apache-2.0

//go:build !race

package crdsafety_test

// raceDetector tells that time and memory say nothing.
const raceDetector = false
