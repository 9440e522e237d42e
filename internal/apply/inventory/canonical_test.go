// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCanonicalFieldsAreNotDecoded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		raw  string
		want bool
	}{
		"ConfigMap": {`{"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{"f:satchel.dev/deployment":{},"f:satchel.dev/namespace":{}}}}`, true},
		"container": {`{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{}}}}}}}`, true},
		"backslash": {`{"f:a\\b":{},"f:ab":{}}`, true},
		"empty":     {`{}`, true},

		"not sorted":                {`{"f:b":{},"f:a":{}}`, false},
		"not sorted by its quote":   {`{"f:a#":{},"f:a\"":{}}`, false},
		"key twice":                 {`{"f:a":{},"f:a":{}}`, false},
		"white space":               {`{"f:a": {}}`, false},
		"white space at the end":    {"{}\n", false},
		"other escapes":             {`{"f:\u0041":{}}`, false},
		"character that is escaped": {`{"f:<":{}}`, false},
		"not ASCII":                 {`{"f:ä":{}}`, false},
		"control character":         {"{\"f:\t\":{}}", false},
		"value":                     {`{"f:a":1}`, false},
		"list":                      {`[]`, false},
		"end is missing":            {`{"f:a":{}`, false},
		"ends in a key":             {`{"f:a`, false},
		"ends in an escape":         {`{"f:a\`, false},
		"comma at the end":          {`{"f:a":{},}`, false},
		"nothing":                   {``, false},
		"very deep":                 {strings.Repeat(`{"f:a":`, 2*deepestFields) + `{}` + strings.Repeat(`}`, 2*deepestFields), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := isCanonical([]byte(tc.raw))
			if got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if written := string(canonical([]byte(tc.raw))); got && written != tc.raw {
				t.Errorf("encoding/json writes %s", written)
			}
		})
	}
}

// TestCanonicalIsWhatEncodingJSONWrites (property): what isCanonical accepts is not changed by decoding and encoding it.
func TestCanonicalIsWhatEncodingJSONWrites(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same cases in each run
	pieces := []string{`{`, `}`, `{}`, `"`, `:`, `,`, `"a":{}`, `"b":{}`, `"a\"":{`, `"\\":{}`, `\`, ` `, `<`, `ä`, `"a":`, `"#":{}`, "\x7f", "\x1f"}
	accepted := 0
	for range 200_000 {
		var raw strings.Builder
		raw.WriteString("{")
		for range random.IntN(8) {
			raw.WriteString(pieces[random.IntN(len(pieces))])
		}
		raw.WriteString("}")
		if !isCanonical([]byte(raw.String())) {
			continue
		}
		accepted++
		if written := string(canonical([]byte(raw.String()))); written != raw.String() {
			t.Fatalf("%s is accepted, and encoding/json writes %s", raw.String(), written)
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d cases were accepted", accepted)
	}
}

func BenchmarkHashFields(b *testing.B) {
	raw := []byte(`{"f:data":{"f:a":{},"f:b":{},"f:c":{}},"f:metadata":{"f:labels":{"f:satchel.dev/deployment":{},"f:satchel.dev/namespace":{}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		hashFieldsV1(raw)
	}
}
