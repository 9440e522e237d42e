// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"fmt"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// orDefault guards against objects that were stored before the CRD set a default.
func orDefault(d v1alpha1.Duration, fallback time.Duration) time.Duration {
	if d.Duration <= 0 {
		return fallback
	}
	return d.Duration
}

// longestShown is how much of what is no duration an error repeats.
const longestShown = 40

// problem says what is wrong with the duration of a field; nil when nothing is.
func problem(field string, d v1alpha1.Duration) error {
	if d.Unread == "" {
		return nil
	}
	return fmt.Errorf("%s is %.*s, which is no duration: write it as 90s, 10m or 1h30m", field, longestShown, d.Unread)
}
