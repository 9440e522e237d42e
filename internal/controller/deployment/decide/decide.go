// SPDX-License-Identifier: Apache-2.0

// Package decide makes the plan of a revision and checks it: against the rules, the permissions of the ServiceAccount, the
// API server, which tries the writes, and the approvals. It writes to no object of a bundle.
package decide

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/handover"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/deployment/waiting"
)

// Judge judges the upgrade of a CRD.
type Judge func(ctx context.Context, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error)

// Stage is what deciding needs beside its input.
type Stage struct {
	Reader    client.Reader // of other deployments
	Approvals approval.Approvals
	Watches   *drift.Hub
	// Judge returns the judge for the CRDs of a namespace.
	Judge func(namespace string) Judge
	// Kinds are those that optional objects wait for.
	Kinds *waiting.Kinds
	// Progress remembers the dry runs that passed in earlier turns, and in a reconcile from an outdated copy.
	Progress *budget.Progress
	// Offers finds packages of the catalogs that a namespace sees which provide what a plan lacks. What it does not find is left out.
	Offers func(ctx context.Context, namespace string, needs []requirement.Need) map[requirement.Need][]requirement.Offer
	// Handover learns which objects a refused plan wants of other deployments.
	Handover *handover.Index
	// Awaited are the names of the packages that deployments require.
	Awaited waiting.Names
	// Blocked are the names of the deployments that would lose what they require by a plan that is refused for that.
	Blocked waiting.Names
}

// Forget drops what is remembered of a deployment.
func (st *Stage) Forget(key types.NamespacedName) {
	st.Awaited.Set(key, nil)
	st.Blocked.Set(key, nil)
	st.Kinds.Set(key, nil, nil)
}

// Input is what deciding reads: the results of the earlier stages. It writes Decided.
type Input struct {
	*stage.Subject
	Listed   *stage.Listing
	Note     *stage.Note
	Resolved *stage.Resolved
	Rendered *stage.Rendered
	Decided  *stage.Decided
}
