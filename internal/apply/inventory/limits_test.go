// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// parts are strings for each part of an entry: good, odd and bad ones.
var parts = []string{
	"", "a", "shop", "v1", "v1-beta", "v1beta1", "1v", "-v", "apps", "example.org", "Widget", "my_role", "_", "__", "x_y_z", ".", "..", "a/b", "a%2fb",
	"a b", "a\nb", "a\x00b", "\xff", "\u2028", "<&>", "é", "system:thing", strings.Repeat("x", 63), strings.Repeat("y", 64), strings.Repeat("z", 253), strings.Repeat("z", 254),
}

// Decode reads everything that Encode writes, whatever the entries hold: objects of an unreadable
// inventory would never be removed. Both outcomes occur.
func TestT11EncodedIsReadable(t *testing.T) {
	written, refused := 0, 0
	for seed := range uint64(4000) {
		source := rand.New(rand.NewPCG(seed, 7))
		part := func(usual string) string {
			if source.IntN(3) > 0 {
				return usual
			}
			return parts[source.IntN(len(parts))]
		}
		var entries []inventory.Entry
		for at := range 1 + source.IntN(3) {
			entries = append(entries, inventory.Entry{
				ID:      inventory.ID{Group: part("apps"), Kind: part("Widget"), Namespace: part("shop"), Name: part(fmt.Sprint("web", at))},
				Version: part("v1"), Seen: inventory.Hash{byte(at)},
			})
		}
		want := inventory.Inventory{Target: "target", Entries: entries} // neither sorted nor unique
		encoded, err := want.Encode()
		if err != nil {
			refused++
			continue
		}
		written++
		stored, err := json.Marshal(encoded)
		if err != nil {
			t.Fatal(err)
		}
		var read *v1alpha1.Inventory
		if err := json.Unmarshal(stored, &read); err != nil {
			t.Fatal(err)
		}
		got, err := inventory.Decode(read)
		if err != nil {
			t.Fatalf("seed %d: encoded but not decoded: %v", seed, err)
		}
		if diff := cmp.Diff(inventory.New("target", entries...), got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
	if written < 100 || refused < 100 {
		t.Errorf("%d written, %d refused: one of them is hardly tried", written, refused)
	}
}

// A CRD may have a version such as v1-beta; one that no API server accepts is
// refused when it is written, with the object's name, not when it is read.
func TestVersionsOfEntries(t *testing.T) {
	for version, good := range map[string]bool{
		"v1": true, "v1-beta": true, "v1beta1": true, "storage": true, "": true,
		"V1": false, "1v": false, "v1-": false, "v1.2": false, "v1/x": false, "..": false, strings.Repeat("v", 64): false,
	} {
		entry := inventory.Entry{ID: inventory.ID{Group: "example.org", Kind: "Widget", Namespace: "shop", Name: "web"}, Version: version}
		_, err := inventory.New("target", entry).Encode()
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "Widget.example.org shop/web") {
			t.Errorf("%q: got %v", version, err)
		}
	}
}

// 30,000 objects of several kinds fit beside a usual deployment when all of their states are known.
func TestS5ManyMixedObjectsFit(t *testing.T) {
	var entries []inventory.Entry
	for i := range 30_000 {
		kind := [...]string{"ConfigMap", "Service", "ServiceAccount", "Secret", "Deployment"}[i%5]
		entries = append(entries, inventory.Entry{ID: inventory.ID{Kind: kind, Namespace: "shop", Name: fmt.Sprintf("app-%05d", i)}, Version: "v1"})
	}
	const deployment = 10 << 10
	if err := inventory.LimitBeside(deployment).CheckPlanned(inventory.Inventory{}, inventory.New("target", entries...), nil); err != nil {
		t.Error(err)
	}
	var large *inventory.TooLargeError
	if err := inventory.LimitBeside(500<<10).CheckPlanned(inventory.Inventory{}, inventory.New("target", entries...), nil); !errors.As(err, &large) {
		t.Errorf("beside a spec of 500 KiB: %v", err)
	}
}

// An inventory that does not fit into the status is refused with a typed error and a
// remedy.
func TestS5TooLarge(t *testing.T) {
	sized := func(count int, name func(int) string) inventory.Inventory {
		source := rand.New(rand.NewPCG(1, 1))
		var entries []inventory.Entry
		for i := range count {
			entry := inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: name(i)}, Version: "v1"}
			for at := range entry.Seen {
				entry.Seen[at], entry.Rendered[at] = byte(source.Uint32()), byte(source.Uint32())
			}
			entries = append(entries, entry)
		}
		return inventory.New("target", entries...)
	}
	plain := func(i int) string { return fmt.Sprintf("map-%06d", i) }
	for name, tc := range map[string]struct {
		reason    string
		inventory inventory.Inventory
		large     bool
	}{
		"many":    {"20,000 objects fit", sized(20_000, plain), false},
		"status":  {"hashes do not compress", sized(60_000, plain), true},
		"entries": {"more than are read back", sized(100_001, plain), true},
		"bytes": {"compresses well, but is not inflated again", sized(100_000, func(i int) string {
			return strings.Repeat("x", 247) + fmt.Sprintf("%06d", i)
		}), true},
		"few, long": {"300 of the longest names", sized(300, func(i int) string { return strings.Repeat("\x01", 249) + fmt.Sprintf("%04d", i) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := tc.inventory.Encode()
			var large *inventory.TooLargeError
			if errors.As(err, &large) != tc.large || (err != nil) != tc.large {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if tc.large {
				if large.Count != tc.inventory.Len() || !strings.Contains(err.Error(), "split the bundle") {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			stored, err := json.Marshal(encoded)
			if err != nil || len(stored) > 5<<18 {
				t.Errorf("%s: %d bytes are stored, %v", tc.reason, len(stored), err)
			}
			if _, err := inventory.Decode(encoded); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
