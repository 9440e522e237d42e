// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"
	"time"
)

// Duration is a length of time, such as 90s, 10m or 1h30m.
//
// An invalid value is kept as it was written. The CRDs refuse one, but an older or
// changed CRD may have accepted it, and one object that cannot be decoded would keep
// the controllers from listing all the others.
//
// The rules are those of every field of this type; a field may add a lower maximum.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be a duration such as 90s, 10m or 1h30m, between 1s and 8760h"
type Duration struct {
	// Duration is 0 when there is none, or when it cannot be read.
	Duration time.Duration `json:"-"`
	// Unread is JSON that is no duration; mostly empty.
	Unread string `json:"-"`
}

// UnmarshalJSON reads any JSON value.
func (d *Duration) UnmarshalJSON(data []byte) error {
	*d = Duration{}
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		if d.Duration, err = time.ParseDuration(text); err == nil && d.Duration >= 0 {
			return nil
		}
	}
	if string(data) != "null" {
		*d = Duration{Unread: string(data)}
	}
	return nil
}

// MarshalJSON writes the duration as a user would, such as 1h, or what was read in its place.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d.Unread != "" {
		return []byte(d.Unread), nil
	}
	text := d.Duration.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return json.Marshal(text)
}
