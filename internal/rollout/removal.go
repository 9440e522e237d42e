// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// removalWindow is the time within which removals count for the limit.
const removalWindow = time.Hour

// Leaver is a cluster that has a BundleDeployment and is no longer selected.
type Leaver struct {
	Name string
	// Wave that it belonged to: see WaveOf. One that is not known is removed first.
	Wave int
	// Removing tells that its BundleDeployment is being deleted.
	Removing bool
	// Stuck tells that this waits for something to be corrected. It takes no place of its wave: it would keep others from being removed.
	Stuck bool
	// Released tells that its BundleDeployment has the annotation satchel.dev/rollout-released: it does not count for the limit.
	Released bool
	// Waits tells that it is not removed yet: see package identity.
	Waits bool
}

// RemovalInput is all that a decision about removals depends on.
type RemovalInput struct {
	Namespace string
	Rollout   string
	UID       string
	Now       time.Time
	Strategy  *Strategy
	Removal   *v1alpha1.RolloutRemoval
	// Known tells that all clusters could be listed. Nothing is removed otherwise.
	Known bool
	// Selected is how many clusters are selected.
	Selected  int
	Leavers   []Leaver
	Status    *v1alpha1.RolloutRemovalStatus
	Approvals []Approval
}

// RemovalDecision is which clusters are removed now.
type RemovalDecision struct {
	// Remove are clusters of which the BundleDeployment is to be deleted, after Status was recorded.
	Remove []string
	// Release are clusters that an approval is for: their BundleDeployments get the annotation satchel.dev/rollout-released, with
	// the digest of the plan. None is removed before all have it, so that the approval stays one of exactly these.
	Release []string
	// Status is the new status.removal; nil if nothing is left to tell.
	Status *v1alpha1.RolloutRemovalStatus
	// Held tells that clusters wait for a higher limit, or for the approval of Status.Plan.
	Held bool
	// Approval is the name of the approval that was used.
	Approval string
}

// DecideRemoval decides which clusters are removed. The limit counts removals since the hour began; while clusters are held, no new
// hour begins, so that a removal which is too large does not pass in parts. All are held, and none is removed, when there are
// more than the limit allows, or when no cluster would be left. An approval releases them. Removals go in the reverse order of the
// waves, as many at once as these allow.
func DecideRemoval(in *RemovalInput) (RemovalDecision, error) {
	limit, err := readAmount("spec.removal.limit", in.Removal.Limit, defaultRemovalLimit, 1)
	if err != nil {
		return RemovalDecision{}, err
	}
	waiting := slices.DeleteFunc(slices.Clone(in.Leavers), func(l Leaver) bool { return l.Removing || l.Waits })
	status := in.hour()
	if !in.Known {
		return RemovalDecision{Status: tellRemoval(status, in), Held: status.Held > 0}, nil
	}
	released := slices.DeleteFunc(slices.Clone(waiting), func(l Leaver) bool { return !l.Released })
	counted := len(waiting) - len(released)
	status.Held = 0
	status.Plan = ""
	tooMany := counted+int(status.Removed) > limit.roundedDown(int(status.Clusters), 1)
	if counted == 0 || !tooMany && in.Selected > 0 {
		decision := RemovalDecision{Remove: in.next(waiting), Status: tellRemoval(status, in)}
		for _, leaver := range waiting {
			if !leaver.Released && slices.Contains(decision.Remove, leaver.Name) {
				status.Removed++
			}
		}
		return decision, nil
	}
	status.Plan = RemovalPlan(in.Namespace, in.Rollout, in.UID, namesOf(waiting))
	status.Held = int32(counted) //nolint:gosec // at most some thousands
	if name := in.approved(status.Plan); name != "" {
		waiting = slices.DeleteFunc(waiting, func(l Leaver) bool { return l.Released })
		return RemovalDecision{Release: namesOf(waiting), Status: status, Approval: name}, nil
	}
	return RemovalDecision{Remove: in.next(released), Status: status, Held: true}, nil
}

func namesOf(clusters []Leaver) []string {
	names := make([]string, 0, len(clusters))
	for _, one := range clusters {
		names = append(names, one.Name)
	}
	return names
}

// hour is the status of the present hour: that of the last one while it lasts, or while clusters are held.
func (in *RemovalInput) hour() *v1alpha1.RolloutRemovalStatus {
	was := in.Status
	if was != nil && was.StartTime != nil && (was.Held > 0 || in.Now.Sub(was.StartTime.Time) < removalWindow) {
		status := was.DeepCopy()
		if status.StartTime.After(in.Now) { // the clock was set back
			status.StartTime.Time = in.Now
		}
		return status
	}
	clusters := int32(in.Selected + len(in.Leavers)) //nolint:gosec // at most some thousands
	return &v1alpha1.RolloutRemovalStatus{StartTime: &metav1.Time{Time: in.Now}, Clusters: clusters}
}

// tellRemoval is the status, or nil where it says nothing.
func tellRemoval(status *v1alpha1.RolloutRemovalStatus, in *RemovalInput) *v1alpha1.RolloutRemovalStatus {
	if status.Removed == 0 && status.Held == 0 && len(in.Leavers) == 0 {
		return nil
	}
	return status
}

// approved is the name of an approval of the plan; empty if there is none, or a denial.
func (in *RemovalInput) approved(plan string) string {
	name := ""
	for _, approval := range in.Approvals {
		switch {
		case approval.Plan != plan:
		case approval.Denies:
			return ""
		case !approval.Consumed && (approval.Expires.IsZero() || approval.Expires.After(in.Now)):
			name = approval.Name
		}
	}
	return name
}

// next are the clusters of the last wave that has any, as many as the wave allows beside those that are being removed.
func (in *RemovalInput) next(waiting []Leaver) []string {
	order := func(l Leaver) int {
		if l.Wave < 0 || l.Wave >= len(in.Strategy.Waves) {
			return len(in.Strategy.Waves)
		}
		return l.Wave
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.SortFunc(waiting, func(a, b Leaver) int { return cmp.Or(cmp.Compare(order(b), order(a)), cmp.Compare(a.Name, b.Name)) })
	last := order(waiting[0])
	all, removing := 0, 0
	for _, leaver := range in.Leavers {
		if order(leaver) != last {
			continue
		}
		all++
		if leaver.Removing && !leaver.Stuck {
			removing++
		}
	}
	allowed := defaultMaxConcurrency
	if last < len(in.Strategy.Waves) {
		allowed = in.Strategy.Waves[last].maxConcurrency
	}
	var names []string
	for _, leaver := range waiting {
		if order(leaver) != last || removing+len(names) >= allowed.roundedUp(all) {
			break
		}
		names = append(names, leaver.Name)
	}
	return names
}
