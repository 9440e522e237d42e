// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/convert"
)

// subject is the deployment that is reconciled. Only its status changes during a reconcile.
type subject struct {
	object *v1alpha1.BundleDeployment
	before *v1alpha1.BundleDeployment // as it was when the reconcile began
	stored *v1alpha1.BundleDeployment // as the API server has it
	owner  inventory.Owner
	home   string // namespace of the CA, if it is not the deployment's
	// hashKey makes the hashes in the status, which holds it as wrappedKey.
	hashKey    []byte
	wrappedKey string
	// rules evaluate the health of objects; rulesErr says why they are invalid.
	rules    health.Rules
	rulesErr error
	// room is how much the inventory may take in the status.
	room inventory.Limit
	now  time.Time
	// keeping: this is drift correction of the last applied revision, while a newer one fails.
	keeping bool
}

// listing is the inventory. Every stage that writes objects changes it by state.record.
type listing struct {
	inventory inventory.Inventory // what the status lists, and later what the cluster holds
	// unreadable: the inventory in the status cannot be read, and the deployment is being
	// deleted.
	unreadable bool
	// recovered is the rebuilt part of a lost inventory; nil if it was not lost.
	recovered *observe.Recovered
}

// resolved says what is to be installed, where and with which permissions: the result of the
// steps from account to decide.
type resolved struct {
	access   resolve.Access
	source   *resolve.Origin
	artifact *meta.Artifact
	// rejected is the artifact of the source while its revision is rejected and artifact
	// is that of the last healthy one; nil otherwise. sourceOwner is the owner of the
	// rejected one. lifted: the rejection ended in this reconcile.
	rejected    *meta.Artifact
	sourceOwner artifact.Owner
	lifted      bool
	inputs      inputs // Secrets and ConfigMaps for the conversion
	// unapproved: the spec waits for an approval, so only the approved settings apply.
	unapproved bool
	found      drift.Findings // what watches reported
	// due: the objects have to be compared with the cluster, not only their health.
	due bool
}

// rendered is the revision as objects: the result of the steps load, convert and certify.
type rendered struct {
	content *loader.Content // the unpacked artifact, until the conversion takes it over
	// capabilities of the cluster that a chart asked for; nil for none.
	capabilities *v1alpha1.Capabilities
	release      func() // releases the room of desired; nil when none is held
	// desired are the objects of the revision, once converted.
	desired []*unstructured.Unstructured
	ranks   map[inventory.ID]int // of desired: see observe.Request
	hooks   []plan.Hook          // of the revision
	// wanted are the certificates that desired mounts and trusts, and issued the result
	// of certify; nil while none is wanted or certify did not run.
	wanted []convert.Certificate
	issued *certificates.Issuance
	// requires are the requirements of the bundle, and contains its package.
	requires []convert.Requirement
	contains convert.Package

	approval.Substance // of desired
}

// decided is the plan and what is known about it: the result of the steps plan to approve.
type decided struct {
	consent  *approval.Consent
	plan     *plan.Plan
	observed map[inventory.ID]ownership.Live // the live objects that the plan was made from
	compared bool                            // drift lists differences that are not corrected
	drift    []string
	// tried: some dry runs passed and need not be repeated.
	tried bool
	// leftOut lists the objects of the last applied revision that cannot be compared with
	// the cluster or corrected, and why.
	leftOut []string
}

// delivered is what was written: the result of the steps repair, and hooks to apply, of prune, and of
// a removal.
type delivered struct {
	unbegun  before // the status before the plan was begun
	applied  *apply.Result
	repaired *driftRepair // the repair of objects reported by watches, without a full comparison
	// waitsFor says what an unfinished apply waits for, such as a CRD that is not
	// established yet.
	waitsFor string
	phase    *apply.PhaseWait // the earlier phases that must become healthy first
	// hookAt is the hook that an apply waits for.
	hookAt *hookWait
	// hookEntries are the inventory entries that hooks added; nil for those that they
	// removed.
	hookEntries map[inventory.ID]*inventory.Entry
	pruned      *removal.Pruned
	removed     *removal.Removed
	cut         cut // the turn ended because its budget was used up
}

// settled is how the objects fare: the result of the steps health and post-hooks, and of what
// follows the last step.
type settled struct {
	health *health.Report
	// hookWaits names the hook that is waited for once everything is applied; hookFailed:
	// one failed in this reconcile.
	hookWaits  string
	hookFailed bool
	gaps       []drift.Gap // collections that are not watched
	// rejectedNow: the revision was rejected in this reconcile.
	rejectedNow bool
}
