// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

func leavers(count int) []Leaver {
	var found []Leaver
	for i := range count {
		found = append(found, Leaver{Name: fmt.Sprintf("c%02d", i)})
	}
	return found
}

func releasedLeavers(count int) []Leaver {
	found := leavers(count)
	for i := range found {
		found[i].Released = true
	}
	return found
}

func TestDecideRemoval(t *testing.T) {
	hour := func(removed, held int32, ago time.Duration) *v1alpha1.RolloutRemovalStatus {
		return &v1alpha1.RolloutRemovalStatus{StartTime: &metav1.Time{Time: testStart.Add(-ago)}, Clusters: 40, Removed: removed, Held: held}
	}
	three := leavers(3)
	for name, tc := range map[string]struct {
		reason   string
		leavers  []Leaver
		selected int
		status   *v1alpha1.RolloutRemovalStatus
		limit    *intstr.IntOrString
		unknown  bool
		approve  []string
		deny     bool
		remove   string
		release  int
		held     bool
	}{
		"none":              {reason: "nothing leaves", selected: 40},
		"within the limit":  {reason: "10% of 40, one at once", leavers: three, selected: 37, remove: "c00"},
		"one is on its way": {reason: "the wave allows one", leavers: []Leaver{{Name: "c00", Removing: true}, {Name: "c01"}}, selected: 38},
		"one waits":         {reason: "it may be another name of a selected one", leavers: []Leaver{{Name: "c00", Waits: true}, {Name: "c01"}}, selected: 38, remove: "c01"},
		"all wait":          {reason: "as above, and they do not count", leavers: []Leaver{{Name: "c00", Waits: true}, {Name: "c01", Waits: true}}, selected: 1},
		"one is stuck":      {reason: "it keeps no others", leavers: []Leaver{{Name: "c00", Removing: true, Stuck: true}, {Name: "c01"}, {Name: "c02"}}, selected: 37, remove: "c01"},
		"too many":          {reason: "none is removed", leavers: leavers(5), selected: 35, held: true},
		"higher limit":      {reason: "raised", leavers: leavers(5), selected: 35, limit: new(intstr.FromInt32(5)), remove: "c00"},
		"all":               {reason: "whatever the limit", leavers: three, selected: 0, limit: new(intstr.FromString("100%")), held: true},
		"approved":          {reason: "exactly these", leavers: leavers(5), selected: 35, approve: []string{"c00", "c01", "c02", "c03", "c04"}, release: 5},
		"approved for less": {reason: "others", leavers: leavers(5), selected: 35, approve: []string{"c00", "c01", "c02", "c03"}, held: true},
		"half released":     {reason: "a crash in between", leavers: append(releasedLeavers(3), leavers(5)[3:]...), selected: 35, approve: []string{"c00", "c01", "c02", "c03", "c04"}, limit: new(intstr.FromInt32(1)), release: 2},
		"released":          {reason: "one at once, whatever the limit", leavers: releasedLeavers(5), selected: 35, remove: "c00"},
		"released, all":     {reason: "a user approved it", leavers: releasedLeavers(5), selected: 0, remove: "c00"},
		"others leave":      {reason: "they were not approved", leavers: append(releasedLeavers(5), Leaver{Name: "d"}, Leaver{Name: "e"}), selected: 35, status: hour(3, 0, time.Minute), remove: "c00", held: true},
		"denied":            {reason: "a denial wins", leavers: leavers(5), selected: 35, approve: []string{"c00", "c01", "c02", "c03", "c04"}, deny: true, held: true},
		"list failed":       {reason: "who is gone is not known", leavers: three, selected: 37, unknown: true},
		"slowly":            {reason: "the hour counts", leavers: three, selected: 35, status: hour(2, 0, 50*time.Minute), held: true},
		"next hour":         {reason: "another hour", leavers: three, selected: 35, status: hour(2, 0, time.Hour), remove: "c00"},
		"held for hours":    {reason: "no new hour begins while some are held", leavers: three, selected: 35, status: hour(2, 3, 5*time.Hour), held: true},
		"came back":         {reason: "nothing is held any more", selected: 38, status: hour(2, 3, 10*time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			in := &RemovalInput{
				Namespace: "fleet", Rollout: "apps", Now: testStart, Strategy: defaultStrategy(t), Removal: &v1alpha1.RolloutRemoval{Limit: tc.limit},
				Known: !tc.unknown, Selected: tc.selected, Leavers: tc.leavers, Status: tc.status,
			}
			if tc.approve != nil {
				in.Approvals = []Approval{{Name: "a", Plan: RemovalPlan("fleet", "apps", "", tc.approve)}}
			}
			if tc.deny {
				in.Approvals = append(in.Approvals, Approval{Name: "b", Plan: in.Approvals[0].Plan, Denies: true})
			}
			got, err := DecideRemoval(in)
			if err != nil || strings.Join(got.Remove, " ") != tc.remove || got.Held != tc.held || len(got.Release) != tc.release {
				t.Errorf("%s: removes %v, held %t, status %+v, %v", tc.reason, got.Remove, got.Held, got.Status, err)
			}
			if tc.held && (got.Status.Plan == "" || int(got.Status.Held) != len(slices.DeleteFunc(tc.leavers, func(l Leaver) bool { return l.Released }))) {
				t.Errorf("%s: the status is %+v", tc.reason, got.Status)
			}
		})
	}
}

// TestRemovalOrder removes the last wave first, as many at once as it allows.
func TestRemovalOrder(t *testing.T) {
	in := largeRemoval(t)
	var order []string
	for range 10 {
		got, err := DecideRemoval(in)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, strings.Join(got.Remove, "+"))
		var rest []Leaver
		for _, leaver := range in.Leavers {
			if !strings.Contains(order[len(order)-1], leaver.Name) {
				rest = append(rest, leaver)
			}
		}
		in.Leavers, in.Status = rest, got.Status
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "x b1+b2 b3 a1+a2 a3 ") {
		t.Errorf("the order is %q", got)
	}
}

func largeRemoval(t *testing.T) *RemovalInput {
	strategy := defaultStrategy(t)
	strategy.Waves = append(strategy.Waves, strategy.Waves[0])
	for i := range strategy.Waves {
		strategy.Waves[i].maxConcurrency = amount{value: 2}
	}
	return &RemovalInput{
		Now: testStart, Strategy: strategy, Removal: &v1alpha1.RolloutRemoval{Limit: new(intstr.FromInt32(50))}, Known: true, Selected: 9,
		Leavers: []Leaver{{Name: "a2"}, {Name: "a1"}, {Name: "a3"}, {Name: "b1", Wave: 1}, {Name: "b3", Wave: 1}, {Name: "b2", Wave: 1}, {Name: "x", Wave: Excluded}},
	}
}
