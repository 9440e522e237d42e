// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// State is what a cluster counts as.
type State string

// States of clusters.
const (
	// Starting is a cluster with a recorded start that is not seen on its BundleDeployment yet.
	Starting State = "Starting"
	// Pending is a cluster without the revision.
	Pending State = "Pending"
	// Held is a cluster that waits for a user.
	Held State = "Held"
	// Unreachable is a cluster that could not be reached for some time.
	Unreachable State = "Unreachable"
	// Updating is a cluster that was started and is not ready yet.
	Updating State = "Updating"
	// Failed is a cluster on which the revision failed, or that is overdue.
	Failed State = "Failed"
	// Updated is a cluster on which the revision is ready.
	Updated State = "Updated"
)

// Child is what was seen of the BundleDeployment of a cluster.
type Child struct {
	// Revision, SpecHash, Start and Started are the annotations that its last start wrote.
	Revision string
	SpecHash string
	Start    int64
	Started  time.Time

	Generation         int64
	ObservedGeneration int64
	Suspended          bool
	Stalled            bool
	ApprovalPending    bool
	// OtherTarget tells that its objects are in another cluster than the one that is reached.
	OtherTarget bool
	// Deleting tells that it is being deleted.
	Deleting bool
	// ClusterUID is the annotation that starts write: see StartsWith.
	ClusterUID string

	// Ready, ReadySince, Reason and Message are its condition Ready.
	Ready      bool
	ReadySince time.Time
	Reason     string
	Message    string

	// Outcome, Tried, Content and Finished are of the newest record of its history: how it ended, with which generation, which
	// digest the content had (not the file with the content), and when.
	Outcome  v1alpha1.Outcome
	Tried    int64
	Content  string
	Finished time.Time
	// LastHealthy is when any record of its history ended as healthy last; zero if none did.
	LastHealthy time.Time

	// Rejected is the revision that the BundleDeployment rolled back itself.
	Rejected string
	// Handled is the request to reconcile that was handled last.
	Handled string
}

// ChildOf reads a BundleDeployment.
func ChildOf(d *v1alpha1.BundleDeployment) *Child {
	child := &Child{
		Revision:           d.Annotations[v1alpha1.RolloutRevisionAnnotation],
		SpecHash:           d.Annotations[v1alpha1.RolloutSpecAnnotation],
		Generation:         d.Generation,
		ObservedGeneration: d.Status.ObservedGeneration,
		Suspended:          d.Spec.Suspend,
		Stalled:            apimeta.IsStatusConditionTrue(d.Status.Conditions, "Stalled"),
		Rejected:           d.Status.Rejected.Revision,
		Handled:            d.Status.LastHandledReconcileAt,
		OtherTarget:        reachesAnother(d),
		Deleting:           !d.DeletionTimestamp.IsZero(),
		ClusterUID:         d.Annotations[v1alpha1.RolloutClusterAnnotation],
	}
	child.Start, _ = strconv.ParseInt(d.Annotations[v1alpha1.RolloutStartAnnotation], 10, 64)
	child.Started, _ = time.Parse(time.RFC3339, d.Annotations[v1alpha1.RolloutStartedAnnotation])
	if ready := apimeta.FindStatusCondition(d.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		child.Ready = ready.Status == metav1.ConditionTrue
		child.ReadySince = ready.LastTransitionTime.Time
		child.Reason = ready.Reason
		child.Message = ready.Message
	}
	// A deletion that waits for a higher prune limit is no plan that waits.
	pending := apimeta.FindStatusCondition(d.Status.Conditions, v1alpha1.ApprovalPendingCondition)
	child.ApprovalPending = pending != nil && pending.Status == metav1.ConditionTrue && pending.Reason != v1alpha1.ReasonPruneHeld
	for i := range d.Status.History {
		if record := &d.Status.History[i]; record.Outcome == v1alpha1.OutcomeHealthy && record.CompletionTime != nil {
			child.LastHealthy = latest(child.LastHealthy, record.CompletionTime.Time)
		}
	}
	if len(d.Status.History) > 0 {
		newest := &d.Status.History[0]
		child.Outcome = newest.Outcome
		child.Tried = newest.Generation
		child.Content = contentDigest(newest.Revision)
		if newest.CompletionTime != nil {
			child.Finished = newest.CompletionTime.Time
		}
	}
	return child
}

// contentDigest is the digest of the content in a revision such as v1.2.3@sha256:..., which is equal for equal content. The digest of the
// artifact is that of a file, and differs when the same content is packed again.
func contentDigest(revision string) string { return revision[strings.LastIndexByte(revision, '@')+1:] }

// unreachableReasons say nothing about a revision, but that the cluster or its credentials are missing.
var unreachableReasons = []string{
	v1alpha1.ReasonClusterUnreachable, v1alpha1.ReasonClusterDenied, v1alpha1.ReasonKubeConfigNotFound, v1alpha1.ReasonKubeConfigRefused,
}

