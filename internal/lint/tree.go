// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"io"
	"io/fs"
	"path"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/crd"
)

// tree is a registry+v1 bundle in the types of the suites, and where each of its objects was read.
type tree struct {
	bundle *manifests.Bundle // nil when there is no ClusterServiceVersion to examine
	csv    manifest.Manifest
	crds   []definition
	others []manifest.Manifest
}

// definition is a CustomResourceDefinition as the converter applies it, also one that is written in v1beta1.
type definition struct {
	manifest.Manifest
	typed *apiextensions.CustomResourceDefinition
}

// readTree reads all readable files; the converter reports the others.
func readTree(files fs.FS, limits manifest.Limits) (t *tree) {
	t = &tree{}
	defer func() { _ = recover() }() // a bundle that makes upstream's types panic is not checked by them
	reader := manifest.NewReader(files, limits)
	entries, _ := fs.ReadDir(files, "manifests") // the converter reports it
	for _, entry := range entries {
		name := path.Join("manifests", entry.Name())
		if entry.Type().IsRegular() && manifest.Named(name) {
			for _, m := range reader.Read(name) {
				t.add(m)
			}
		}
	}
	if t.csv.Object == nil {
		return t
	}
	var csv v1alpha1.ClusterServiceVersion
	if runtime.DefaultUnstructuredConverter.FromUnstructured(t.csv.Object.Object, &csv) != nil {
		return t
	}
	t.bundle = t.assemble(files, limits, &csv)
	return t
}

// add sorts an object in by its kind.
func (t *tree) add(m manifest.Manifest) {
	switch m.Object.GetKind() {
	case v1alpha1.ClusterServiceVersionKind:
		if t.csv.Object == nil {
			t.csv = m
		}
		return
	case "CustomResourceDefinition":
		if typed := typedCRD(m); typed != nil {
			t.crds = append(t.crds, definition{Manifest: m, typed: typed})
		}
	}
	t.others = append(t.others, m)
}

// typedCRD brings a CustomResourceDefinition into the form in which it is applied, in place, and returns it; nil where
// that is impossible, which the converter reports.
func typedCRD(m manifest.Manifest) *apiextensions.CustomResourceDefinition {
	if _, problems := crd.Read(m); len(problems) > 0 {
		return nil
	}
	typed := &apiextensions.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object.Object, typed) != nil {
		return nil
	}
	return typed
}

// assemble builds the bundle as upstream's loader would, which reads from the disk.
func (t *tree) assemble(files fs.FS, limits manifest.Limits, csv *v1alpha1.ClusterServiceVersion) *manifests.Bundle {
	said := bundle.ReadAnnotations(files, limits)
	b := &manifests.Bundle{Name: csv.Name, CSV: csv, Package: said.Package, Channels: said.Channels, DefaultChannel: said.DefaultChannel}
	b.Objects = append(b.Objects, t.csv.Object)
	for _, m := range t.others {
		b.Objects = append(b.Objects, m.Object)
	}
	for _, d := range t.crds {
		b.V1CRDs = append(b.V1CRDs, d.typed)
	}
	b.Size, b.CompressedSize = sizes(files, limits)
	return b
}

// counter counts what is written.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// sizes are those of the bundle's files and of their text as OLM v0 keeps it in a ConfigMap: each compressed, in base64.
func sizes(files fs.FS, limits manifest.Limits) (size, packed int64) {
	left := limits.OrDefault().TotalBytes
	for _, dir := range []string{"manifests", "metadata"} {
		entries, _ := fs.ReadDir(files, dir) // the converter reports it
		for _, entry := range entries {
			if !entry.Type().IsRegular() || left <= 0 {
				continue
			}
			one, compressed := compress(files, path.Join(dir, entry.Name()), left)
			left -= one
			size += one
			packed += compressed
		}
	}
	return size, packed
}

func compress(files fs.FS, name string, most int64) (size, packed int64) {
	f, err := files.Open(name)
	if err != nil {
		return 0, 0
	}
	defer f.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
	var count counter
	zipped := gzip.NewWriter(&count)
	size, err = io.Copy(zipped, io.LimitReader(f, most))
	if err = cmp.Or(err, zipped.Close()); err != nil {
		return 0, 0
	}
	return size, int64(base64.StdEncoding.EncodedLen(int(count)))
}
