// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const plainStyles = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// scalar resolves a scalar as kubectl does: YAML 1.1 (so that an unquoted y, no or on is a boolean), numbers as JSON
// would carry them, dates as text.
func scalar(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!!str":
		if n.Style&(plainStyles|yaml.TaggedStyle) == 0 {
			if truth, ok := boolean(n.Value); ok {
				return truth, nil
			}
		}
		return n.Value, nil
	case "!!timestamp", "!!merge", "!":
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		if truth, ok := boolean(n.Value); ok {
			return truth, nil
		}
	case "!!int":
		if value, ok := integer(n.Value); ok {
			return value, nil
		}
	case "!!float":
		return float(n)
	case "!!binary":
		return binary(n)
	default:
		return nil, knownTag(n, "")
	}
	return nil, notOfItsTag(n)
}

func notOfItsTag(n *yaml.Node) error {
	return &fault{rule: RuleValue, line: n.Line, message: "a value is not what its tag says", remedy: "remove the tag or correct the value"}
}

// boolean knows the YAML 1.1 words.
func boolean(s string) (value, ok bool) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// integer is an int64 where the number fits, else the nearest float64.
func integer(s string) (any, bool) {
	plain := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return i, true
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return float64(u), true
	}
	f, err := strconv.ParseFloat(plain, 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// float is the number as JSON carries it: without a fraction it becomes an integer.
func float(n *yaml.Node) (any, error) {
	plain := strings.ReplaceAll(n.Value, "_", "")
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil && !strings.HasPrefix(strings.TrimLeft(plain, "+-"), ".") {
		if value, ok := integer(n.Value); ok {
			return value, nil
		}
		return nil, notOfItsTag(n)
	}
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, &fault{rule: RuleValue, line: n.Line, message: "infinity and not-a-number cannot be represented in JSON"}
	}
	if math.Abs(f) < 1<<63 {
		if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
			return i, nil
		}
	}
	return f, nil
}

func binary(n *yaml.Node) (any, error) {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
	if err != nil || !utf8.Valid(data) {
		return nil, &fault{rule: RuleValue, line: n.Line, message: "a !!binary value is not base64 of UTF-8", remedy: "use the binaryData of a ConfigMap or the data of a Secret"}
	}
	return string(data), nil
}

// key returns a mapping's key as JSON spells it: numbers and booleans become their text.
func (b *builder) key(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", &fault{rule: RuleSyntax, line: n.Line, message: "a mapping has a key that is itself a mapping or a list"}
	}
	if n.Tag == "!!float" {
		return floatKey(n)
	}
	value, err := scalar(n)
	if err != nil {
		return "", err
	}
	switch v := value.(type) {
	case string:
		return b.names.get(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	return "", &fault{rule: RuleSyntax, line: n.Line, message: "a mapping has an empty key"}
}

// floatKey spells a number in 32 bits, as kubectl does.
func floatKey(n *yaml.Node) (string, error) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > math.MaxFloat32 {
		return "", &fault{rule: RuleValue, line: n.Line, message: "a mapping has a key that is no number JSON could spell", remedy: "put the key into quotation marks"}
	}
	return strconv.FormatFloat(f, 'g', -1, 32), nil
}
