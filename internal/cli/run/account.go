// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/rbac"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// accountObjects are the ServiceAccount and its RBAC, if the user wants them created.
func (r *run) accountObjects(ctx context.Context, of *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !r.options.createAccount {
		return nil, nil
	}
	d := new(v1alpha1.BundleDeployment)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(of.Object, d); err != nil {
		return nil, fmt.Errorf("reading the spec of the deployment: %w", err)
	}
	if err := r.lacksValues(d); err != nil {
		return nil, fmt.Errorf("the permissions of a bundle depend on the values from Secrets and ConfigMaps: %w; or create the ServiceAccount with the command rbac, and omit --create-service-account", err)
	}
	result, err := r.convertFor(ctx, d)
	if err != nil {
		return nil, err
	}
	named := rbac.Options{
		ConversionOptions: bundle.ConversionOptions{InstallNamespace: effective.InstallNamespace(d)}, Deployment: d.Name, Named: true,
		Namespace: d.Namespace, ServiceAccount: d.Spec.ServiceAccountName, Definitions: effective.DeletesCRDs(&d.Spec),
		Strict: true, // they are computed again with each change
	}
	request, guesses := named.Request(result)
	request.Inputs = spec.InputIDs(d)
	parts, err := rights.Manifests(request)
	if err != nil {
		return nil, fmt.Errorf("the permissions cannot be determined: %w", err)
	}
	r.Note(guesses.Notes())
	var objects []*unstructured.Unstructured
	for _, part := range rights.Parts() {
		objects = append(objects, parts[part]...)
	}
	if r.snapshot != nil {
		objects = append(objects, r.uploadPermission(d.Spec.ServiceAccountName)...)
	}
	for _, o := range objects {
		r.labelled(o)
	}
	return objects, nil
}

// lacksValues is an error about the required values that the files of -f do not hold.
func (r *run) lacksValues(d *v1alpha1.BundleDeployment) error {
	if r.declared == nil {
		return nil // only a manifest can name values
	}
	contents, err := r.declared.Set.Contents(d)
	if err != nil {
		return err
	}
	return r.declared.Set.Missing(d, contents)
}

// open fetches the image or the source of the manifest.
func (r *run) open(ctx context.Context) (*bundle.Bundle, error) {
	if r.declaredSource != nil {
		return r.declared.Open(ctx, r.App, r.options.ImagePolicies)
	}
	return bundle.OpenBundle(ctx, r.App, r.options.what, r.options.OpenOptions)
}

// convertFor converts the bundle as the controller will.
func (r *run) convertFor(ctx context.Context, d *v1alpha1.BundleDeployment) (result convert.Result, err error) {
	var files fs.FS
	if r.snapshot != nil {
		files = r.snapshot.FS()
	} else {
		b, err := r.open(ctx)
		if err != nil {
			return result, err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		files = b.Files
	}
	given := spec.Given{}
	if r.declared != nil {
		if given.Contents, err = r.declared.Set.Contents(r.declared.Deployment); err != nil {
			return result, err
		}
	}
	if given.Values, err = spec.HelmValues(d, given.Contents); err != nil {
		return result, err
	}
	result, err = r.Converted(ctx, files, spec.Conversion(d, given, r.options.Limits))
	if err != nil {
		return result, kit.Refused(err, false)
	}
	return result, nil
}

// uploadPermission permits a ServiceAccount to upload the content of this run's source, and no other.
func (r *run) uploadPermission(account string) []*unstructured.Unstructured {
	name := fmt.Sprintf("satchel:%s:%s:upload", r.Namespace, r.options.name)
	role := &unstructured.Unstructured{Object: map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{v1alpha1.GroupVersion.Group}, "resources": []any{"bundlesources/upload"},
		"resourceNames": []any{r.options.name}, "verbs": []any{"create"},
	}}}}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": r.Namespace}},
	}}
	for kind, o := range map[string]*unstructured.Unstructured{"Role": role, "RoleBinding": binding} {
		o.SetAPIVersion("rbac.authorization.k8s.io/v1")
		o.SetKind(kind)
		o.SetNamespace(r.Namespace)
		o.SetName(name)
	}
	return []*unstructured.Unstructured{role, binding}
}

// makeAccount writes the ServiceAccount and its RBAC. Objects that run did not create are not changed.
func (r *run) makeAccount(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		resource := remove.RunResources[o.GetKind()]
		found, err := r.Bodies.Resource(resource).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
		switch {
		case err == nil && !r.isOurs(found):
			if o.GetKind() != "Namespace" {
				r.Note([]string{fmt.Sprintf("%s %s exists already, and is not changed", o.GetKind(), remove.PlaceOf(o))})
			}
			continue
		case apierrors.IsForbidden(err) && o.GetKind() == "Namespace":
			continue // the next object shows whether it exists
		}
		if err := r.apply(ctx, o); err != nil {
			return r.granting(o, err)
		}
	}
	return nil
}

// isOurs tells whether an earlier run of this name created an object.
func (r *run) isOurs(o *unstructured.Unstructured) bool {
	return o.GetLabels()[remove.RunLabel] == r.options.name && o.GetLabels()[remove.RunNamespaceLabel] == r.Namespace
}

// granting says what to do when the user may not grant the permissions that the bundle needs.
func (r *run) granting(o *unstructured.Unstructured, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("you may not create %s %s: you can only grant permissions that you have. Ask an administrator to apply what %s rbac prints for this bundle, "+
		"and omit --create-service-account (the cluster says: %w)", o.GetKind(), remove.PlaceOf(o), r.Name, err)
}
