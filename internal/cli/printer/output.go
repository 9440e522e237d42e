// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/visible"
)

// Output is the value of -o.
type Output string

// Formats of output. Each command says which it has.
const (
	OutputTable Output = "table"
	OutputWide  Output = "wide"
	OutputText  Output = "text"
	OutputJSON  Output = "json"
	OutputYAML  Output = "yaml"
	OutputName  Output = "name"
)

// Enum is a flag that takes one of a few words.
type Enum struct {
	Value   *string
	Allowed []string
}

// Set accepts the allowed words only.
func (e Enum) Set(value string) error {
	if !slices.Contains(e.Allowed, value) {
		return fmt.Errorf("%q is not one of: %s", value, strings.Join(e.Allowed, ", "))
	}
	*e.Value = value
	return nil
}

// String returns the present word.
func (e Enum) String() string {
	if e.Value == nil {
		return ""
	}
	return *e.Value
}

// Type names the value in the help.
func (Enum) Type() string { return "string" }

// PrintValue writes a value as JSON or YAML. Nothing is left out; what is hidden or could steer a terminal is escaped.
func PrintValue(out io.Writer, o Output, value any) error {
	var text []byte
	var err error
	if o == OutputYAML {
		text, err = YamlText(value)
	} else if text, err = json.MarshalIndent(value, "", "    "); err == nil {
		text = append(EscapeHidden(text, visible.JSON), '\n')
	}
	if err != nil {
		return fmt.Errorf("writing the output as %s: %w", o, err)
	}
	_, err = out.Write(text)
	return err
}

// YamlText is a value as YAML.
func YamlText(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	// JSON escapes the line ends of Unicode itself. In YAML they would be taken for others.
	if IsPlainJSON(encoded) {
		return yaml.JSONToYAML(encoded)
	}
	return QuotedYAML(encoded)
}

// IsPlainJSON tells that JSON holds no characters that have to be escaped for people.
func IsPlainJSON(encoded []byte) bool {
	return !bytes.ContainsFunc(encoded, needsEscape) && !bytes.Contains(encoded, []byte(`\u202`))
}

// QuotedYAML is JSON as YAML in which all strings are in double quotes, and escaped where needed.
func QuotedYAML(encoded []byte) ([]byte, error) {
	var document goyaml.Node
	if err := goyaml.Unmarshal(EscapeHidden(encoded, yamlEscape), &document); err != nil {
		return nil, err
	}
	inBlocks(&document)
	var quoted bytes.Buffer
	encoder := goyaml.NewEncoder(&quoted)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(&document), encoder.Close())
	return EscapeHidden(quoted.Bytes(), yamlEscape), err
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

// EscapeHidden replaces hidden characters, which only stand inside of quoted texts.
func EscapeHidden(text []byte, escape func(rune) string) []byte {
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
