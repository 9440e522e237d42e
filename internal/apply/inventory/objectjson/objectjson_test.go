// SPDX-License-Identifier: Apache-2.0

package objectjson_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/inventory/objectjson"
)

// sample is a random value as objects have them.
func sample(random *rand.Rand, depth int) any {
	kind := random.IntN(9)
	if depth == 0 && kind < 3 {
		kind += 3
	}
	switch kind {
	case 0, 1:
		fields := map[string]any{}
		for range random.IntN(6) {
			fields[text(random)] = sample(random, depth-1)
		}
		return fields
	case 2:
		items := []any{}
		for range random.IntN(4) {
			items = append(items, sample(random, depth-1))
		}
		return items
	case 3:
		return random.Int64() - math.MaxInt64/2
	case 4:
		return math.Float64frombits(random.Uint64())
	case 5:
		return [...]any{nil, true, false, map[string]any(nil), []any(nil), json.Number("1e3"), 7, int32(8), uint8(9)}[random.IntN(9)]
	}
	return text(random)
}

func text(random *rand.Rand) string {
	parts := []string{"a", "name", " ", "\"", "\\", "<&>", "\n", "\x00", "\x1f", "\x7f", "é", "\u2028", "\xff", "日", "/", "'"}
	var b strings.Builder
	for range random.IntN(5) {
		b.WriteString(parts[random.IntN(len(parts))])
	}
	return b.String()
}

// TestAppendIsWhatTheLibraryWrites: digests are the same as with encoding/json, for all values; what it refuses is refused.
func TestAppendIsWhatTheLibraryWrites(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible on purpose
	var encoder objectjson.Encoder
	refused := 0
	for range 20_000 {
		value := sample(random, 4)
		want, err := json.Marshal(value)
		got, failed := encoder.Append([]byte("before"), value)
		if (err != nil) != (failed != nil) {
			t.Fatalf("%#v: %v, not %v", value, failed, err)
		}
		if err != nil {
			refused++
			continue
		}
		if string(got) != "before"+string(want) {
			t.Fatalf("%#v is\n%s, not\n%s", value, got, want)
		}
	}
	if refused == 0 || refused > 2000 {
		t.Errorf("%d values were refused", refused)
	}
}

// BenchmarkAppend encodes an object as a CRD is: nested schemas with descriptions.
func BenchmarkAppend(b *testing.B) {
	var schema func(depth int) map[string]any
	schema = func(depth int) map[string]any {
		made := map[string]any{"type": "object", "description": strings.Repeat("what the field is for, in a \"few\" words\n", 3), "minimum": int64(1)}
		if depth > 0 {
			made["properties"] = map[string]any{"one": schema(depth - 1), "two": schema(depth - 1), "three": schema(depth - 1)}
		}
		return made
	}
	object := schema(5)
	b.Run("satchel", func(b *testing.B) {
		var encoder objectjson.Encoder
		var to []byte
		b.ReportAllocs()
		for b.Loop() {
			to, _ = encoder.Append(to[:0], object)
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(object)
		}
	})
}
