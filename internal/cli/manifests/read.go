// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// StandardInput is the name of standard input among the files.
const StandardInput = "-"

// Set is what files hold. Objects of other kinds than those that a BundleDeployment refers to are ignored, so that the folder
// of a GitOps repository can be given.
type Set struct {
	from    string // the files, in words
	objects []object
}

// object is one object, with its origin for messages.
type object struct {
	*unstructured.Unstructured
	file string
}

// Flag adds -f to a command. effect completes the sentence "File or folder with a BundleDeployment ...: ".
func Flag(cmd *cobra.Command, files *[]string, effect string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil,
		"File or folder with a BundleDeployment, or - for standard input; may be repeated. "+effect)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // it only fails for a flag that does not exist
}

// Read reads files, all manifests of folders (not of folders in them, as kubectl does), and standard input where the name is "-".
func Read(names []string, in io.Reader) (*Set, error) { return readFor("-f", names, in) }

// readFor reads the files of a flag.
func readFor(flag string, names []string, in io.Reader) (*Set, error) {
	set := &Set{from: wordsFor(names)}
	limits := convert.DefaultLimits()
	reader := manifest.NewReader(nil, limits).Strict()
	for _, name := range names {
		files, err := expand(flag, name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name, data, err := kit.ReadFile(flag, file, in, limits.FileBytes)
			if err != nil {
				return nil, err
			}
			for _, m := range reader.Objects(name, data) {
				set.objects = append(set.objects, object{m.Object, name})
			}
		}
	}
	if err := manifest.AsError(reader.Problems()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", flag, err)
	}
	return set, nil
}

// expand lists the manifests of a folder; any other name stands for itself.
func expand(flag, name string) ([]string, error) {
	if name == StandardInput {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", flag, err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", flag, err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && manifest.Named(entry.Name()) && !isKustomization(entry.Name()) {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the folder %s of %s has no manifests (.yaml, .yml or .json)", name, flag)
	}
	return files, nil
}

// isKustomization tells whether a file says how kustomize builds its folder; it holds no object.
func isKustomization(name string) bool {
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml"}, name)
}

// wordsFor is how messages call all files.
func wordsFor(names []string) string {
	words := make([]string, 0, len(names))
	for _, name := range names {
		words = append(words, nameOf(name))
	}
	return strings.Join(words, ", ")
}

// nameOf is how messages call a file.
func nameOf(file string) string {
	if file == StandardInput {
		return "standard input"
	}
	return file
}

// Deployment returns the BundleDeployment of this name, with the defaults of the CRD; without a name the only one. One without
// a namespace gets the given one.
func (s *Set) Deployment(ctx context.Context, name, namespace string) (*v1alpha1.BundleDeployment, error) {
	var found []object
	var names []string
	for _, o := range s.ofKind(v1alpha1.BundleDeploymentKind) {
		names = append(names, o.GetName())
		if name == "" || o.GetName() == name {
			found = append(found, o)
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no BundleDeployment is in it: give the manifest of one", s.from)
	case len(found) == 0:
		return nil, fmt.Errorf("%s: no BundleDeployment %q is in it: it has %s", s.from, name, strings.Join(names, ", "))
	case len(found) > 1:
		return nil, fmt.Errorf("%s: %d BundleDeployments are in it: %s; give a file with one", s.from, len(found), strings.Join(names, ", "))
	}
	d := new(v1alpha1.BundleDeployment)
	if err := found[0].decode(ctx, d); err != nil {
		return nil, err
	}
	d.Namespace = cmp.Or(d.Namespace, namespace)
	return d, nil
}

// Source returns the spec of the source of a deployment: its own, or that of the BundleSource that it names; nil if it names
// one that is not in the files. With spec.catalog it is the bundle of the lock.
func (s *Set) Source(ctx context.Context, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSourceSpec, error) {
	if d.Spec.Source != nil {
		return d.Spec.Source, nil
	}
	if of := d.Spec.Catalog; of != nil {
		if of.Lock == nil {
			return nil, fmt.Errorf("BundleDeployment %s takes package %s from catalogs, and without spec.catalog.lock only a cluster knows which bundle that is: "+
				"resolve it with satchel resolve, and write the lock, or give a folder or an image in place of the source", d.Name, of.Package)
		}
		return new(effective.CatalogBundleSource(of.Image, of.Lock.Image)), nil
	}
	ref := d.Spec.SourceRef
	for _, o := range s.ofKind(v1alpha1.BundleSourceKind) {
		if o.GetName() != ref.Name || ref.Kind != v1alpha1.BundleSourceKind || cmp.Or(o.GetNamespace(), d.Namespace) != d.Namespace {
			continue
		}
		source := new(v1alpha1.BundleSource)
		if err := o.decode(ctx, source); err != nil {
			return nil, err
		}
		return &source.Spec, nil
	}
	return nil, nil //nolint:nilnil // it may be in the cluster
}

// Contents are the data of the ConfigMaps and Secrets among the inputs of a deployment. An input that is not in the files has
// no entry.
func (s *Set) Contents(d *v1alpha1.BundleDeployment) (spec.Contents, error) {
	contents := spec.Contents{}
	for _, ref := range spec.InputRefs(spec.Inputs(d)) {
		o := s.find(ref.Kind, d.Namespace, ref.Name)
		if o == nil {
			continue
		}
		data, err := spec.DataOf(o)
		if err != nil {
			return nil, err
		}
		contents[ref] = data
	}
	return contents, nil
}

// Missing are errors about required inputs of a deployment that the files lack.
func (s *Set) Missing(d *v1alpha1.BundleDeployment, contents spec.Contents) error {
	var missing []error
	for _, input := range spec.Inputs(d) {
		if contents[input.InputRef] == nil && !input.Optional {
			missing = append(missing, fmt.Errorf("%s names the %s %s, which is not in %s: add it there as a further document", input.Field, input.Kind, input.Name, s.from))
		}
	}
	return errors.Join(missing...)
}

// Reader reads the Secrets, ConfigMaps and ServiceAccounts of the files; ask, unless it is nil, returns those that the files
// lack, and nil for one that does not exist.
func (s *Set) Reader(ask AskFunc) client.Reader { return reader{set: s, ask: ask} }

// Holds tells whether the files have an object of the core API.
func (s *Set) Holds(kind, namespace, name string) bool { return s.find(kind, namespace, name) != nil }

// From is the files, in words.
func (s *Set) From() string { return s.from }

// ofKind are the objects of one of Satchel's kinds.
func (s *Set) ofKind(kind string) []object {
	var found []object
	for _, o := range s.objects {
		if o.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}) {
			found = append(found, o)
		}
	}
	return found
}

// find returns an object of the core API; nil if there is none. One without a namespace is in that of the deployment.
func (s *Set) find(kind, namespace, name string) *unstructured.Unstructured {
	for _, o := range s.objects {
		if o.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: kind}) && o.GetName() == name && cmp.Or(o.GetNamespace(), namespace) == namespace {
			return o.Unstructured
		}
	}
	return nil
}

// decode validates an object of Satchel's kinds and converts it to its Go type.
func (o object) decode(ctx context.Context, into any) error {
	defaulted, problems, err := Validate(ctx, o.Unstructured)
	named := fmt.Sprintf("%s: %s %s", o.file, o.GetKind(), o.GetName())
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", named, err)
	case len(problems) > 0:
		return fmt.Errorf("%s is not valid:\n  - %s", named, strings.Join(problems, "\n  - "))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(defaulted.Object, into); err != nil {
		return fmt.Errorf("%s: %w", named, err)
	}
	return nil
}
