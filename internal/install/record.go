// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/format"
)

// RecordName is the ConfigMap in the controllers' namespace that says what an installation consists of.
const RecordName = "satchel-installation"

// Record is the stored state of an installation: the options for upgrades, and the objects for upgrades and removal.
type Record struct {
	// Version is that of the program that installed.
	Version string
	// Options are what was chosen.
	Options Options
	// Objects are all that were applied and not removed since.
	Objects []ID
	// OwnNamespace tells that the installation created the namespace.
	OwnNamespace bool
}

// ID names an object.
type ID struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// IDOf names an object.
func IDOf(o *unstructured.Unstructured) ID {
	kind := o.GroupVersionKind()
	return ID{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// GroupVersionKind is the object's kind.
func (id ID) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}
}

// Same tells whether two names mean one object, in whatever version.
func (id ID) Same(other ID) bool {
	id.Version, other.Version = "", ""
	return id == other
}

// String is the object for people.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// Without are the objects of the record that are not among others.
func (r Record) Without(others []ID) []ID {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(id ID) bool { return slices.ContainsFunc(others, id.Same) })
}

// ConfigMap is the stored form of the record.
func (r Record) ConfigMap() (*unstructured.Unstructured, error) {
	options, err := json.Marshal(r.Options)
	if err != nil {
		return nil, err
	}
	var objects strings.Builder
	for _, id := range r.Objects {
		line, err := json.Marshal(id)
		if err != nil {
			return nil, err
		}
		objects.Write(append(line, '\n'))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": RecordName, "namespace": r.Options.namespace(),
			"labels":      map[string]any{"app.kubernetes.io/part-of": "satchel"},
			"annotations": map[string]any{"satchel.dev/description": "What satchel install installed; satchel uninstall reads it."},
		},
		"data": map[string]any{
			"format": format.Installation.Name(), "version": r.Version, "options": string(options), "objects": objects.String(), "ownNamespace": fmt.Sprint(r.OwnNamespace),
		},
	}}, nil
}

// ReadRecord reads it again.
func ReadRecord(kept *unstructured.Unstructured) (Record, error) {
	fail := func(err error) error {
		return fmt.Errorf("the ConfigMap %s/%s, which says what is installed, cannot be read: %w", kept.GetNamespace(), kept.GetName(), err)
	}
	data, _, err := unstructured.NestedStringMap(kept.Object, "data")
	if err != nil {
		return Record{}, fail(err)
	}
	if err := format.Installation.CheckName(data["format"]); err != nil {
		return Record{}, fail(fmt.Errorf("%w; satchel %s wrote it: use that version, or a neighboring one", err, data["version"]))
	}
	r := Record{Version: data["version"], OwnNamespace: data["ownNamespace"] == "true"}
	if err := json.Unmarshal([]byte(data["options"]), &r.Options); err != nil {
		return Record{}, fail(err)
	}
	for line := range strings.Lines(data["objects"]) {
		var id ID
		if err := json.Unmarshal([]byte(line), &id); err != nil {
			return Record{}, fail(err)
		}
		r.Objects = append(r.Objects, id)
	}
	return r, nil
}
