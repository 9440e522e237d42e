// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/satchel-dev/satchel/internal/convert/helm/message"
)

// allowed says what a schema asks of a value. It quotes the schema, never the value.
func allowed(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *kind.Type:
		return fmt.Sprintf("this is of the type %s, and has to be of %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Required:
		return "missing: " + list(k.Missing)
	case *kind.AdditionalProperties:
		return "not known: " + list(k.Properties)
	case *kind.Enum:
		return "this is none of " + inJSON(k.Want...)
	case *kind.Const:
		return "this has to be " + inJSON(k.Want)
	case *kind.Pattern:
		return "this does not match " + inJSON(k.Want)
	case *kind.Format:
		return "this is not of the format " + inJSON(k.Want)
	case *kind.FalseSchema:
		return "this may not be given"
	case *kind.DependentRequired:
		return fmt.Sprintf("missing beside %s: %s", message.Shorten(k.Prop), list(k.Missing))
	case *kind.Dependency:
		return fmt.Sprintf("missing beside %s: %s", message.Shorten(k.Prop), list(k.Missing))
	}
	return bounds(of)
}

// bounds says how large a value may be.
func bounds(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *kind.Minimum:
		return "this has to be at least " + number64(k.Want)
	case *kind.Maximum:
		return "this may be at most " + number64(k.Want)
	case *kind.ExclusiveMinimum:
		return "this has to be more than " + number64(k.Want)
	case *kind.ExclusiveMaximum:
		return "this has to be less than " + number64(k.Want)
	case *kind.MultipleOf:
		return "this has to be a multiple of " + number64(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("this has to have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("this may have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("this has to have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("this may have at most %d items", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("this has to have at least %d keys", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("this may have at most %d keys", k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("the items %d and %d are the same", k.Duplicates[0], k.Duplicates[1])
	}
	path := of.KeywordPath()
	if len(path) == 0 {
		return "this is not allowed"
	}
	return "this is not allowed by " + message.Shorten(path[0])
}

func number64(n *big.Rat) string {
	return strings.TrimSuffix(strings.TrimRight(n.FloatString(6), "0"), ".")
}

func list(names []string) string {
	const shown = 10
	names = slices.Sorted(slices.Values(names)) // the library leaves their order to chance
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		text += ", …"
	}
	return message.Shorten(message.Printable(text))
}

// inJSON quotes a part of the schema.
func inJSON(values ...any) string {
	parts := make([]string, 0, len(values))
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("…")
		}
		parts = append(parts, string(text))
	}
	return message.Shorten(strings.Join(parts, ", "))
}
