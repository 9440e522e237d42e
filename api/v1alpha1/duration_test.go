// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// An older CRD may have stored what is no duration: it is read, kept, named,
// and harms no other object of the list.
func TestM22StoredDurations(t *testing.T) {
	tests := map[string]struct {
		reason, interval string
		want             time.Duration
		says             string
	}{
		"minutes":   {"the usual form", `"90m"`, 90 * time.Minute, ""},
		"none":      {"the default counts", `null`, 10 * time.Minute, ""},
		"days":      {"Go knows no days", `"1d"`, 10 * time.Minute, `spec.interval is "1d"`},
		"negative":  {"time does not run backwards", `"-1s"`, 10 * time.Minute, `"-1s"`},
		"endless":   {"it does not fit", `"9999999h"`, 10 * time.Minute, `"9999999h"`},
		"number":    {"another type", `5`, 10 * time.Minute, `is 5`},
		"object":    {"another type", `{"a":"b"}`, 10 * time.Minute, `{"a":"b"}`},
		"very long": {"it is not repeated in full", `"` + strings.Repeat("9", 5000) + `"`, 10 * time.Minute, `is "99`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var list v1alpha1.BundleSourceList
			raw := `{"items":[{"spec":{"interval":` + tt.interval + `}},{"spec":{"interval":"7m"}}]}`
			if err := json.Unmarshal([]byte(raw), &list); err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			read, other := &list.Items[0].Spec, &list.Items[1].Spec
			if got := effective.SourceInterval(read); got != tt.want || effective.SourceInterval(other) != 7*time.Minute {
				t.Errorf("%s: %s, and %s for the other", tt.reason, got, effective.SourceInterval(other))
			}
			err := effective.SourceProblem(read)
			if (err != nil) != (tt.says != "") || err != nil && (!strings.Contains(err.Error(), tt.says) || len(err.Error()) > 200) {
				t.Errorf("%s: %v", tt.reason, err)
			}
			if written, err := json.Marshal(list.Items[0].DeepCopy()); err != nil || tt.says != "" && !strings.Contains(string(written), tt.interval) {
				t.Errorf("%s: written as %s, %v", tt.reason, written, err)
			}
		})
	}
}

// A duration is written as it is read.
func TestDurationRoundTrip(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 90 * time.Minute, 1500 * time.Millisecond} {
		raw, err := json.Marshal(v1alpha1.Duration{Duration: d})
		var read v1alpha1.Duration
		if err != nil || json.Unmarshal(raw, &read) != nil || read.Duration != d {
			t.Errorf("%s: %s, %v", d, raw, err)
		}
	}
}

// TestDurationIsWrittenShort: manifests have durations as users write them.
func TestDurationIsWrittenShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s", 30 * time.Second: "30s", 0: "0s",
		10 * time.Hour: "10h", 1500 * time.Millisecond: "1.5s",
	} {
		if raw, err := json.Marshal(v1alpha1.Duration{Duration: d}); err != nil || string(raw) != `"`+want+`"` {
			t.Errorf("%d is written as %s, want %s (%v)", d, raw, want, err)
		}
	}
}
