// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch changes fields of an object.
func (c *Cluster) Patch(ctx context.Context, t Target, change map[string]any, dryRun bool) error {
	encoded, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("changing %s: %w", t, err)
	}
	o := t.Kind.Empty()
	o.SetNamespace(c.Namespace)
	o.SetName(t.Name)
	options := []client.PatchOption{client.FieldOwner(FieldManager)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, encoded), options...); err != nil {
		return &AccessError{Verb: "patch", Resource: t.Kind.Resource, Namespace: c.Namespace, Err: err}
	}
	return nil
}
