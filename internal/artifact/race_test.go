// SPDX-License-Identifier: Apache-2.0

//go:build race

package artifact_test

// raceDetector tells that memory says nothing.
const raceDetector = true
