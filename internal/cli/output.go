// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/visible"
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

// printValue writes a value as JSON or YAML. Nothing is left out; what is hidden or could steer a terminal is escaped.
func printValue(out io.Writer, o output, value any) error {
	var text []byte
	var err error
	if o == outputYAML {
		text, err = yamlText(value)
	} else if text, err = json.MarshalIndent(value, "", "    "); err == nil {
		text = append(escapeHidden(text, visible.JSON), '\n')
	}
	if err != nil {
		return fmt.Errorf("writing the output as %s: %w", o, err)
	}
	_, err = out.Write(text)
	return err
}

// yamlText is a value as YAML.
func yamlText(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	// JSON escapes the line ends of Unicode itself. In YAML they would be taken for others.
	if isPlainJSON(encoded) {
		return yaml.JSONToYAML(encoded)
	}
	return quotedYAML(encoded)
}

// isPlainJSON tells that JSON holds no characters that have to be escaped for people.
func isPlainJSON(encoded []byte) bool {
	return !bytes.ContainsFunc(encoded, needsEscape) && !bytes.Contains(encoded, []byte(`\u202`))
}

// quotedYAML is JSON as YAML in which all strings are in double quotes, and escaped where needed.
func quotedYAML(encoded []byte) ([]byte, error) {
	var document goyaml.Node
	if err := goyaml.Unmarshal(escapeHidden(encoded, yamlEscape), &document); err != nil {
		return nil, err
	}
	inBlocks(&document)
	var quoted bytes.Buffer
	encoder := goyaml.NewEncoder(&quoted)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(&document), encoder.Close())
	return escapeHidden(quoted.Bytes(), yamlEscape), err
}

// inBlocks lays JSON out as YAML. Strings stay in double quotes, because escapes only work there.
func inBlocks(node *goyaml.Node) {
	node.Style &^= goyaml.FlowStyle
	for _, below := range node.Content {
		inBlocks(below)
	}
}

// needsEscape tells which characters do not stand for themselves in an output; line ends and tabs are harmless there.
func needsEscape(r rune) bool { return r != '\n' && r != '\t' && visible.Hidden(r) }

// escapeHidden replaces hidden characters, which only stand inside of quoted texts.
func escapeHidden(text []byte, escape func(rune) string) []byte {
	if !bytes.ContainsFunc(text, needsEscape) {
		return text
	}
	var out bytes.Buffer
	for _, r := range string(text) {
		if needsEscape(r) {
			out.WriteString(escape(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

func yamlEscape(r rune) string {
	if r > 0xFFFF {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
