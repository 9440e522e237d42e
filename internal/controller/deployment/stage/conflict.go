// SPDX-License-Identifier: Apache-2.0

package stage

import "time"

// FieldConflict is about an object that another client changes again after each repair.
type FieldConflict struct {
	Rounds int
	Last   time.Time
	Who    string // the difference in words; "" until there were ConflictRounds repairs
}

const (
	// ConflictRounds is how many repairs in a row make a conflict.
	ConflictRounds = 3
	// conflictWindow is the longest time between a repair and a change that counts as a
	// reaction to it.
	conflictWindow = 30 * time.Second
)

// Pause is how long an object is not repaired again: from the third round on, and
// longer each time.
func (f FieldConflict) Pause(longest time.Duration) time.Duration {
	if f.Rounds < ConflictRounds {
		return 0
	}
	return min(4*time.Second<<min(f.Rounds-ConflictRounds, 20), longest)
}

// Continues tells whether a change at this time belongs to the conflict.
func (f FieldConflict) Continues(now time.Time, longest time.Duration) bool {
	return now.Sub(f.Last) <= conflictWindow+2*f.Pause(longest)
}
