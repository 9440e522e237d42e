// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

func allow(schedule string, length time.Duration, zone string) v1alpha1.RolloutWindow {
	return v1alpha1.RolloutWindow{Name: "a", Kind: v1alpha1.WindowAllow, Schedule: schedule, Duration: v1alpha1.Duration{Duration: length}, TimeZone: zone}
}

func deny(schedule string, length time.Duration, zone string) v1alpha1.RolloutWindow {
	one := allow(schedule, length, zone)
	one.Kind = v1alpha1.WindowDeny
	return one
}

// TestOpening is R11: when starts are permitted next. Times are in UTC.
func TestOpening(t *testing.T) {
	const amsterdam, newYork, kathmandu, lordHowe = "Europe/Amsterdam", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"
	nights := allow("0 22 * * 1-5", 6*time.Hour, amsterdam)
	for name, tc := range map[string]struct {
		reason  string
		windows []v1alpha1.RolloutWindow
		now     string
		want    string // empty for never
	}{
		"no window":             {"all times are permitted", nil, "2026-05-04T12:00:00Z", "2026-05-04T12:00:00Z"},
		"before":                {"a Monday in summer", []v1alpha1.RolloutWindow{nights}, "2026-05-04T12:00:00Z", "2026-05-04T20:00:00Z"},
		"first moment":          {"the beginning is inside", []v1alpha1.RolloutWindow{nights}, "2026-05-04T20:00:00Z", "2026-05-04T20:00:00Z"},
		"over midnight":         {"Saturday morning is of Friday", []v1alpha1.RolloutWindow{nights}, "2026-05-09T01:59:59Z", "2026-05-09T01:59:59Z"},
		"end":                   {"the end is outside; Saturday and Sunday have none", []v1alpha1.RolloutWindow{nights}, "2026-05-09T02:00:00Z", "2026-05-11T20:00:00Z"},
		"winter":                {"another offset", []v1alpha1.RolloutWindow{nights}, "2026-11-23T12:00:00Z", "2026-11-23T21:00:00Z"},
		"hour that is skipped":  {"clocks go from 2:00 to 3:00 on 29 March: no 2:30, as for a CronJob", []v1alpha1.RolloutWindow{allow("30 2 * * *", time.Minute, amsterdam)}, "2026-03-29T00:00:00Z", "2026-03-30T00:30:00Z"},
		"hour that comes twice": {"2:30 on 25 October", []v1alpha1.RolloutWindow{allow("30 2 * * *", time.Minute, amsterdam)}, "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z"},
		"over the change":       {"6 hours are 6 hours, though clocks go forward", []v1alpha1.RolloutWindow{allow("0 0 29 3 *", 6*time.Hour, amsterdam)}, "2026-03-29T04:59:59Z", "2026-03-29T04:59:59Z"},
		"over the change, end":  {"7:00 by the clock", []v1alpha1.RolloutWindow{allow("0 0 29 3 *", 6*time.Hour, amsterdam)}, "2026-03-29T05:00:00Z", "2027-03-28T22:00:00Z"},
		"another zone":          {"New York changes on other days", []v1alpha1.RolloutWindow{allow("0 9 * * *", time.Hour, newYork)}, "2026-03-20T00:00:00Z", "2026-03-20T13:00:00Z"},
		"quarter of an hour":    {"Kathmandu is 5:45 ahead", []v1alpha1.RolloutWindow{allow("0 9 * * *", time.Hour, kathmandu)}, "2026-03-20T00:00:00Z", "2026-03-20T03:15:00Z"},
		"half an hour":          {"Lord Howe goes back by 30 minutes on 5 April", []v1alpha1.RolloutWindow{allow("0 9 * * *", time.Hour, lordHowe)}, "2026-04-05T00:00:00Z", "2026-04-05T22:30:00Z"},
		"leap day":              {"the next one is in 2028", []v1alpha1.RolloutWindow{allow("0 0 29 2 *", time.Hour, "")}, "2026-05-04T12:00:00Z", "2028-02-29T00:00:00Z"},
		"never":                 {"there is no such day", []v1alpha1.RolloutWindow{allow("0 0 30 2 *", time.Hour, "")}, "2026-05-04T12:00:00Z", ""},
		"denied":                {"Deny wins", []v1alpha1.RolloutWindow{allow("* * * * *", time.Hour, ""), deny("0 12 * * *", 2*time.Hour, "")}, "2026-05-04T12:30:00Z", "2026-05-04T14:00:00Z"},
		"denied alone":          {"all other times are permitted", []v1alpha1.RolloutWindow{deny("0 12 * * *", 2*time.Hour, "")}, "2026-05-04T11:59:59Z", "2026-05-04T11:59:59Z"},
		"denied at the opening": {"the rest of the window", []v1alpha1.RolloutWindow{nights, deny("0 21 4 5 *", 2*time.Hour, amsterdam)}, "2026-05-04T12:00:00Z", "2026-05-04T21:00:00Z"},
		"denied till its end":   {"the next night", []v1alpha1.RolloutWindow{nights, deny("0 21 4 5 *", 12*time.Hour, amsterdam)}, "2026-05-04T12:00:00Z", "2026-05-05T20:00:00Z"},
		"denied for ever":       {"it opens again before it closes", []v1alpha1.RolloutWindow{deny("* * * * *", time.Hour, "")}, "2026-05-04T12:00:00Z", ""},
		"two windows":           {"the first of both", []v1alpha1.RolloutWindow{nights, allow("0 15 * * *", time.Hour, "")}, "2026-05-04T12:00:00Z", "2026-05-04T15:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			read, err := Read("windows", tc.windows)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if opens := read.Opening(now); !opens.IsZero() {
				got = opens.UTC().Format(time.RFC3339)
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWindowsAreRefused(t *testing.T) {
	for want, from := range map[string]v1alpha1.RolloutWindow{
		`windows[0] (a): there is no time zone "Europe/Atlantis"`:                  allow("0 0 * * *", time.Hour, "Europe/Atlantis"),
		`windows[0] (a): there is no time zone "Local"`:                            allow("0 0 * * *", time.Hour, "Local"),
		`windows[0] (a): the schedule "61 0 * * *" is not valid`:                   allow("61 0 * * *", time.Hour, ""),
		`windows[0] (a): the schedule "0 0 * *" is not valid`:                      allow("0 0 * *", time.Hour, ""),
		`windows[0] (a): the schedule "@daily" is not five fields as in a CronJob`: allow("@daily", time.Hour, ""),
		`windows[0] (a): the schedule "TZ=U 0 0 * * *" is not five fields`:         allow("TZ=U 0 0 * * *", time.Hour, ""),
		`windows[0] (a): its duration cannot be read`:                              allow("0 0 * * *", 0, ""),
	} {
		if _, err := Read("windows", []v1alpha1.RolloutWindow{from}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// FuzzWindow is R11: no schedule panics, an opening is open, and the search takes about a millisecond.
func FuzzWindow(f *testing.F) {
	f.Add("0 22 * * 1-5", "Europe/Amsterdam", int64(3600), int64(0), false)
	f.Add("*/5 0-3,22 ? JAN mon-fri", "", int64(1), int64(1e9), true)
	f.Add("TZ=0", "UTC", int64(60), int64(0), false)
	f.Add("0 0 30 2 *", "Asia/Kathmandu", int64(31536000), int64(1774746000), true)
	f.Fuzz(func(t *testing.T, schedule, zone string, seconds, at int64, denies bool) {
		if len(schedule) > 128 || len(zone) > 64 || seconds < 1 || seconds > 31536000 || at < 0 || at > 4e9 {
			t.Skip()
		}
		one := allow(schedule, time.Duration(seconds)*time.Second, zone)
		if denies {
			one.Kind = v1alpha1.WindowDeny
		}
		read, err := Read("windows", []v1alpha1.RolloutWindow{one})
		if err != nil {
			return
		}
		began := time.Now()
		opens := read.Opening(time.Unix(at, 0))
		if took := time.Since(began); took > 100*time.Millisecond { // a busy machine
			t.Errorf("it took %s", took)
		}
		if !opens.IsZero() && !read.permits(opens).Equal(opens) {
			t.Errorf("%q: %s is not open", schedule, opens)
		}
	})
}

func BenchmarkOpening(b *testing.B) {
	read := mustWindows(allow("0 22 * * 1-5", 6*time.Hour, "Europe/Amsterdam"), deny("* * * * *", time.Hour, "America/New_York"))
	for b.Loop() {
		read.Opening(testStart)
	}
}

var testStart = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func mustWindows(from ...v1alpha1.RolloutWindow) List {
	read, err := Read("windows", from)
	if err != nil {
		panic(err)
	}
	return read
}
