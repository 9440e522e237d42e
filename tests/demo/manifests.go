// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Names in config/samples/templates.
const (
	samplesFolder    = "config/samples/templates"
	samplesNamespace = "samples"
	operatorName     = "sample-operator"
	greeterName      = "greeter"
	exampleRegistry  = "registry.example.org/"
	exampleGit       = "https://git.example.org/bundles.git"
)

// demoInterval replaces the ten minutes that are the default.
const demoInterval = "5s"

// fleet is the folder of the Git repository with the manifests that are applied.
const fleet = "fleet"

// upstreams are where the demo's bundles come from.
type upstreams struct{ registry, git string }

// adapt turns the committed samples into those of the demo: its own servers in place of the example hosts,
// which speak plain HTTP, a version of the operator, and short intervals.
func (u upstreams) adapt(o *unstructured.Unstructured, version string) error {
	switch o.GetKind() {
	case v1alpha1.BundleDeploymentKind:
		for _, field := range []string{"interval", "retryInterval"} {
			if err := unstructured.SetNestedField(o.Object, demoInterval, "spec", field); err != nil {
				return err
			}
		}
		if _, inline, _ := unstructured.NestedMap(o.Object, "spec", "source"); !inline {
			return nil
		}
		return u.adaptSource(o, version, "spec", "source")
	case v1alpha1.BundleSourceKind:
		return u.adaptSource(o, version, "spec")
	}
	return nil
}

// adaptSource does so for the fields of a source.
func (u upstreams) adaptSource(o *unstructured.Unstructured, version string, at ...string) error {
	if err := unstructured.SetNestedField(o.Object, demoInterval, append(at, "interval")...); err != nil {
		return err
	}
	sources, _, err := unstructured.NestedSlice(o.Object, append(at, "sources")...)
	if err != nil {
		return err
	}
	for _, source := range sources {
		kinds, _ := source.(map[string]any)
		if image, ok := kinds["image"].(map[string]any); ok {
			ref, _ := image["reference"].(string)
			repository, _, _ := strings.Cut(strings.TrimPrefix(ref, exampleRegistry), ":")
			image["reference"], image["insecure"] = u.registry+"/"+repository+":"+version, true
		}
		if git, ok := kinds["git"].(map[string]any); ok && git["url"] == exampleGit {
			git["url"] = u.git
		}
	}
	return unstructured.SetNestedSlice(o.Object, sources, append(at, "sources")...)
}

// tree is the content of the Git repository: the adapted samples and the plain bundle.
func (u upstreams) tree(repo fs.FS, version string) (fs.FS, error) {
	files := fstest.MapFS{}
	if err := copyTree(files, repo, "tests/bundles/"+greeterName, greeterName); err != nil {
		return nil, err
	}
	samples, err := fs.Glob(repo, samplesFolder+"/*.yaml")
	if err != nil {
		return nil, err
	}
	permissions, err := fs.Glob(repo, samplesFolder+"/permissions/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, sample := range append(samples, permissions...) {
		if path.Base(sample) == "kustomization.yaml" {
			continue
		}
		content, err := u.sample(repo, sample, version)
		if err != nil {
			return nil, fmt.Errorf("adapting %s: %w", sample, err)
		}
		files[fleet+strings.TrimPrefix(sample, samplesFolder)] = &fstest.MapFile{Data: content, Mode: 0o644}
	}
	return files, nil
}

// sample returns one adapted file.
func (u upstreams) sample(repo fs.FS, name, version string) ([]byte, error) {
	content, err := fs.ReadFile(repo, name)
	if err != nil {
		return nil, err
	}
	objects, err := decode(content)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, o := range objects {
		if err := u.adapt(o, version); err != nil {
			return nil, err
		}
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}

// copyTree copies the files of a folder.
func copyTree(to fstest.MapFS, from fs.FS, dir, into string) error {
	return fs.WalkDir(from, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		to[into+strings.TrimPrefix(name, dir)] = &fstest.MapFile{Data: content, Mode: 0o644}
		return err
	})
}

// decode reads the objects of a YAML stream.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// decodeFolder reads the objects of all files in a folder, Namespaces first.
func decodeFolder(files fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	permissions, err := fs.Glob(files, dir+"/permissions/*.yaml")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, dir+"/*.yaml")
	if err != nil {
		return nil, err
	}
	var first, others []*unstructured.Unstructured
	for _, name := range append(permissions, names...) {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		objects, err := decode(content)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		for _, o := range objects {
			if o.GetKind() == "Namespace" {
				first = append(first, o)
			} else {
				others = append(others, o)
			}
		}
	}
	return append(first, others...), nil
}

// installation returns what config/default installs, without the Pods and what they need: the controllers run
// as processes beside the cluster.
func installation(dir string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // kustomizations say themselves
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	content, err := rendered.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	all, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("reading what %s renders to: %w", dir, err)
	}
	var needed []*unstructured.Unstructured
	for _, o := range all {
		switch o.GetKind() {
		case "Deployment", "Service", "PersistentVolumeClaim", "NetworkPolicy":
		default:
			needed = append(needed, o)
		}
	}
	return needed, nil
}
