// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// random makes an inventory of n objects with all the shapes that names can have.
func random(source *rand.Rand, n int) inventory.Inventory {
	hash := func() (h inventory.Hash) {
		if source.IntN(4) > 0 {
			for i := range h {
				h[i] = byte(source.Uint32())
			}
		}
		return h
	}
	groups := []string{"", "apps", "rbac.authorization.k8s.io", "example.org"}
	kinds := []string{"ConfigMap", "Deployment", "Role", "Widget"}
	namespaces := []string{"", "shop", "kube-system"}
	names := []string{"web", "my_role", "system:thing", "a.b.c", "_", "__", "x_y_z"}
	var entries []inventory.Entry
	for range n {
		pick := source.IntN(len(groups))
		entries = append(entries, inventory.Entry{
			ID: inventory.ID{
				Group: groups[pick], Kind: kinds[pick], Namespace: namespaces[source.IntN(len(namespaces))],
				Name: fmt.Sprintf("%s%d", names[source.IntN(len(names))], source.IntN(2*n)),
			},
			Version: "v1", Rendered: hash(), Fields: hash(), Seen: hash(),
		})
	}
	return inventory.New("target", entries...)
}

func mustEncode(t testing.TB, i inventory.Inventory) *v1alpha1.Inventory {
	t.Helper()
	encoded, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// What is encoded decodes to the same, on both sides of the limit of compression,
// through the JSON of the API server, and equal inventories give equal bytes.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(16) {
		source := rand.New(rand.NewPCG(seed, 1))
		want := random(source, source.IntN(700))
		encoded := mustEncode(t, want)
		if diff := cmp.Diff(encoded, mustEncode(t, want)); diff != "" {
			t.Fatalf("seed %d: encoded twice differs:\n%s", seed, diff)
		}
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
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(want.Entries, got.Entries); diff != "" && want.Len() > 0 {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// An inventory of 20,000 objects fits into a status, and is a fraction of the
// limit of an object.
func TestS5SizeOfTwentyThousand(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 1))
	var entries []inventory.Entry
	for i := range 20_000 {
		entry := inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("map-%05d", i)}, Version: "v1"}
		for at := range entry.Rendered {
			entry.Rendered[at], entry.Fields[at], entry.Seen[at] = byte(source.Uint32()), byte(source.Uint32()), byte(source.Uint32())
		}
		entries = append(entries, entry)
	}
	stored, err := json.Marshal(mustEncode(t, inventory.New("target", entries...)))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("20,000 objects take %d KiB in status, all hashes random", len(stored)>>10)
	if len(stored) > 1<<20 {
		t.Errorf("%d bytes are more than an object may have", len(stored))
	}
}

func compressed(t testing.TB, text string) string {
	t.Helper()
	var buffer bytes.Buffer
	writer := zlib.NewWriter(&buffer)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(buffer.Bytes())
}

// packed is the packed form of one entry: its two bytes of state, group, kind, namespace, version and name, and hashes.
func packed(present, state byte, texts [5]string, hashes string) string {
	packed := []byte{1, 1, present, state}
	for _, text := range texts {
		packed = append(append(packed, 0, byte(len(text))), text...)
	}
	return string(packed) + hashes
}

