// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"encoding/json"
	"strings"
	"text/template"
	"time"

	"github.com/BurntSushi/toml"
	"sigs.k8s.io/yaml"
	indented "sigs.k8s.io/yaml/goyaml.v3"
)

// helmFunctions are those that Helm adds to sprig's, with the same results: its own cannot be had without its engine. Those
// without "must" answer a failure by nothing, or by a text under Error; charts look at it.
func helmFunctions() template.FuncMap {
	return template.FuncMap{
		"toYaml":        func(v any) string { return orNothing(toYAML(v)) },
		"mustToYaml":    toYAML,
		"toYamlPretty":  func(v any) string { return orNothing(toPrettyYAML(v)) },
		"toJson":        func(v any) string { return orNothing(toJSON(v)) },
		"mustToJson":    toJSON,
		"toToml":        func(v any) string { return orMessage(toTOML(v)) },
		"mustToToml":    toTOML,
		"fromYaml":      func(text string) map[string]any { return object(text, readYAML) },
		"fromYamlArray": func(text string) []any { return array(text, readYAML) },
		"fromJson":      func(text string) map[string]any { return object(text, json.Unmarshal) },
		"fromJsonArray": func(text string) []any { return array(text, json.Unmarshal) },
		"fromToml":      fromTOML,
	}
}

func orNothing(text string, err error) string {
	if err != nil {
		return ""
	}
	return text
}

func orMessage(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text
}

func toYAML(v any) (string, error) {
	text, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

func toPrettyYAML(v any) (string, error) {
	var text bytes.Buffer
	encoder := indented.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(v)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func toJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func toTOML(v any) (string, error) {
	var text bytes.Buffer
	err := toml.NewEncoder(&text).Encode(v)
	return text.String(), err
}

func readYAML(data []byte, into any) error { return yaml.Unmarshal(data, into) }

func object(text string, read func([]byte, any) error) map[string]any {
	made := map[string]any{}
	if err := read([]byte(text), &made); err != nil {
		if made == nil {
			made = map[string]any{}
		}
		made["Error"] = err.Error()
	}
	return made
}

func array(text string, read func([]byte, any) error) []any {
	made := []any{}
	if err := read([]byte(text), &made); err != nil {
		return []any{err.Error()}
	}
	return made
}

func fromTOML(text string) map[string]any {
	made := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &made); err != nil {
		made["Error"] = err.Error()
	}
	return here(made).(map[string]any) //nolint:errcheck,forcetypeassert // of the type that it was given
}

// here takes dates that name no zone as UTC: the parser takes the zone of the machine.
func here(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = here(value)
		}
	case []any:
		for i := range v {
			v[i] = here(v[i])
		}
	case []map[string]any:
		for i := range v {
			here(v[i])
		}
	case time.Time:
		if strings.HasSuffix(v.Location().String(), "-local") {
			return time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), time.UTC)
		}
	}
	return v
}
