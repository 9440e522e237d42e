// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/crd"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
)

// Places in a bundle.
const (
	ManifestsFolder   = "manifests"
	AnnotationsFile   = "metadata/annotations.yaml"
	PackageAnnotation = "operators.operatorframework.io.bundle.package.v1"
	csvKind           = "ClusterServiceVersion"
	crdKind           = "CustomResourceDefinition"
)

// Parse reads a bundle tree (rules P). The bundle is complete only without problems. With lastKeys the last one of keys with
// different values counts (P7).
func Parse(files fs.FS, limits manifest.Limits, lastKeys bool) (*Bundle, []manifest.Problem) {
	reader := manifest.NewReader(files, limits).LastKeys(lastKeys, ", or set registryV1.duplicateKeys to Last, which takes the last one as OLM does")
	bundle := &Bundle{}
	problems := bundle.readPackage(reader)
	names, more := bundle.listManifests(files)
	problems = append(problems, more...)
	var csvs []manifest.Manifest
	for _, name := range names {
		for _, m := range reader.Read(name) {
			more := bundle.classify(m, &csvs)
			problems = append(problems, more...)
		}
	}
	problems = append(problems, reader.Problems()...)
	bundle.Warnings = append(bundle.Warnings, reader.Warnings()...)
	problems = append(problems, bundle.readCSV(csvs, len(problems) > 0)...)
	problems = append(problems, bundle.readProperties(files, reader)...)
	problems = append(problems, bundle.readRequirements(files, reader)...)
	return bundle, problems
}

// readPackage takes the package name from the annotations, of which nothing else matters (P1 to P3).
func (b *Bundle) readPackage(reader *manifest.Reader) []manifest.Problem {
	data, problem := reader.ReadFile(AnnotationsFile, "P2")
	if problem != nil {
		problem.Remedy = "a registry+v1 bundle needs this file beside manifests/"
		return []manifest.Problem{*problem}
	}
	var content struct {
		Annotations map[string]any `json:"annotations"`
	}
	if err := yaml.Unmarshal(data, &content); err != nil {
		return []manifest.Problem{{File: AnnotationsFile, Rule: "P2", Message: "the annotations cannot be read as YAML", Remedy: "correct the file"}}
	}
	name, ok := content.Annotations[PackageAnnotation].(string)
	if !ok && content.Annotations[PackageAnnotation] != nil {
		return []manifest.Problem{{File: AnnotationsFile, Rule: "P3", Message: fmt.Sprintf("the annotation %q is not a string", PackageAnnotation), Remedy: "put it into quotation marks"}}
	}
	b.Package = name
	return b.repeatedAnnotations(data)
}

// repeatedAnnotations refuses annotations that name two packages. Of other keys the last one counts, as in OLM: nothing that is
// rendered depends on them.
func (b *Bundle) repeatedAnnotations(data []byte) []manifest.Problem {
	var problems []manifest.Problem
	for _, repeat := range manifest.RepeatsIn(AnnotationsFile, data) {
		if repeat.Key == PackageAnnotation && repeat.Differ {
			problems = append(problems, manifest.Problem{File: AnnotationsFile, Rule: "P3", Remedy: "a bundle is a version of one package: keep one",
				Message: fmt.Sprintf("line %d: the bundle names two packages; the first is in line %d", repeat.Line, repeat.First)})
			continue
		}
		b.warnRepeat(repeat)
	}
	return problems
}

// warnRepeat warns of a key that a file beside the manifests has twice (P7).
func (b *Bundle) warnRepeat(repeat manifest.Repeat) {
	if repeat.Differ {
		b.Warn("%s; the last one counts", repeat)
		return
	}
	b.Warn("%s", repeat)
}

