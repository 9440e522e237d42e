// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/spec"
)

// readOverlays reads how a bundle is adapted from a file with a BundleDeployment, or from standard input when its name is
// "-". ConfigMaps and Secrets of the same file give the values of spec.postBuild.substituteFrom.
func readOverlays(file string, in io.Reader) (overlay.Options, error) {
	limits := convert.DefaultLimits()
	name, data, err := readFile("--overlays", file, in, limits.FileBytes)
	if err != nil {
		return overlay.Options{}, err
	}
	options, err := parseOverlays(name, data, limits)
	if err != nil {
		return overlay.Options{}, fmt.Errorf("reading --overlays: %w", err)
	}
	return options, nil
}

// parseOverlays finds the one BundleDeployment among the documents, and what it names beside it.
func parseOverlays(name string, data []byte, limits convert.Limits) (overlay.Options, error) {
	reader := manifest.NewReader(nil, limits).Strict()
	documents := reader.Objects(name, data)
	if err := manifest.AsError(reader.Problems()); err != nil {
		return overlay.Options{}, err
	}
	var d *v1alpha1.BundleDeployment
	contents := spec.Contents{}
	for _, document := range documents {
		kind := document.Object.GroupVersionKind().GroupKind()
		switch {
		case kind == schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.BundleDeploymentKind}:
			if d != nil {
				return overlay.Options{}, fmt.Errorf("%s holds several BundleDeployments: give a file with one", name)
			}
			d = &v1alpha1.BundleDeployment{}
			encoded, err := json.Marshal(document.Object.Object)
			if err == nil {
				err = DecodeStrictly(encoded, d)
			}
			if err != nil {
				return overlay.Options{}, fmt.Errorf("%s: BundleDeployment %s: %s", name, document.Object.GetName(), strings.TrimPrefix(err.Error(), "json: "))
			}
		case kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == spec.SecretKind):
			held, err := spec.DataOf(document.Object)
			if err != nil {
				return overlay.Options{}, err
			}
			contents[spec.InputRef{Kind: kind.Kind, Name: document.Object.GetName()}] = held
		}
	}
	if d == nil {
		return overlay.Options{}, fmt.Errorf("%s holds no BundleDeployment: give the manifest of the deployment that has the overlays", name)
	}
	return overlaysOf(d, contents, name)
}

// overlaysOf are the overlays of a deployment, with the variables that the file gives.
func overlaysOf(d *v1alpha1.BundleDeployment, contents spec.Contents, name string) (overlay.Options, error) {
	d.Spec.Helm = nil // its values are for other flags
	var lacking []error
	for _, input := range spec.Inputs(d) {
		if contents[input.InputRef] == nil && !input.Optional {
			lacking = append(lacking, fmt.Errorf("%s names the %s %s, which is not in %s: add it there as a further document", input.Field, input.Kind, input.Name, name))
		}
	}
	if err := errors.Join(lacking...); err != nil {
		return overlay.Options{}, err
	}
	return spec.Conversion(d, spec.Given{Contents: contents}, convert.Limits{}).Overlay, nil
}
