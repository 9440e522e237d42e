// SPDX-License-Identifier: Apache-2.0

// Package registryv1file reads a file with the contents of spec.registryV1, and names the lines of what is wrong with it.
package registryv1file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	goyaml "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
)

// LongestConfig bounds the file: an object of the API server cannot be larger either.
const LongestConfig = 1 << 20

// Read reads the contents of spec.registryV1 from the file of --config, or from standard input when its name is "-". It takes
// what an API server would take, and nothing that it would drop: all that is wrong is named at once, with its line.
func Read(file string, in io.Reader) (v1alpha1.RegistryV1Options, error) {
	name, data, err := kit.ReadFile("--config", file, in, LongestConfig)
	if err != nil {
		return v1alpha1.RegistryV1Options{}, err
	}
	options, err := ParseConfig(data)
	if err != nil {
		return v1alpha1.RegistryV1Options{}, fmt.Errorf("reading --config: %s: %w", name, err)
	}
	return options, nil
}

// ParseConfig decodes and checks the options.
func ParseConfig(data []byte) (v1alpha1.RegistryV1Options, error) {
	var options v1alpha1.RegistryV1Options
	document, err := oneDocument(data)
	if err != nil {
		return options, err
	}
	strict := DecodeStrictly(data, &options)
	if document == nil {
		return options, strict
	}
	encoded, err := yaml.YAMLToJSON(data) // which bounds what aliases may repeat
	if err != nil {
		return options, err
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &value); err != nil {
		return options, err
	}
	if faults := faultsOf(document, value); len(faults) > 0 {
		return options, faultsError(faults, document)
	}
	return options, strict
}

var optionsShape = sync.OnceValue(shape.Of[v1alpha1.RegistryV1Options])

// faultsOf finds all that is wrong with a document, which has this value.
func faultsOf(document *goyaml.Node, value any) []fault {
	faults := repeated(document, nil)
	wrongWord := map[string]bool{}
	for _, w := range Words {
		given := field(document, w.Field)
		if given != nil && given.ShortTag() == "!!str" && given.Value != "" && !slices.Contains(w.Allowed, given.Value) {
			wrongWord[w.Field] = true
			faults = append(faults, fault{line: given.Line,
				message: fmt.Sprintf("%s is %q, not one of: %s", w.Field, given.Value, strings.Join(w.Allowed, ", "))})
		}
	}
	var wrong []shape.Misfit
	if fields, ok := value.(map[string]any); ok && fields["deploymentConfig"] != nil { // free-form for the API server, not for the conversion
		wrong = deploymentconfig.Misfits(fields["deploymentConfig"])
	}
	for _, m := range shape.Strict(optionsShape(), value, nil) {
		if !wrongWord[m.Path.String()] { // on and yes are strings for a reader, and true for an API server
			wrong = append(wrong, m)
		}
	}
	return append(faults, misfits(document, wrong)...)
}

// DecodeStrictly makes JSON of YAML before it looks at the types: a number stays one even where a string is expected.
func DecodeStrictly(data []byte, into any) error {
	encoded, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// oneDocument returns the content of the only YAML document; nil when there is nothing but comments.
func oneDocument(data []byte) (*goyaml.Node, error) {
	decoder := goyaml.NewDecoder(bytes.NewReader(data))
	var first, second goyaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d: another YAML document begins; give one", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	content := first.Content[0]
	if content.ShortTag() == "!!null" {
		return nil, nil
	}
	return content, nil
}

// Words are the fields that take one of a few words. The API server knows the same from the CRD.
var Words = []struct {
	Field   string
	Allowed []string
}{
	{"certificateProvider", []string{"self-signed", "cert-manager", "service-ca"}},
	{"requirements", []string{"Enforce", "Warn", "None"}},
	{"podAnnotations", []string{"All", "Required"}},
	{"duplicateKeys", []string{"Refuse", "Last"}},
}

// field returns the value of a key of a mapping, or nil.
func field(mapping *goyaml.Node, key string) *goyaml.Node {
	_, value := child(mapping, shape.Step{Key: key})
	return value
}
