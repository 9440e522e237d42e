// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
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

// Deliverer names the owner that reconciles an object from a repository, such as a Kustomization of Flux; empty if there is
// none.
func Deliverer(o client.Object) string {
	live := ownership.LiveOf(o, inventory.Owner{})
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

// WarnDelivered warns that a GitOps tool manages the object, and says what to change there.
func (a *App) WarnDelivered(t Target, o client.Object, what string) {
	if by := Deliverer(o); by != "" {
		fmt.Fprintf(a.Streams.ErrOut, "%s %s %s comes from %s, which may undo this: %s.\n",
			printer.StyleFor(a.Streams.ErrOut).Paint(printer.Yellow, "Warning:"), t.Kind.Name, t.Name, view.Inline(by), what)
	}
}
