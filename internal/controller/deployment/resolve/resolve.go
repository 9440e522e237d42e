// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/scrub"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/deployment/waiting"
	"github.com/satchel-dev/satchel/internal/controller/nslabel"
)

// Stage is what resolving needs beside its input.
type Stage struct {
	Reader    client.Reader // of other deployments, from a cache
	Live      client.Reader // of namespaces
	Accounts  Accounts
	Sources   Sources
	Labels    *nslabel.Reader
	Approvals approval.Approvals
	Snapshots *lastapplied.Snapshots
	Names     *drift.Names // watches the Secrets and ConfigMaps of the spec
	Scrubs    *scrub.Memory
	Kinds     *waiting.Kinds
	// Dependencies are those that deployments currently wait for.
	Dependencies waiting.Names
}

// Forget drops what is remembered of a deployment.
func (st *Stage) Forget(key types.NamespacedName) {
	st.Dependencies.Set(key, nil)
}

// Input is what resolving reads and writes: the inventory, the note of the last reconcile, and Resolved.
type Input struct {
	*stage.Subject
	Listed   *stage.Listing
	Note     *stage.Note
	Resolved *stage.Resolved
}
