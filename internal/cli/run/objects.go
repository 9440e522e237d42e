// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// Labels of objects that run creates: the name of the run, and the namespace of its BundleDeployment.
const (
	runLabel          = "satchel.dev/run"
	runNamespaceLabel = "satchel.dev/run-namespace"
)

// resourcesOfRun are the kinds of objects that run creates.
var resourcesOfRun = map[string]schema.GroupVersionResource{
	v1alpha1.BundleDeploymentKind: v1alpha1.GroupVersion.WithResource(kit.Deployments.Resource),
	v1alpha1.BundleSourceKind:     v1alpha1.GroupVersion.WithResource(kit.Sources.Resource),
	"Namespace":                   {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":              {Version: "v1", Resource: "serviceaccounts"},
	"Role":                        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":                 {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"ClusterRole":                 {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":          {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
}

// labelled adds the labels of this run to an object.
func (r *run) labelled(o *unstructured.Unstructured) *unstructured.Unstructured {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[runLabel], labels[runNamespaceLabel] = r.options.name, r.Namespace
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

// source is the BundleSource: the content of the folder by its digest, or the image.
func (r *run) source() *unstructured.Unstructured {
	part := map[string]any{}
	if r.snapshot != nil {
		part["upload"] = map[string]any{"digest": r.snapshot.Digest}
		return r.object(kit.Sources, map[string]any{"sources": []any{part}})
	}
	image := map[string]any{"ref": r.options.what}
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
	return r.object(kit.Sources, map[string]any{"sources": []any{part}})
}

// deployment is the BundleDeployment: from the file of --spec and the flags, with the source of the run.
func (r *run) deployment() (*unstructured.Unstructured, error) {
	spec, err := r.specOfFile()
	if err != nil {
		return nil, err
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
		spec["installNamespace"] = r.options.installNamespace
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

// specOfFile reads the file of --spec; an empty spec without one.
func (r *run) specOfFile() (map[string]any, error) {
	file := r.options.specFile
	if file == "" {
		return map[string]any{}, nil
	}
	var content []byte
	var err error
	if file == "-" {
		content, err = io.ReadAll(io.LimitReader(r.Streams.In, maxSpecBytes))
	} else {
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading --spec %s: %w", file, kit.WithoutPath(err))
	}
	var typed v1alpha1.BundleDeployment // to find unknown fields
	if err := yaml.UnmarshalStrict(content, &typed); err != nil {
		return nil, fmt.Errorf("--spec %s is not the manifest of one BundleDeployment: %w", file, err)
	}
	var whole struct{ Spec map[string]any }
	if err := yaml.Unmarshal(content, &whole); err != nil || typed.Kind != v1alpha1.BundleDeploymentKind || whole.Spec == nil {
		return nil, fmt.Errorf("--spec %s is not the manifest of one BundleDeployment", file)
	}
	if typed.Spec.InstallNamespace != "" && r.options.installNamespace == r.Namespace {
		r.options.installNamespace = typed.Spec.InstallNamespace
	}
	return whole.Spec, nil
}

// maxSpecBytes bounds what is read of standard input; no object of Kubernetes is larger.
const maxSpecBytes = 2 << 20

// apply writes an object by server-side apply, and says whether that changed anything.
func (r *run) apply(ctx context.Context, o *unstructured.Unstructured) error {
	resource := resourcesOfRun[o.GetKind()]
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
	fmt.Fprintf(r.Streams.Out, "%s %s: %s\n", o.GetKind(), objectPlace(o), done)
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

func objectPlace(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// writing is the error of an object that could not be written.
func (r *run) writing(o *unstructured.Unstructured, err error) error {
	resource := resourcesOfRun[o.GetKind()]
	if resource.Group == v1alpha1.GroupVersion.Group && apierrors.IsForbidden(err) {
		return &kit.AccessError{Verb: "patch", Resource: resource.Resource, Namespace: o.GetNamespace(), Err: err}
	}
	return fmt.Errorf("writing %s %s: %w", o.GetKind(), objectPlace(o), err)
}
