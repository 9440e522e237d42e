// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/view"
)

// open is the first wave that is not complete; nil when all are.
func (s *Status) open() *Wave {
	for i := range s.Waves {
		if s.Waves[i].State != v1alpha1.WaveComplete {
			return &s.Waves[i]
		}
	}
	return nil
}

// nextByReason are the sentences about what happens next, where the reason decides; {wave} is the open wave.
var nextByReason = map[string]string{
	v1alpha1.ReasonSuspended:             "No cluster is started until it is resumed. What was started lands, and drift is corrected.",
	v1alpha1.ReasonMaxFailuresExceeded:   "No further cluster is started. It goes on by itself when enough of them have recovered, when maxFailures is raised, or with another revision.",
	v1alpha1.ReasonNoClusterSucceeded:    "No cluster of {wave} succeeded, so that no further one is started. It goes on when one recovers, or with another revision.",
	v1alpha1.ReasonApprovalPending:       "Clusters of {wave} are started, or the wave after it begins, when the plan is approved.",
	v1alpha1.ReasonOutsideWindow:         "Clusters of {wave} are started when the window opens.",
	v1alpha1.ReasonHeld:                  "Clusters of {wave} are suspended, wait for an approval of their own plan, or were rebuilt: rollout clusters --state Held names them.",
	v1alpha1.ReasonNoClusterReachable:    "It goes on when a cluster of {wave} can be reached.",
	v1alpha1.ReasonSoaking:               "The next one after {wave} begins when the soak time is over, and all clusters are still ready.",
	v1alpha1.ReasonMaxUnavailableReached: "It goes on when clusters of {wave} become ready, or when maxUnavailable is raised.",
}

// next says what happens without a user, or what has to happen first.
func (s *Status) next(o *v1alpha1.BundleRollout) []string {
	name := "the next wave"
	open := s.open()
	if open != nil {
		name = "wave " + view.Inline(open.Name)
	}
	switch {
	case o.Status.ObservedGeneration != o.Generation && o.Generation != 0:
		return []string{"The controller has not seen the latest change yet. If that does not end, check it: the Deployment bundle-rollout-controller."}
	case s.Outcome == Complete:
		return []string{"A new revision of the source begins with the first wave. Drift is corrected on every cluster."}
	case s.Update == nil:
		return []string{"The first wave begins when the source is ready: status source " + view.ShellWord(o.Spec.SourceRef.Name) + " says more."}
	case s.returns(o):
		return s.nextOfReturn()
	}
	if sentence, found := nextByReason[s.Reason]; found {
		return []string{strings.ReplaceAll(sentence, "{wave}", name)}
	}
	return nextOfUpdate(open)
}

func (s *Status) nextOfReturn() []string {
	switch s.Reason {
	case v1alpha1.ReasonRevisionRejected:
		return []string{"The rejected revision is not tried again before the source has another one, the spec changes, or a retry is requested."}
	case v1alpha1.ReasonSuspended:
		return []string{"No cluster is brought back until it is resumed."}
	}
	return []string{"All clusters that have another revision are brought back, as many at once as their wave allows."}
}

// nextOfUpdate is about a wave that goes on.
func nextOfUpdate(open *Wave) []string {
	if open == nil {
		return []string{"Clusters that joined late, or were unreachable, get the revision."}
	}
	left := open.Total - open.Updated - open.Updating - open.Failed - open.Unreachable
	text := fmt.Sprintf("%s of wave %s %s updated", view.Plural(int(open.Updating), "cluster"), view.Inline(open.Name), map[bool]string{true: "is being", false: "are being"}[open.Updating == 1])
	if left > 0 {
		text += fmt.Sprintf("; %d more follow", left)
	}
	return []string{text + "."}
}

// standsBy are reasons for which nothing is started anyway, so that there is nothing to stop.
var standsBy = []string{v1alpha1.ReasonMaxFailuresExceeded, v1alpha1.ReasonNoClusterSucceeded, v1alpha1.ReasonRevisionRejected}

// actions are the commands that fit the state.
func (s *Status) actions(o *v1alpha1.BundleRollout) []Action {
	at := view.ShellWord(s.Name) + " -n " + view.ShellWord(s.Namespace)
	var actions []Action
	add := func(what, command string) { actions = append(actions, Action{What: what, Command: command}) }
	open := s.open()
	if s.Reason == v1alpha1.ReasonApprovalPending && open != nil {
		add("approve it", fmt.Sprintf("rollout approve %s %s -n %s", view.ShellWord(s.Name), view.ShellWord(open.Name), view.ShellWord(s.Namespace)))
	}
	if s.Clusters != nil && s.Clusters.Failed > 0 {
		add("see failures", "rollout clusters "+at+" --state Failed")
	}
	inRun := s.Update != nil && s.Outcome != Complete && o.DeletionTimestamp.IsZero()
	actions = append(actions, s.steering(o, at, inRun)...)
	if s.Reason == v1alpha1.ReasonRevisionRejected {
		add("try again", "rollout retry "+at)
	}
	if o.Spec.Revision != "" && !inRun {
		add("follow the source", "rollout resume "+at+" --follow")
	}
	return actions
}

// steering are the commands that suspend or resume a run, or bring all clusters back.
func (s *Status) steering(o *v1alpha1.BundleRollout, at string, inRun bool) []Action {
	var actions []Action
	switch {
	case o.Spec.Suspend:
		actions = append(actions, Action{What: "resume", Command: "rollout resume " + at})
	case inRun && !slices.Contains(standsBy, s.Reason):
		actions = append(actions, Action{What: "stop now", Command: "rollout suspend " + at})
	}
	if inRun && s.Current != nil && !s.returns(o) && s.Current.Name != s.Update.Name {
		actions = append(actions, Action{What: "go back", Command: "rollout abort " + at})
	}
	return actions
}
