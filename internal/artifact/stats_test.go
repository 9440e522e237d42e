// SPDX-License-Identifier: Apache-2.0

package artifact_test

import "testing"

// TestStatsOfTheCache loads the same artifact three times.
func TestStatsOfTheCache(t *testing.T) {
	s := newServed(t)
	a := s.put(t, noise(4, 1000))
	loader := newLoader(t, t.TempDir(), s.server.URL)
	for range 3 {
		content, err := loader.Load(t.Context(), owner, a)
		if err != nil {
			t.Fatal(err)
		}
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := loader.Stats(); got.Hits != 2 || got.Misses != 1 || got.Bytes != *a.Size {
		t.Errorf("the figures are %+v", got)
	}
}
