// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the value of -o.
type output string

// Formats of output. Each command says which it has.
const (
	outputTable output = "table"
	outputWide  output = "wide"
	outputText  output = "text"
	outputJSON  output = "json"
	outputYAML  output = "yaml"
	outputName  output = "name"
)

// enum is a flag that takes one of a few words.
type enum struct {
	value   *string
	allowed []string
}

// Set accepts the allowed words only.
func (e enum) Set(value string) error {
	if !slices.Contains(e.allowed, value) {
		return fmt.Errorf("%q is not one of: %s", value, strings.Join(e.allowed, ", "))
	}
	*e.value = value
	return nil
}

// String returns the present word.
func (e enum) String() string {
	if e.value == nil {
		return ""
	}
	return *e.value
}

// Type names the value in the help.
func (enum) Type() string { return "string" }

// enumFlag adds a flag that takes one of a few words, and completes them.
func (a *app) enumFlag(cmd *cobra.Command, value *string, name, short, help string, allowed ...string) {
	cmd.Flags().VarP(enum{value: value, allowed: allowed}, name, short, help+" One of: "+strings.Join(allowed, ", ")+".")
	a.completeFlag(cmd, name, fixed(allowed...))
}

// outputFlag adds -o; the first of the formats is the default.
func (a *app) outputFlag(cmd *cobra.Command, o *output, formats ...output) {
	*o = formats[0]
	words := make([]string, 0, len(formats))
	for _, f := range formats {
		words = append(words, string(f))
	}
	a.enumFlag(cmd, (*string)(o), "output", "o", "Format of the output.", words...)
}

// printValue writes a value as JSON or YAML.
func printValue(out io.Writer, o output, value any) error {
	text, err := json.MarshalIndent(value, "", "    ")
	if err == nil && o == outputYAML {
		text, err = yaml.JSONToYAML(text)
	} else if err == nil {
		text = append(text, '\n')
	}
	if err != nil {
		return fmt.Errorf("writing the output as %s: %w", o, err)
	}
	_, err = out.Write(text)
	return err
}
