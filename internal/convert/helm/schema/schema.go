// SPDX-License-Identifier: Apache-2.0

// Package schema holds the values of a chart against its values.schema.json. It loads nothing that a schema refers to, and quotes
// no value.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// schemaFile holds the schema of a chart's values.
const schemaFile = "values.schema.json"

// Check holds the values of a chart, and of those it contains, against their schemas. Nothing is loaded: a schema that
// refers to a URL or a file is refused.
func Check(c *chart.Chart, values map[string]any) []manifest.Problem {
	var problems []manifest.Problem
	if len(c.Schema) > 0 {
		problems = append(problems, checkSchema(c, values)...)
	}
	for _, child := range c.Dependencies() {
		own, ok := values[child.Name()].(map[string]any)
		if !ok {
			continue // joining the values has looked at it
		}
		problems = append(problems, Check(child, own)...)
	}
	return problems
}

func checkSchema(c *chart.Chart, values map[string]any) (problems []manifest.Problem) {
	_, below, _ := strings.Cut(c.ChartFullPath(), "/")
	file := path.Join(below, schemaFile)
	wrong := func(text, remedy string) []manifest.Problem {
		return []manifest.Problem{{File: file, Rule: message.Rule, Message: text, Remedy: remedy}}
	}
	defer func() {
		if p := recover(); p != nil {
			problems = wrong("the schema cannot be checked", "correct it")
		}
	}()
	schema, err := compile(c.Schema)
	var remote *jsonschema.LoadURLError
	switch {
	case errors.As(err, &remote):
		return wrong("the schema refers to another file, or to a URL", "write what it refers to into it, or set spec.helm.schemaValidation to Warn or None: nothing is fetched while a bundle is rendered")
	case err != nil:
		return wrong("this is no valid schema: "+schemaSays(err), "correct it")
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(values); errors.As(err, &invalid) {
		return violations(file, strings.Split(c.ChartPath(), ".")[1:], invalid)
	} else if err != nil {
		return wrong("the values cannot be checked", "correct the schema")
	}
	return nil
}

// schemaSays is why a schema does not compile, without what it quotes.
func schemaSays(err error) string {
	return message.Shorten(message.OneLine(message.Quoted.ReplaceAllString(strings.ReplaceAll(err.Error(), schemaURL, schemaFile), "…")))
}

// schemaURL is what a schema is called while it is compiled.
const schemaURL = "file:///" + schemaFile

func compile(data []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("it is not valid JSON")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothing{})
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

// nothing is a loader that loads nothing. What Helm does not resolve either, names without a place, allows everything there.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, errors.New("nothing is loaded")
}

// violations are the values that a schema does not allow, by their path and without themselves.
func violations(file string, below []string, err *jsonschema.ValidationError) []manifest.Problem {
	if len(err.Causes) > 0 {
		var all []manifest.Problem
		for _, cause := range err.Causes {
			all = append(all, violations(file, below, cause)...)
		}
		return all
	}
	place := append(append([]string{}, below...), err.InstanceLocation...)
	return []manifest.Problem{{
		File: file, Rule: manifest.RuleValue, Remedy: "correct the value",
		Message: fmt.Sprintf("the values are not as the chart's schema asks: %s: %s", valuePath(place), allowed(err.ErrorKind)),
	}}
}

// valuePath is the path of a value, as in spec.helm.values.
func valuePath(parts []string) string {
	if len(parts) == 0 {
		return "the values as a whole"
	}
	return message.Shorten(message.Printable(strings.Join(parts, ".")))
}
