// SPDX-License-Identifier: Apache-2.0

// Package windows says when the windows of a rollout permit to start clusters, by the rules of CronJobs for time zones and schedules.
package windows

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zones

	"github.com/robfig/cron/v3"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// fiveFields is the notation of CronJobs, without @daily and the like.
var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// window is a time at which clusters may be started, or may not.
type window struct {
	deny     bool
	schedule *cron.SpecSchedule
	duration time.Duration
}

// List are the windows of a wave, checked.
type List []window

// Read checks windows. The error names each one that is wrong, as an element of a field.
func Read(field string, from []v1alpha1.RolloutWindow) (List, error) {
	var read List
	var problems []error
	for i := range from {
		one, err := readWindow(&from[i])
		if err != nil {
			problems = append(problems, fmt.Errorf("%s[%d] (%s): %w", field, i, from[i].Name, err))
		}
		read = append(read, one)
	}
	return read, errors.Join(problems...)
}

func readWindow(from *v1alpha1.RolloutWindow) (window, error) {
	zone, err := time.LoadLocation(from.TimeZone) // UTC if empty
	if err != nil || from.TimeZone == "Local" {
		return window{}, fmt.Errorf("there is no time zone %q", from.TimeZone)
	}
	if strings.ContainsAny(from.Schedule, "=@") {
		return window{}, fmt.Errorf("the schedule %q is not five fields as in a CronJob", from.Schedule)
	}
	parsed, err := fiveFields.Parse(from.Schedule)
	if err != nil {
		return window{}, fmt.Errorf("the schedule %q is not valid: %w", from.Schedule, err)
	}
	schedule, isSpec := parsed.(*cron.SpecSchedule)
	if !isSpec {
		return window{}, fmt.Errorf("the schedule %q is not five fields as in a CronJob", from.Schedule)
	}
	if from.Duration.Unread != "" || from.Duration.Duration <= 0 {
		return window{}, errors.New("its duration cannot be read")
	}
	schedule.Location = zone
	return window{deny: from.Kind == v1alpha1.WindowDeny, schedule: schedule, duration: from.Duration.Duration}, nil
}

// closes is when the window closes that is open at a time, as far as its first opening tells; zero while it is closed. A window
// is open from each time of its schedule for its duration, without the end.
func (w window) closes(at time.Time) time.Time {
	opened := w.schedule.Next(at.Add(-w.duration))
	if opened.IsZero() || opened.After(at) {
		return time.Time{}
	}
	return opened.Add(w.duration)
}

// mostSteps bounds the search for the next opening: windows that overlap for ever have none.
const mostSteps = 64

// Opening is the first time, from now on, at which the windows permit starts: now itself while they do. It is zero where
// there is no such time, or where windows overlap so often that it was not found.
func (w List) Opening(now time.Time) time.Time {
	at := now
	for range mostSteps {
		next := w.permits(at)
		if next.IsZero() || next.Equal(at) {
			return next
		}
		at = next
	}
	return time.Time{}
}

// permits is the time itself where the list permits starts then, else a later time from which it may; zero if there is none.
func (w List) permits(at time.Time) time.Time {
	allows, open := false, false
	var next time.Time
	for _, one := range w {
		closes := one.closes(at)
		switch {
		case one.deny && !closes.IsZero():
			return closes
		case one.deny:
		case !closes.IsZero():
			allows, open = true, true
		default:
			allows = true
			opens := one.schedule.Next(at)
			if !opens.IsZero() && (next.IsZero() || opens.Before(next)) {
				next = opens
			}
		}
	}
	if allows && !open {
		return next
	}
	return at
}
