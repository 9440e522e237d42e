// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/tagversion"
	"github.com/satchel-dev/satchel/internal/view"
)

// Outcome is how far a rollout is.
type Outcome string

// Outcomes of a look at a rollout.
const (
	// Complete says that the newest revision has completed all waves.
	Complete Outcome = "Complete"
	// Moving says that it goes on without a user, and that no window has to open first.
	Moving Outcome = "Moving"
	// Standing says that it waits for a user or a window.
	Standing Outcome = "Standing"
)

// Status is how far a rollout is. Its JSON form is what rollout status -o json prints.
type Status struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State is the state in words, and Reason that of the condition RolledOut, or of Ready where the rollout is stalled.
	State   string  `json:"state"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	// Update is the revision that the waves get, and Current the last one that completed all of them.
	Update  *Revision `json:"update,omitempty"`
	Current *Revision `json:"current,omitempty"`

	Started  *metav1.Time                   `json:"started,omitempty"`
	Waves    []Wave                         `json:"waves"`
	Clusters *v1alpha1.RolloutClusterCounts `json:"clusters,omitempty"`
	Removal  string                         `json:"removal,omitempty"`
	Takeover string                         `json:"takeover,omitempty"`
	Next     []string                       `json:"next"`
	Actions  []Action                       `json:"actions,omitempty"`
}

// Revision names a revision.
type Revision struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Action is what a user may do, and the command for it without the name of the program.
type Action struct {
	What    string `json:"what"`
	Command string `json:"command"`
}

// New reads a rollout.
func New(o *v1alpha1.BundleRollout, now time.Time) Status {
	s := Status{
		Namespace: o.Namespace, Name: o.Name, Clusters: o.Status.Clusters, Update: revisionOf(o.Status.UpdateRevision),
		Current: revisionOf(o.Status.CurrentRevision), Waves: []Wave{},
	}
	if o.Status.UpdateRevision != nil {
		s.Started = o.Status.UpdateRevision.StartTime
	}
	s.judge(o)
	s.State = s.stateText(o)
	strategy, err := rollout.ReadStrategy(&o.Spec.Strategy)
	if err != nil {
		strategy = nil // the condition Ready says so
	}
	for i := range o.Status.Waves {
		s.Waves = append(s.Waves, waveOf(o, strategy, &o.Status.Waves[i], now))
	}
	if held := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.RemovalHeldCondition); held != nil && held.Status == metav1.ConditionTrue {
		s.Removal = held.Message
	}
	if waiting := o.Status.Takeover; waiting != nil {
		s.Takeover = "takes over " + plural.Of(int(waiting.Clusters), "bundledeployment") + " of a former rollout, of which waves needed an approval"
	}
	s.Next = s.next(o)
	s.Actions = s.actions(o)
	return s
}

func revisionOf(r *v1alpha1.RolloutRevision) *Revision {
	if r == nil {
		return nil
	}
	return &Revision{Name: r.Name, Version: r.Revision}
}

// String names the revision as people know it.
func (r *Revision) String() string {
	if r == nil {
		return "-"
	}
	if r.Version == "" {
		return "revision " + view.Inline(r.Name)
	}
	if version, isVersion := r.number(); isVersion {
		return version + " (" + view.Inline(r.Name) + ")"
	}
	return view.ShortOrigin(view.Inline(r.Version)) + " (" + view.Inline(r.Name) + ")"
}

// Short is the version without its digest, where there is one, else the name.
func (r *Revision) Short() string {
	if r == nil {
		return "-"
	}
	if version, isVersion := r.number(); isVersion {
		return version
	}
	return view.Inline(r.Name)
}

// aNumber is how the tags of versions begin. Branches and names of ConfigMaps say nothing about the content.
var aNumber = regexp.MustCompile(`^v?[0-9]`)

// number is the tag of a version without its digest.
func (r *Revision) number() (version string, isVersion bool) {
	version, _, hasDigest := strings.Cut(r.Version, "@")
	return view.Inline(tagversion.Text(version)), hasDigest && aNumber.MatchString(version)
}

// standing are the reasons for which a rollout waits for a user or a window.
var standing = []string{
	v1alpha1.ReasonApprovalPending, v1alpha1.ReasonOutsideWindow, v1alpha1.ReasonSuspended, v1alpha1.ReasonHeld, v1alpha1.ReasonNoClusterReachable,
	v1alpha1.ReasonNoClusterSucceeded, v1alpha1.ReasonMaxUnavailableReached, v1alpha1.ReasonMaxFailuresExceeded, v1alpha1.ReasonRevisionRejected,
}

// IsExplained tells that the waves and what happens next say all that the message does.
func (s *Status) IsExplained() bool { return slices.Contains(standing, s.Reason) }

// judge finds the reason and the outcome. A status about an older spec is no outcome.
func (s *Status) judge(o *v1alpha1.BundleRollout) {
	s.Outcome = Moving
	rolledOut := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.RolledOutCondition)
	ready := apimeta.FindStatusCondition(o.Status.Conditions, meta.ReadyCondition)
	stalled := apimeta.IsStatusConditionTrue(o.Status.Conditions, meta.StalledCondition)
	switch {
	case stalled && ready != nil:
		s.Reason = ready.Reason
		s.Message = ready.Message
		s.Outcome = Standing
	case rolledOut != nil:
		s.Reason = rolledOut.Reason
		s.Message = rolledOut.Message
		if slices.Contains(standing, s.Reason) {
			s.Outcome = Standing
		}
		if rolledOut.Status == metav1.ConditionTrue {
			s.Outcome = Complete
		}
	case ready != nil:
		s.Reason = ready.Reason
		s.Message = ready.Message
	}
	if o.Status.ObservedGeneration != o.Generation && o.Generation != 0 {
		s.Outcome = Moving
	}
}

// returns tells whether all clusters are brought back to the current revision.
func (s *Status) returns(o *v1alpha1.BundleRollout) bool { return rollout.Returns(&o.Status) }

// stateText is the state in words.
func (s *Status) stateText(o *v1alpha1.BundleRollout) string {
	update, current := s.Update.String(), s.Current.String()
	switch {
	case !o.DeletionTimestamp.IsZero():
		return "being deleted"
	case s.Update == nil && s.Message != "":
		return "waiting: " + view.OneLine(s.Message, 0)
	case s.Update == nil:
		return "the rollout controller has not seen it yet"
	case s.Outcome == Complete:
		return "complete with " + update
	case s.returns(o) && s.Reason == v1alpha1.ReasonRevisionRejected:
		return fmt.Sprintf("back at %s; %s is rejected", current, update)
	case s.returns(o):
		return fmt.Sprintf("going back to %s from %s", current, update)
	}
	text := "updating to " + update
	if word, special := stateWords[s.Reason]; special {
		text = word + " " + update
	}
	if s.Current != nil && s.Current.Name != s.Update.Name {
		text += ", from " + s.Current.Short()
	}
	return text
}

// stateWords begin the state for reasons other than progress.
var stateWords = map[string]string{
	v1alpha1.ReasonSuspended:           "suspended while updating to",
	v1alpha1.ReasonMaxFailuresExceeded: "stopped by failures while updating to",
	v1alpha1.ReasonNoClusterSucceeded:  "stopped by failures while updating to",
	v1alpha1.ReasonApprovalPending:     "waiting for an approval to update to",
	v1alpha1.ReasonOutsideWindow:       "waiting for a window to update to",
	v1alpha1.ReasonCatchingUp:          "complete; bringing late clusters to",
}