// Unreachable tells whether the BundleDeployment could not reach its cluster when it tried last.
func (c *Child) Unreachable() bool {
	return c != nil && !c.Ready && slices.Contains(unreachableReasons, c.Reason)
}

// Fact is all that is known of a cluster when a decision is made.
type Fact struct {
	Name string
	// Wave is its index in the strategy: see WaveOf.
	Wave int
	// Order is the value of the label that orderBy of its wave names.
	Order string
	// Child is its BundleDeployment, nil if there is none.
	Child *Child
	// Wanted is the hash of the spec that is rendered for the update revision, and WantedCurrent for the current one.
	Wanted        string
	WantedCurrent string
	// Invalid says why no spec can be rendered for the update revision, or why the BundleDeployment cannot be created. It is empty
	// where nothing is wrong.
	Invalid string
	// InvalidCurrent says why no spec can be rendered for the current revision, such as a Secret of the cluster that does not exist any
	// more. It is empty where nothing is wrong.
	InvalidCurrent string
	// OtherKubeConfig tells that the BundleDeployment has another kubeconfig than the one that a start writes.
	OtherKubeConfig bool
	// Duplicate tells that another name stands for the same cluster.
	Duplicate bool
	// ClusterUID is the UID of the object that stands for the cluster, a Cluster of Cluster API or a ClusterProfile; empty where
	// the cluster comes from elsewhere. ClusterCreated is when that object was created.
	ClusterUID     string
	ClusterCreated time.Time
	// UnreachableSince is since when it could not be reached without interruption; zero if it can. The transition of the
	// condition Ready is not enough, because the reason changes without it.
	UnreachableSince time.Time
}

// observed is the state of a cluster with regard to a revision.
type observed struct {
	state State
	// reason is that of the condition Ready, or why it failed.
	reason string
	// inFlight tells that it takes a place of maxConcurrency.
	inFlight bool
	// isOutdated tells of one that cannot be reached that its last start has not ended, and was of something else than it is to get.
	isOutdated bool
	// ready tells that it is available: to start it makes one more unavailable.
	ready bool
	// since is when the state began, where that is known.
	since time.Time
	// next is when the state may change without an event; zero if not.
	next time.Time
}

// aim is the revision that clusters are compared with.
type aim struct {
	name    string
	content string
	wanted  func(*Fact) string
	invalid func(*Fact) string
}

// isWith tells whether the BundleDeployment of a cluster has the revision, with the spec that is rendered now.
func (a aim) isWith(f *Fact) bool {
	return f.Child.Revision == a.name && f.Child.SpecHash == a.wanted(f)
}

// observe tells the state of a cluster. The first line that holds decides:
//
//	a start is recorded, and not seen on the BundleDeployment          Starting     in flight
//	it has two names, or is held (see isHeld)                          Held
//	it could not be reached for long enough                            Unreachable
//	no spec can be rendered                                            Failed       in flight while it moves
//	there is no BundleDeployment                                       Pending
//	it has another revision, or another spec                           Pending      in flight while it moves
//	its plan waits for an approval, or it waits for a dependency       Held
//	the controller has not seen the generation                         Updating     in flight
//	it is stalled, or rolled the content back                          Failed
//	it is ready with this content and generation for long enough       Updated
//	it is not ready, and should be                                     Failed
//	else                                                               Updating     in flight
func (d *decider) observe(f *Fact, at aim, recorded int64) observed {
	c := f.Child
	seen := c.lastSeen()
	switch {
	case recorded > 0 && (c == nil || recorded > c.Start):
		return observed{state: Starting, inFlight: true}
	case f.Duplicate:
		seen.state = Held
		seen.reason = v1alpha1.ReasonDuplicateCluster
	case f.isHeld(at):
		seen.state = Held
		if c.OtherTarget {
			seen.reason = v1alpha1.ReasonTargetChanged
		}
	case d.unreachable(f, &seen):
		seen.state = Unreachable
		seen.isOutdated = at.invalid(f) == "" && !c.hasEnded() && !at.isWith(f)
	case at.invalid(f) != "":
		seen.state = Failed
		seen.reason = v1alpha1.ReasonInvalidChild
		seen.inFlight = c != nil && d.moves(c)
	case c == nil:
		seen.state = Pending
	case !at.isWith(f):
		seen.state = Pending
		seen.inFlight = d.moves(c)
	default:
		d.observeStarted(c, at, &seen)
	}
	return seen
}

