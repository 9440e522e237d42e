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

// readProperties appends those of the file to those of the CSV's annotation and writes the union back there (P12).
func (b *Bundle) readProperties(files fs.FS, reader *manifest.Reader) []manifest.Problem {
	var all []property
	if written, ok := b.CSV.Annotations[propertiesAnnotation]; ok {
		if err := json.Unmarshal([]byte(written), &all); err != nil {
			return []manifest.Problem{b.Problem("P12", "correct it", "the annotation %q is not a JSON list of {type, value}", propertiesAnnotation)}
		}
	}
	if _, err := fs.Stat(files, propertiesFile); !errors.Is(err, fs.ErrNotExist) {
		data, problem := reader.ReadFile(propertiesFile, "P12")
		if problem != nil {
			return []manifest.Problem{*problem}
		}
		var content struct {
			Properties []property `json:"properties"`
		}
		if err := yaml.Unmarshal(data, &content); err != nil {
			return []manifest.Problem{{File: propertiesFile, Rule: "P12", Message: "this is not a list of properties, each with type and value", Remedy: "correct the file"}}
		}
		all = append(all, content.Properties...)
	}
	b.properties = all
	return b.writeProperties(all)
}

func (b *Bundle) writeProperties(all []property) []manifest.Problem {
	if len(all) == 0 {
		return nil
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		return []manifest.Problem{b.Problem("P12", "correct them", "the properties cannot be written as JSON")}
	}
	if b.CSV.Annotations == nil {
		b.CSV.Annotations = map[string]string{}
	}
	b.CSV.Annotations[propertiesAnnotation] = string(encoded)
	return nil
}