// An unreadable inventory is refused as a whole: a shorter one would orphan objects.
func TestT11ForgedInventory(t *testing.T) {
	plain := func(entries ...v1alpha1.InventoryEntry) *v1alpha1.Inventory {
		return &v1alpha1.Inventory{Count: int32(len(entries)), Entries: entries}
	}
	good := v1alpha1.InventoryEntry{ID: "shop_web_apps_Deployment", V: "v1"}
	if _, err := inventory.Decode(plain(good)); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	web := packed(1, 3, [5]string{"apps", "Deployment", "shop", "v1", "web"}, "12345678")
	one := func(packed string) *v1alpha1.Inventory {
		return &v1alpha1.Inventory{Count: 1, Compressed: compressed(t, packed)}
	}
	if got, err := inventory.Decode(one(web)); err != nil || got.Entries[0] != (inventory.Entry{
		ID: inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Version: "v1", Rendered: inventory.Hash([]byte("12345678")), Mark: inventory.RunOnce,
	}) {
		t.Fatalf("the good packed one: %+v, %v", got, err)
	}
	tests := map[string]struct {
		reason  string
		encoded *v1alpha1.Inventory
	}{
		"no parts":        {"nothing is named", plain(v1alpha1.InventoryEntry{ID: "web"})},
		"three parts":     {"a part is missing", plain(v1alpha1.InventoryEntry{ID: "shop_web_Deployment"})},
		"no name":         {"a collection would be meant", plain(v1alpha1.InventoryEntry{ID: "shop__apps_Deployment"})},
		"no kind":         {"nothing can be looked up", plain(v1alpha1.InventoryEntry{ID: "shop_web_apps_"})},
		"path":            {"a name must not lead elsewhere", plain(v1alpha1.InventoryEntry{ID: "shop_../../b_apps_Deployment"})},
		"dot dot":         {"nor up", plain(v1alpha1.InventoryEntry{ID: "shop_.._apps_Deployment"})},
		"escape":          {"nor be escaped", plain(v1alpha1.InventoryEntry{ID: "shop_a%2fb_apps_Deployment"})},
		"namespace slash": {"the same for namespaces", plain(v1alpha1.InventoryEntry{ID: "a/b_web_apps_Deployment"})},
		"long name":       {"longer than any name", plain(v1alpha1.InventoryEntry{ID: "shop_" + strings.Repeat("x", 254) + "_apps_Deployment"})},
		"version":         {"a version is part of a path", plain(v1alpha1.InventoryEntry{ID: good.ID, V: "v1/../v2"})},
		"short hash":      {"a hash has eight bytes", plain(v1alpha1.InventoryEntry{ID: good.ID, R: "AAAA"})},
		"bad hash":        {"and is base64", plain(v1alpha1.InventoryEntry{ID: good.ID, S: "***********"})},
		"twice":           {"one object, one entry", plain(good, good)},
		"count":           {"an entry was lost", &v1alpha1.Inventory{Count: 2, Entries: []v1alpha1.InventoryEntry{good}}},
		"emptied":         {"all entries were lost", &v1alpha1.Inventory{Count: 31}},
		"negative count":  {"no such number", &v1alpha1.Inventory{Count: -1}},
		"mark":            {"no such mark", plain(v1alpha1.InventoryEntry{ID: good.ID, M: "x"})},
		"both forms":      {"which one holds?", &v1alpha1.Inventory{Count: 1, Entries: []v1alpha1.InventoryEntry{good}, Compressed: compressed(t, web)}},
		"not zlib":        {"garbage", &v1alpha1.Inventory{Count: 1, Compressed: "garbage"}},
		"not base64":      {"garbage", &v1alpha1.Inventory{Count: 1, Compressed: "{"}},
		"truncated":       {"half an inventory", &v1alpha1.Inventory{Count: 1, Compressed: compressed(t, web)[:20]}},
		"nothing packed":  {"no format", one("")},
		"not packed":      {"another format", one(`[{"id":"shop_web_apps_Deployment"}]`)},
		"short":           {"the name ends too early", one(web[:len(web)-1])},
		"long":            {"more follows", one(web + "x")},
		"no block":        {"a block has entries", one("\x01\x00")},
		"long count":      {"the number does not end", one("\x01" + strings.Repeat("\xff", 11))},
		"packed path":     {"a name must not lead elsewhere", one(packed(0, 0, [5]string{"", "Secret", "a", "v1", "../b"}, ""))},
		"packed group":    {"it could not be written", one(packed(0, 0, [5]string{"a_b", "Secret", "a", "v1", "b"}, ""))},
		"packed version":  {"a version is part of a path", one(packed(0, 0, [5]string{"", "Secret", "a", "v1/..", "b"}, ""))},
		"packed bytes":    {"no UTF-8", one(packed(0, 0, [5]string{"", "Secret", "a", "v1", "\xff"}, ""))},
		"no hash":         {"one is announced", one(packed(1, 0, [5]string{"", "Secret", "a", "v1", "b"}, ""))},
		"empty hash":      {"one is announced", one(packed(1, 0, [5]string{"", "Secret", "a", "v1", "b"}, strings.Repeat("\x00", 8)))},
		"hash and none":   {"which one holds?", one(packed(2|4, 0, [5]string{"", "Secret", "a", "v1", "b"}, "12345678"))},
		"presence":        {"no such hash", one(packed(32, 0, [5]string{"", "Secret", "a", "v1", "b"}, ""))},
		"state":           {"no such state", one(packed(0, 16, [5]string{"", "Secret", "a", "v1", "b"}, ""))},
		"reused":          {"nothing is before it", one("\x01\x01\x00\x00" + "\x01\x00" + "\x00\x06Secret" + "\x00\x01a" + "\x00\x02v1" + "\x00\x01b")},
		"packed twice":    {"one object, one entry", &v1alpha1.Inventory{Count: 2, Compressed: compressed(t, web+web[1:])}},
		"bomb":            {"more than fits into memory", one("\x01" + strings.Repeat("\x00", 40<<20))},
		"many":            {"more objects than any bundle", &v1alpha1.Inventory{Count: 100_001, Compressed: compressed(t, "\x01\xa1\x8d\x06"+strings.Repeat("\x00", 20*100_001))}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := inventory.Decode(tc.encoded); err == nil {
				t.Errorf("%s: decoded to %d entries", tc.reason, got.Len())
			}
		})
	}
}

