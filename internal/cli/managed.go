// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// deliverers are the field managers of GitOps tools, and the names of these tools.
var deliverers = []struct{ manager, name string }{
	{"kustomize-controller", "Flux's kustomize-controller"},
	{"helm-controller", "Flux's helm-controller"},
	{"argocd-controller", "Argo CD"},
	{"argocd-application-controller", "Argo CD"},
	{"fleetagent", "Rancher Fleet"},
	{"kapp", "kapp"},
}

// deliverer names the owner that reconciles an object from a repository, such as a Kustomization of Flux; empty if there is
// none.
func deliverer(o client.Object) string {
	live := plan.LiveOf(o, inventory.Owner{})
	if live.Tool != "" {
		return live.Tool
	}
	if !live.Owner.IsZero() {
		return live.Owner.String()
	}
	for _, d := range deliverers {
		for _, entry := range o.GetManagedFields() {
			if entry.Manager == d.manager {
				return d.name
			}
		}
	}
	return ""
}

// warnDelivered warns that a GitOps tool manages the object, and says what to change there.
func (a *app) warnDelivered(t target, o client.Object, what string) {
	if by := deliverer(o); by != "" {
		fmt.Fprintf(a.streams.ErrOut, "%s %s %s comes from %s, which may undo this: %s.\n",
			styleFor(a.streams.ErrOut).paint(yellow, "Warning:"), t.kind.name, t.name, inline(by), what)
	}
}
