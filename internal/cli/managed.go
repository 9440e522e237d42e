// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// deliverers are the field managers of programs that keep objects as a repository has them, and what they are.
var deliverers = []struct{ manager, name string }{
	{"kustomize-controller", "Flux's kustomize-controller"},
	{"helm-controller", "Flux's helm-controller"},
	{"argocd-controller", "Argo CD"},
	{"argocd-application-controller", "Argo CD"},
	{"fleetagent", "Rancher Fleet"},
	{"kapp", "kapp"},
}

// deliverer names what keeps an object as it is written elsewhere, such as a Kustomization of Flux; empty where nothing
// tells of it.
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

// warnDelivered says that somebody else decides about the object, and what to write there.
func (a *app) warnDelivered(t target, o client.Object, what string) {
	if by := deliverer(o); by != "" {
		fmt.Fprintf(a.streams.ErrOut, "%s %s %s comes from %s, which may undo this: %s.\n",
			styleFor(a.streams.ErrOut).paint(yellow, "Warning:"), t.kind.name, t.name, inline(by), what)
	}
}
