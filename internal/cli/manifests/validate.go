// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/install"
)

// validators are what an API server makes of one version of a CRD.
type validators struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// Validate returns an object of one of Satchel's kinds with the defaults of its CRD, or all that is wrong with it, as an API
// server of Kubernetes would find it: unknown fields, the schema, and the CEL rules.
func Validate(ctx context.Context, object *unstructured.Unstructured) (defaulted *unstructured.Unstructured, problems []string, err error) {
	byKind, err := loaded()
	if err != nil {
		return nil, nil, err
	}
	v, served := byKind[object.GroupVersionKind()]
	if !served {
		return nil, nil, fmt.Errorf("apiVersion %q is not served: write apiVersion: %s", object.GetAPIVersion(), v1alpha1.GroupVersion)
	}
	defaulted = object.DeepCopy()
	for _, path := range pruning.PruneWithOptions(defaulted.Object, v.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	defaulting.Default(defaulted.Object, v.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(defaulted.Object, v.structural)
	wrong := validation.ValidateCustomResource(nil, defaulted.Object, v.schema)
	wrong = append(wrong, listtype.ValidateListSetsAndMaps(nil, v.structural, defaulted.Object)...)
	if len(wrong) == 0 && len(problems) == 0 { // as in an API server: the rules may rely on the schema
		found, _ := v.rules.Validate(ctx, nil, v.structural, defaulted.Object, nil, celconfig.RuntimeCELCostBudget)
		wrong = append(wrong, found...)
	}
	return defaulted, append(problems, texts(wrong)...), nil
}

// texts are the messages of errors, each once. Values are left out: they may be secret, and the field is named.
func texts(wrong field.ErrorList) []string {
	var lines []string
	for _, e := range wrong {
		line := e.Field + ": " + strings.TrimPrefix(e.Detail, e.Field+" in body ")
		switch {
		case e.Type == field.ErrorTypeRequired:
			line = e.Field + ": the field is required"
		case e.Detail == "":
			line = e.Field + ": " + e.Type.String()
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// loaded compiles the CRDs of this version once.
var loaded = sync.OnceValues(func() (map[schema.GroupVersionKind]validators, error) {
	objects, err := install.Manifests(install.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the embedded CRDs: %w", err)
	}
	byKind := map[schema.GroupVersionKind]validators{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
			return nil, fmt.Errorf("reading the embedded CRD %s: %w", o.GetName(), err)
		}
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			compiled, err := compile(version)
			if err != nil {
				return nil, fmt.Errorf("compiling the embedded CRD %s: %w", o.GetName(), err)
			}
			byKind[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = compiled
		}
	}
	return byKind, nil
})

func compile(version *apiextensionsv1.CustomResourceDefinitionVersion) (v validators, err error) {
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, &internal, nil); err != nil {
		return v, err
	}
	if v.structural, err = structuralschema.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return v, err
	}
	v.schema, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	v.rules = cel.NewValidator(v.structural, true, celconfig.PerCallLimit)
	return v, err
}
