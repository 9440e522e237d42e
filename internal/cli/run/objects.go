// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/remove"
)

// labelled adds the labels of this run to an object.
func (r *run) labelled(o *unstructured.Unstructured) *unstructured.Unstructured {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[remove.RunLabel], labels[remove.RunNamespaceLabel] = r.options.name, r.Namespace
	o.SetLabels(labels)
	return o
}

// object is one of Satchel's objects, with a spec.
func (r *run) object(k kit.Kind, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.Name))
	o.SetNamespace(r.Namespace)
	o.SetName(r.options.name)
	return r.labelled(o)
}

// source is the BundleSource: the content of the folder by its digest, the chart, the image, or what the manifest of -f says.
func (r *run) source() (*unstructured.Unstructured, error) {
	part := map[string]any{}
	switch {
	case r.declaredSource != nil:
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.declaredSource)
		if err != nil {
			return nil, fmt.Errorf("reading the source of %s: %w", r.declared.Set.From(), err)
		}
		return r.object(kit.Sources, fields), nil
	case r.snapshot != nil:
		part["upload"] = map[string]any{"digest": r.snapshot.Digest}
		return r.object(kit.Sources, map[string]any{"sources": []any{part}}), nil
	}
	if r.options.HelmRepository != "" {
		chart := map[string]any{"url": r.options.HelmRepository, "chart": r.options.what}
		if r.options.ChartVersion != "" {
			chart["version"] = r.options.ChartVersion
		}
		if r.options.pullSecret != "" {
			chart["secretRef"] = map[string]any{"name": r.options.pullSecret}
		}
		part["helm"] = chart
		return r.object(kit.Sources, map[string]any{"sources": []any{part}}), nil
	}
	image := map[string]any{"reference": r.options.what}
	if r.options.Platform != "" {
		image["platform"] = r.options.Platform
	}
	if r.options.Insecure {
		image["insecure"] = true
	}
	if r.options.pullSecret != "" {
		image["secretRef"] = map[string]any{"name": r.options.pullSecret}
	}
	part["image"] = image
	return r.object(kit.Sources, map[string]any{"sources": []any{part}}), nil
}

// deployment is the BundleDeployment: from the manifest of -f and the flags, with the source of the run.
func (r *run) deployment() (*unstructured.Unstructured, error) {
	spec := map[string]any{}
	if r.declared != nil {
		var err error
		if spec, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&r.declared.Deployment.Spec); err != nil {
			return nil, fmt.Errorf("reading the spec of %s: %w", r.declared.Set.From(), err)
		}
	}
	delete(spec, "source")
	spec["sourceRef"] = map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.BundleSourceKind, "name": r.options.name}
	named, _ := spec["serviceAccountName"].(string)
	spec["serviceAccountName"] = r.accountName(named)
	for field, value := range map[string]string{"path": r.options.Path, "format": r.options.Format} {
		if value != "" {
			spec[field] = value
		}
	}
	if r.options.installNamespace != r.Namespace {
		target, _ := spec["target"].(map[string]any)
		if target == nil {
			target = map[string]any{}
		}
		target["namespace"] = r.options.installNamespace
		spec["target"] = target
	}
	if len(r.options.watchNamespaces) > 0 {
		options, _ := spec["registryV1"].(map[string]any)
		if options == nil {
			options = map[string]any{}
		}
		options["watchNamespaces"] = anyList(r.options.watchNamespaces)
		spec["registryV1"] = options
	}
	return r.object(kit.Deployments, spec), nil
}

func anyList(words []string) []any {
	list := make([]any, 0, len(words))
	for _, word := range words {
		list = append(list, word)
	}
	return list
}

// apply writes an object by server-side apply, and says whether that changed anything.
func (r *run) apply(ctx context.Context, o *unstructured.Unstructured) error {
	resource := remove.RunResources[o.GetKind()]
	what := r.Bodies.Resource(resource).Namespace(o.GetNamespace())
	before, err := what.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return r.writing(o, err)
	}
	after, err := what.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: kit.FieldManager, Force: true})
	if err != nil {
		return r.writing(o, err)
	}
	done := "changed"
	switch {
	case before == nil || before.GetUID() != after.GetUID():
		done = "created"
	case equality.Semantic.DeepEqual(written(before), written(after)):
		done = "unchanged"
	}
	fmt.Fprintf(r.Streams.Out, "%s %s: %s\n", o.GetKind(), remove.PlaceOf(o), done)
	return nil
}

// written is an object without the status, which a controller may have written meanwhile.
func written(o *unstructured.Unstructured) map[string]any {
	bare := o.DeepCopy()
	bare.SetManagedFields(nil)
	bare.SetResourceVersion("")
	delete(bare.Object, "status")
	return bare.Object
}

// writing is the error of an object that could not be written.
func (r *run) writing(o *unstructured.Unstructured, err error) error {
	resource := remove.RunResources[o.GetKind()]
	if resource.Group == v1alpha1.GroupVersion.Group && apierrors.IsForbidden(err) {
		return &kit.AccessError{Verb: "patch", Resource: resource.Resource, Namespace: o.GetNamespace(), Err: err}
	}
	return fmt.Errorf("writing %s %s: %w", o.GetKind(), remove.PlaceOf(o), err)
}
