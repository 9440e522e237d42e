// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	_ "embed" // manifests.yaml
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/satchel-dev/satchel/config"
)

// manifests are the objects of config/default without the CRDs; TestManifestsAreCurrent writes them.
//
//go:embed manifests.yaml
var manifests []byte

// Manifests returns the objects of an installation, in the order in which they are applied: dependencies come first.
func Manifests(o Options) ([]*unstructured.Unstructured, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	objects, err := everything()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded manifests: %w", err)
	}
	for _, change := range changes {
		if objects, err = change(o, objects); err != nil {
			return nil, fmt.Errorf("preparing the manifests: %w", err)
		}
	}
	return objects, nil
}

// everything are the objects of config/default, in its order: Namespaces, CRDs, and the others.
func everything() ([]*unstructured.Unstructured, error) {
	objects, err := parse(manifests)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(config.Definitions, "crd/bases/*.yaml")
	if err != nil {
		return nil, err
	}
	var definitions []*unstructured.Unstructured
	for _, name := range names {
		text, err := config.Definitions.ReadFile(name)
		if err != nil {
			return nil, err
		}
		parsed, err := parse(text)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, parsed...)
	}
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
	return slices.Insert(objects, max(at, 0), definitions...), nil
}

// parse reads a stream of YAML documents.
func parse(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(document) == 0 || string(document) == "null" {
			continue
		}
		o := new(unstructured.Unstructured)
		if err := o.UnmarshalJSON(document); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}
