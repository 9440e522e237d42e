// SPDX-License-Identifier: Apache-2.0

package upload

import "testing"

// TestM29Slots: no namespace holds more than half of the slots, whatever it is allowed.
func TestM29Slots(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                   string
		perNamespace, most, want int
	}{
		"Flag":     {"what is allowed is less than half", 2, 8, 2},
		"Half":     {"what is allowed is half", 4, 8, 4},
		"More":     {"what is allowed is all", 8, 8, 4},
		"Odd":      {"half is rounded down", 9, 5, 2},
		"OnlyOne":  {"or nothing could be uploaded", 5, 1, 1},
		"OnlyTwo":  {"one stays for others", 2, 2, 1},
		"Together": {"all that there are, in any namespace", 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, taken := newSlots(tc.perNamespace, tc.most), 0
			var done func()
			for {
				end, ok := s.take("a")
				if !ok {
					break
				}
				done = end
				taken++
			}
			if taken != tc.want {
				t.Errorf("%s: one namespace took %d of %d", tc.reason, taken, tc.most)
			}
			if done == nil {
				return
			}
			done()
			if _, ok := s.take("a"); !ok {
				t.Error("a slot that was given back cannot be taken")
			}
			if _, ok := s.take("b"); ok != (tc.most > taken) {
				t.Errorf("another namespace: %t", ok)
			}
		})
	}
}
