// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/convert"
)

// partialSnapshot is a snapshot with objects that are decoded only when wanted.
type partialSnapshot struct {
	Revision     string                `json:"revision"`
	Objects      []json.RawMessage     `json:"objects"`
	Certificates []convert.Certificate `json:"certificates,omitempty"`
}

// ReadSome reads some objects of the snapshot of a deployment, if all of them are in it, it is of
// the revision, and no certificate has to be injected.
func ReadSome(snapshots *lastapplied.Snapshots, uid, revision string, ids []inventory.ID) (objects []*unstructured.Unstructured, whole bool, err error) {
	data, found, err := snapshots.Load(uid)
	if err != nil || !found {
		return nil, false, err
	}
	var last partialSnapshot
	if err := json.Unmarshal(data, &last); err != nil {
		return nil, false, fmt.Errorf("reading the objects that were applied last: %w", err)
	}
	if last.Revision != revision {
		return nil, false, nil
	}
	wanted := make(map[inventory.ID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	for _, raw := range last.Objects {
		object, err := readIf(raw, wanted)
		if err != nil {
			return nil, false, err
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	whole = len(objects) == len(ids) && !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return certificate.Trusts(o, certificates.Requests(last.Certificates))
	})
	return objects, whole, nil
}

// readIf decodes an object if it is wanted.
func readIf(raw json.RawMessage, wanted map[inventory.ID]bool) (*unstructured.Unstructured, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	object := &unstructured.Unstructured{}
	err := json.Unmarshal(raw, &head)
	if err == nil {
		object.Object = map[string]any{"apiVersion": head.APIVersion, "kind": head.Kind}
		object.SetNamespace(head.Metadata.Namespace)
		object.SetName(head.Metadata.Name)
		if !wanted[inventory.IDOf(object)] {
			return nil, nil //nolint:nilnil // it is not wanted
		}
		err = object.UnmarshalJSON(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the objects that were applied last: %w", err)
	}
	return object, nil
}
