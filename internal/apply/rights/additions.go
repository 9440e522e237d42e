// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Additions are the manifests of permissions that an account lacks for a plan: roles and bindings
// beside those that it has, each named by a hash of its rules, so that applying them takes nothing
// away. Of the request Deployment, ServiceAccount, Inputs (those that it may not read), Namespaces and Strict are read. Namespaces
// are those that the deployment needs and that neither exist nor are created by it: they are created here, so that Roles in
// them suffice. In the absent namespaces that the deployment creates no Role can exist before, so the permissions there are
// granted cluster-wide. The error is a *TextError.
func Additions(r Request, missing Missing, absent []string) ([]*unstructured.Unstructured, error) {
	gone := brought{}
	for _, name := range absent {
		gone[name] = !slices.Contains(r.Namespaces, name)
	}
	added := places{}
	for _, need := range missing.Needs {
		added.need(gone.place(need.Namespace), need, r.Strict)
	}
	for _, demand := range missing.Demands {
		list := demand.Rights
		if demand.Unknown {
			list = []Right{demand.Instead}
		}
		added.at(gone.place(demand.Namespace)).add(list...)
	}
	for _, input := range r.Inputs {
		added.at(input.Namespace).add(reading("get", input), reading("watch", input))
	}
	if err := added.check(); err != nil {
		return nil, fmt.Errorf("the missing permissions cannot be written into a role: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range r.Namespaces {
		if len(added[name]) > 0 {
			objects = append(objects, object(Added, "v1", "Namespace", "", name))
		}
	}
	return append(objects, r.grants(Added, added.grants(places{}))...), nil
}

// Cut tells that some of the missing permissions are left out: see MostMissing.
func (m Missing) Cut() bool {
	count := 0
	for _, demand := range m.Demands {
		count += len(demand.Rights)
	}
	return count >= MostMissing
}

// digest tells grants apart.
func (g Grant) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", g.Namespace, g.Rules))
	return hex.EncodeToString(sum[:4])
}
