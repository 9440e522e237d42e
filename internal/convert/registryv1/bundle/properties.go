// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"io/fs"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const (
	propertiesFile       = "metadata/properties.yaml"
	propertiesAnnotation = "olm.properties"
)

// property is one statement about a bundle; its value is kept as it was written.
type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// readProperties appends those of the file to those of the CSV's annotation and writes the union back there (P12). Without a
// file, or with an empty one, the annotation stays as it was written, byte for byte: Pods carry it, and another spelling of
// the same properties would restart them when an operator is adopted from OLM v1.
func (b *Bundle) readProperties(files fs.FS, reader *manifest.Reader) []manifest.Problem {
	var all []property
	if written, ok := b.CSV.Annotations[propertiesAnnotation]; ok {
		if err := json.Unmarshal([]byte(written), &all); err != nil {
			return []manifest.Problem{b.Problem("P12", "correct it", "the annotation %q is not a JSON list of {type, value}", propertiesAnnotation)}
		}
	}
	b.properties = all
	if _, err := fs.Stat(files, propertiesFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, problem := reader.ReadFile(propertiesFile, "P12")
	if problem != nil {
		return []manifest.Problem{*problem}
	}
	if len(data) == 0 {
		return nil
	}
	var content struct {
		Properties []property `json:"properties"`
	}
	if err := yaml.Unmarshal(data, &content); err != nil {
		return []manifest.Problem{{File: propertiesFile, Rule: "P12", Message: "this is not a list of properties, each with type and value", Remedy: "correct the file"}}
	}
	for _, repeat := range manifest.RepeatsIn(propertiesFile, data) {
		b.warnRepeat(repeat)
	}
	b.properties = append(all, content.Properties...)
	return b.writeProperties()
}

// writeProperties writes all properties into the annotation as OLM v1 does, which for a file without any gives null.
func (b *Bundle) writeProperties() []manifest.Problem {
	encoded, err := json.Marshal(b.properties)
	if err != nil {
		return []manifest.Problem{b.Problem("P12", "correct them", "the properties cannot be written as JSON")}
	}
	if b.CSV.Annotations == nil {
		b.CSV.Annotations = map[string]string{}
	}
	b.CSV.Annotations[propertiesAnnotation] = string(encoded)
	return nil
}