// observeStarted is the second half of the table: of clusters that have the revision.
func (d *decider) observeStarted(c *Child, at aim, seen *observed) {
	healthy := c.wasHealthy(at.content)
	settled := latest(d.seenAt(c.Started), d.seenAt(c.ReadySince), d.seenAt(c.Finished)).Add(d.in.Strategy.minReady)
	switch {
	case c.waits() && !healthy:
		seen.state = Held
	case c.ObservedGeneration != c.Generation:
		seen.state = Updating
	case c.failed(at.content):
		seen.state = Failed
	case c.Ready && healthy && !d.in.Now.Before(settled):
		seen.state = Updated
	case c.Ready && healthy:
		seen.state = Updating
		seen.next = settled
	case d.overdue(c, healthy, seen):
		seen.state = Failed
		seen.reason = v1alpha1.ReasonOverdue
	default:
		seen.state = Updating
	}
	seen.inFlight = seen.state == Updating
	// What is being updated is not available, whatever an old condition says.
	seen.ready = seen.ready && seen.state != Updating
}

// lastSeen is what the condition Ready says, if it is about the present spec.
func (c *Child) lastSeen() observed {
	if c == nil {
		return observed{}
	}
	return observed{ready: c.Ready && c.ObservedGeneration == c.Generation, reason: c.Reason, since: c.ReadySince}
}

// wasHealthy tells whether the content was ready with the present generation once.
func (c *Child) wasHealthy(content string) bool {
	return c.Outcome == v1alpha1.OutcomeHealthy && c.Tried == c.Generation && c.Content == content
}

// failed tells whether the content cannot be installed, or was rolled back.
func (c *Child) failed(content string) bool {
	return c.Stalled || content != "" && strings.HasSuffix(c.Rejected, content)
}

// isHeld tells that nothing happens until a user acts: it is suspended, or reaches another cluster than the one it installed on. With a
// kubeconfig that was corrected it is pending work, and what was seen before the last change of its spec says nothing about that.
func (f *Fact) isHeld(at aim) bool {
	c := f.Child
	switch {
	case c == nil, !c.Suspended && !c.OtherTarget:
		return false
	case c.Suspended, c.Deleting:
		return true
	case c.ObservedGeneration != c.Generation:
		return false
	}
	return !f.OtherKubeConfig || at.isWith(f)
}

// hasEnded tells whether the last start ended, in whichever way. Otherwise it goes on by itself once the cluster can be reached.
func (c *Child) hasEnded() bool { return c.Tried == c.Generation && c.Outcome != "" }

// waits tells that a user or another BundleDeployment has to act before the plan is carried out.
func (c *Child) waits() bool {
	return c.ApprovalPending || !c.Ready && (c.Reason == v1alpha1.ReasonDependencyNotReady || c.Reason == v1alpha1.ReasonApprovalPending)
}

// unreachable tells whether the cluster could not be reached for long enough.
func (d *decider) unreachable(f *Fact, seen *observed) bool {
	if f.Child == nil || f.UnreachableSince.IsZero() {
		return false
	}
	seen.since = f.UnreachableSince
	seen.next = latest(d.seenAt(f.UnreachableSince), d.in.Began).Add(d.in.Strategy.unreachableAfter)
	return !d.in.Now.Before(seen.next)
}

// overdue tells whether the cluster is not ready and should be. The time counts from the start, or from when it stopped to be
// ready; and not before this process began, which has not watched it before.
func (d *decider) overdue(c *Child, wasHealthy bool, seen *observed) bool {
	if c.Ready {
		return false
	}
	since := c.Started
	if wasHealthy {
		since = c.ReadySince
	}
	deadline := latest(d.seenAt(since), d.in.Began).Add(d.in.Strategy.progressDeadline)
	if seen.next.IsZero() || deadline.Before(seen.next) {
		seen.next = deadline
	}
	return !d.in.Now.Before(deadline)
}

// mostSkew is how far the clocks of two processes may be apart.
const mostSkew = time.Minute

// seenAt is a time that any process recorded, or Began if it is too far in the future: a clock was set back since.
func (d *decider) seenAt(recorded time.Time) time.Time {
	if recorded.After(d.in.Now.Add(mostSkew)) {
		return d.in.Began
	}
	return recorded
}

// moves tells whether a BundleDeployment with another revision, or another spec, is still being updated to it.
func (d *decider) moves(c *Child) bool {
	switch {
	case c.Suspended, c.Stalled && c.ObservedGeneration == c.Generation, c.waits():
		return false
	case c.ObservedGeneration != c.Generation:
		return true
	case c.Ready:
		return c.Outcome == "" || c.Tried != c.Generation
	}
	// One that was ready with this generation has landed: it is not started with another revision without a place of its own.
	wasHealthy := c.Outcome == v1alpha1.OutcomeHealthy && c.Tried == c.Generation
	return !wasHealthy && !d.overdue(c, wasHealthy, new(observed))
}

// latest is the latest of some times.
func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
