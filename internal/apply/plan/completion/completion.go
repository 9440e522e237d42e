// SPDX-License-Identifier: Apache-2.0

// Package completion completes the objects of a bundle: as they are applied. It is pure.
package completion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/content"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Settings are those for completing the objects of a bundle.
type Settings struct {
	Owner            inventory.Owner
	InstallNamespace string            // for namespaced objects that carry no namespace
	Hasher           *inventory.Hasher // without one the result has no hash
	Ignore           ignore.Rules      // fields that other managers may change
}

// Complete completes an object for applying: its namespace is filled in, or dropped when the kind is cluster-scoped, the owner's
// labels are set, stringData is folded into data (the API server records only data as ours), and the fields that only an API
// server writes are removed. The result shares with the object the values that are the same, so neither may be changed afterwards.
func (c Settings) Complete(object *unstructured.Unstructured, kind plan.Kind) (plan.Object, error) {
	desired := content.WithoutServerFields(object)
	switch {
	case !kind.Namespaced:
		desired.SetNamespace("")
	case desired.GetNamespace() == "":
		desired.SetNamespace(c.InstallNamespace)
	}
	id := inventory.IDOf(desired)
	if err := content.FoldStringData(desired); err != nil {
		return plan.Object{}, fmt.Errorf("completing %s: %w", id, err)
	}
	labels := desired.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for name, value := range c.Owner.Labels() {
		labels[name] = value
	}
	desired.SetLabels(labels)
	phase, err := ownership.ReadPhase(desired.GetAnnotations())
	if err != nil {
		return plan.Object{}, fmt.Errorf("completing %s: %w", id, err)
	}
	given, err := c.Ignore.Of(desired)
	if err != nil {
		return plan.Object{}, err
	}
	if len(desired.GetFinalizers()) > 0 {
		given = append(given, ignore.Pointer{"metadata", "finalizers"}) // a controller removes its own when its work is done
	}
	ignored := given
	bare, some := ignore.Without(desired, given)
	if !some {
		given = nil
	}
	var rendered inventory.Hash
	if c.Hasher != nil {
		if rendered, err = c.Hasher.Rendered(bare); err != nil {
			return plan.Object{}, err
		}
	}
	return plan.Object{ID: id, Kind: kind, Desired: desired, Rendered: rendered, Phase: phase, Given: given, Ignored: ignored}, nil
}