// Texts of few bytes that repeat most of the one before are refused once they take too much memory.
func TestT11LongTexts(t *testing.T) {
	const n = 100_000
	column := "\x00" + strings.Repeat("\xfc", n-1) + "\xfd" + strings.Repeat("\x01", n-1) + strings.Repeat("a", 252) + strings.Repeat("bc", n/2)
	long := "\x01\xa0\x8d\x06" + strings.Repeat("\x00", 2*n) + column + column
	_, err := inventory.Decode(&v1alpha1.Inventory{Count: n, Compressed: compressed(t, long)})
	if err == nil || !strings.Contains(err.Error(), "bytes when unpacked") {
		t.Errorf("got %v", err)
	}
}

// FuzzInventoryCodec: nothing panics, and a decoded inventory survives another round.
func FuzzInventoryCodec(f *testing.F) {
	f.Add("shop_web_apps_Deployment", "v1", "AAAAAAAAAAA", "", int32(1))
	f.Add("_my_role_rbac.authorization.k8s.io_ClusterRole", "v1", "", "", int32(1))
	f.Add("", "", "", compressed(f, packed(1|4|8, 2, [5]string{"apps", "Deployment", "shop", "v1", "web"}, "123456781234")), int32(1))
	f.Add("____", "v1", "x", "eJw=", int32(-1))
	f.Fuzz(func(t *testing.T, id, version, hash, packed string, count int32) {
		encoded := &v1alpha1.Inventory{Count: count, Compressed: packed}
		if packed == "" {
			encoded.Entries = []v1alpha1.InventoryEntry{{ID: id, V: version, R: hash, F: hash, S: hash}}
		}
		decoded, err := inventory.Decode(encoded)
		if err != nil {
			return
		}
		written, err := decoded.Encode()
		if err != nil {
			return // larger than may be stored
		}
		again, err := inventory.Decode(written)
		if err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		if diff := cmp.Diff(decoded, again); diff != "" {
			t.Fatalf("a round changes it (-first +second):\n%s", diff)
		}
		for _, entry := range decoded.Entries {
			if strings.ContainsAny(entry.Group+entry.Version+entry.Kind+entry.Namespace+entry.Name, "/%") {
				t.Fatalf("%+v would be a path", entry)
			}
		}
	})
}
