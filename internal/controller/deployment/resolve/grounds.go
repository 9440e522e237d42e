// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/json"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/format"
)

// groundsOf is the digest of the spec of a source without its intervals. It includes what users of the namespace change
// outside the spec: a ConfigMap or an upload by its revision, and by digests in the status the Secrets with the keys and
// policies for signatures, and those that decide which server is the right one.
func groundsOf(source *v1alpha1.BundleSource) string {
	spec, content := source.Spec.DeepCopy(), ""
	var trust, transport []string
	for _, resolved := range source.Status.Resolved {
		if resolved.Trust != "" {
			trust = append(trust, resolved.Trust)
		}
		if resolved.Transport != "" {
			transport = append(transport, resolved.Destination+" "+resolved.Transport)
		}
	}
	spec.Suspend = false
	spec.Interval = v1alpha1.Duration{}
	spec.Timeout = v1alpha1.Duration{}
	spec.ExternalArtifact = false
	spec.Immutable = false
	for _, part := range spec.Sources {
		if (part.ConfigMap != nil || part.Upload != nil) && source.Status.Artifact != nil {
			content = source.Status.Artifact.Revision
		}
	}
	return stage.DigestOfAll(format.Plan.Purpose("source-grounds"), source.Name, spec, content, trust, transport)
}

// fluxGrounds is the digest of the spec of a Flux source; empty while its artifact may belong to another spec.
func fluxGrounds(source FluxObject) string {
	ready := conditions.Get(source, meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != source.GetGeneration() {
		return ""
	}
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	data, err := json.Marshal(source)
	if err != nil || json.Unmarshal(data, &object) != nil {
		return ""
	}
	delete(object.Spec, "interval")
	delete(object.Spec, "timeout")
	delete(object.Spec, "suspend")
	return stage.DigestOfAll(format.Plan.Purpose("source-grounds"), source.GetName(), object.Spec)
}