// listManifests returns the manifests in the order of their names (P4, P5); other files are left out with a warning.
func (b *Bundle) listManifests(files fs.FS) ([]string, []manifest.Problem) {
	linked, err := manifest.Linked(files, ManifestsFolder)
	var entries []fs.DirEntry
	if err == nil && !linked {
		entries, err = fs.ReadDir(files, ManifestsFolder)
	}
	switch {
	case linked:
		return nil, []manifest.Problem{{File: ManifestsFolder, Rule: "P1", Message: "the folder is a symbolic link", Remedy: "replace the link by the folder"}}
	case errors.Is(err, fs.ErrNotExist):
		return nil, []manifest.Problem{{File: ManifestsFolder, Rule: "P1", Message: "the folder is missing", Remedy: "a registry+v1 bundle keeps its manifests there"}}
	case err != nil:
		return nil, []manifest.Problem{*manifest.Unreadable(ManifestsFolder, err)}
	}
	var names, skipped []string
	var problems []manifest.Problem
	for _, entry := range entries {
		name := path.Join(ManifestsFolder, entry.Name())
		switch {
		case entry.IsDir():
			problems = append(problems, manifest.Problem{File: name, Rule: "P5", Message: "folders are not allowed inside manifests/", Remedy: "move its files up or out of the bundle"})
		case !manifest.Named(name):
			skipped = append(skipped, name)
		default:
			names = append(names, name)
		}
	}
	if len(skipped) > 0 {
		slices.Sort(skipped)
		b.Warn("%s", manifest.Skipped(skipped))
	}
	slices.Sort(names)
	return names, problems
}

// classify sorts an object into its family by kind (P8), inferring a missing apiVersion where it is obvious (P6).
func (b *Bundle) classify(m manifest.Manifest, csvs *[]manifest.Manifest) []manifest.Problem {
	if m.Object.GetAPIVersion() == "" {
		b.inferVersion(m)
	}
	b.ignoreNamespace(m)
	if problems := manifest.Identity(m); len(problems) > 0 {
		return problems
	}
	trimMetadata(m.Object.Object)
	switch m.Object.GetKind() {
	case csvKind:
		*csvs = append(*csvs, m)
	case crdKind:
		if m.Object.GetAPIVersion() == crd.V1beta1 {
			b.Warn("%s: %s is written in v1beta1 and was converted to v1", m.File, manifest.Describe(m.Object))
		}
		crd, problems := crd.Read(m)
		b.CRDs = append(b.CRDs, crd)
		return problems
	default:
		b.Others = append(b.Others, m)
	}
	return nil
}

// ignoreNamespace drops a namespace that no object could have, since none is used: the CSV is not applied, and other objects go
// into the install namespace or have none (A1).
func (b *Bundle) ignoreNamespace(m manifest.Manifest) {
	metadata, _ := m.Object.Object["metadata"].(map[string]any)
	if manifest.ValidNamespace(metadata["namespace"]) {
		return
	}
	delete(metadata, "namespace")
	b.Warn("%s: the metadata.namespace of %s is not a valid name, and is ignored: no object of the bundle is installed there", m.File, manifest.Describe(m.Object))
}

func (b *Bundle) inferVersion(m manifest.Manifest) {
	version := inferredVersion(m.Object.GetKind())
	if version == "" {
		return
	}
	m.Object.SetAPIVersion(version)
	b.Warn("%s: %s has no apiVersion, taken as %s", m.File, manifest.Describe(m.Object), version)
}

// trimMetadata keeps what makes up an object before it is applied (O5).
func trimMetadata(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	for key := range metadata {
		switch key {
		case "name", "namespace", "labels", "annotations":
		default:
			delete(metadata, key)
		}
	}
}

var csvShape = shape.Of[v1alpha1.ClusterServiceVersion]()

// readCSV takes the one ClusterServiceVersion (P8, P9); without any it only complains when that is not explained already.
func (b *Bundle) readCSV(csvs []manifest.Manifest, explained bool) []manifest.Problem {
	if len(csvs) == 0 {
		if explained {
			return nil
		}
		return []manifest.Problem{{File: ManifestsFolder, Rule: "P8", Message: "there is no ClusterServiceVersion", Remedy: "add the one that describes the operator"}}
	}
	var problems []manifest.Problem
	for _, extra := range csvs[1:] {
		problems = append(problems, extra.Problem("P8", "there is another ClusterServiceVersion in "+csvs[0].File, "a bundle is one version of an operator: keep one"))
	}
	b.Source = csvs[0]
	object := b.Source.Object.Object
	delete(object, "status")
	for _, m := range shape.Fit(csvShape, object) {
		problems = append(problems, b.Source.Problem("P9", m.String(), "correct the type"))
	}
	if len(problems) > 0 {
		return problems
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &b.CSV); err != nil {
		return []manifest.Problem{b.Problem("P9", "correct it", "it is not a valid ClusterServiceVersion")}
	}
	b.HasCSV = true
	return nil
}
