// SPDX-License-Identifier: Apache-2.0

package render

import "testing"

// However many deployments to other clusters are reconciled at once, their small bundles, which need no room, hold no more values
// than those of 8 did.
func TestSmallRemoteBundlesAreBoundedTogether(t *testing.T) {
	for remotely, want := range map[int]int64{0: freeValues, 1: freeValues, 8: freeValues, 64: 2500, 640: 250} {
		if got := freeRemoteValues(remotely); got != want || got*int64(remotely) > smallRemoteValues {
			t.Errorf("%d at once: up to %d values are small, want %d", remotely, got, want)
		}
	}
}
